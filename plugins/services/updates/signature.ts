import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { messageOf } from 'svc-gateway/plugin'
import { updateError } from './errors.js'
import type { Pins } from './pins.js'
import { readTrustRoot } from './trust-root.js'

/** Of one bundle: a certificate with its proofs. */
export const MOST_BUNDLE_BYTES = 256 * 1024

/**
 * Whether an archive was signed by whom this installation trusts: by a certificate of the pinned identity and issuer, with its
 * entry in a transparency log, or where a public key is configured by that key alone. Returns who signed it. Throws
 * `system.update_verify_failed`. The libraries are loaded by the first call.
 */
export async function verifySignature (archive: Buffer, bundleText: string, pins: Pins): Promise<string> {
  try {
    return await verify(archive, bundleText, pins)
  } catch (error) {
    throw updateError('system.update_verify_failed', `this installation does not trust the signature of the release: ${messageOf(error)}`, { cause: error })
  }
}

async function verify (archive: Buffer, bundleText: string, pins: Pins): Promise<string> {
  const { signerIdentity: identity, signerIssuer: issuer, publicKey: keyFile, trustedRoot } = pins
  if (keyFile === null && identity === '') {
    throw new Error('it does not say who signs releases: set [plugins.config.updates] signer_identity or public_key')
  }
  const [{ bundleFromJSON }, { toSignedEntity, toTrustMaterial, Verifier }] = await Promise.all([import('@sigstore/bundle'), import('@sigstore/verify')])
  const bundle = bundleFromJSON(JSON.parse(bundleText))
  if (bundle.content.$case !== 'messageSignature') throw new Error('it signs a statement and not the archive')
  const isKeyed = bundle.verificationMaterial.content.$case === 'publicKey'
  const entity = toSignedEntity(bundle, archive)
  if (keyFile !== null) {
    if (!isKeyed) throw new Error('a certificate signed it, but a public key is configured')
    const publicKey = await readKey(keyFile)
    const nothing = { mediaType: '', tlogs: [], ctlogs: [], certificateAuthorities: [], timestampAuthorities: [] }
    const trust = toTrustMaterial(nothing, () => ({ publicKey, validFor: () => true }))
    new Verifier(trust, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 }).verify(entity)
    return `the key ${keyFile}`
  }
  if (isKeyed) throw new Error('a key signed it, but no public key is configured')
  const trust = toTrustMaterial(await readTrustRoot(trustedRoot))
  const signer = new Verifier(trust).verify(entity, { subjectAlternativeName: `^(?:${identity})$`, extensions: { issuer } })
  return signer.identity?.subjectAlternativeName ?? identity
}

async function readKey (file: string): Promise<KeyObject> {
  try {
    return createPublicKey(await readFile(file))
  } catch (error) {
    throw new Error(`the public key ${file} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}
