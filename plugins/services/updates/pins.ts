import { readFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { releaseFileSchema, type UpdatesConfig } from './settings.js'

/** Where releases come from and who signs them, as the installation says; a manifest has no say in it. */
export interface Pins {
  /** Address of the folder of manifests; empty where none is configured. */
  readonly releasesUrl: string
  readonly signerIdentity: string
  readonly signerIssuer: string
  /** File with a public key; null where certificates sign. */
  readonly publicKey: string | null
  /** File with the trusted root of a Sigstore of one's own; null is the public one. */
  readonly trustedRoot: string | null
}

const FILE = 'release.json'
const GITHUB = 'https://token.actions.githubusercontent.com'

/** The operator's configuration, laid over what the release that runs was made with; a broken file of a release says nothing. */
export async function readPins (root: string, config: UpdatesConfig): Promise<Pins> {
  const text = await readFile(join(root, FILE), 'utf8').catch(() => '{}')
  const own = releaseFileSchema.safeParse(parsed(text)).data ?? {}
  // one that names signers of its own means those, and not the key that came with the release
  const isOwn = config.signer_identity !== '' || config.public_key !== ''
  const key = isOwn ? config.public_key : own.public_key ?? ''
  return {
    releasesUrl: config.releases_url || own.releases_url || '',
    signerIdentity: config.signer_identity || own.signer_identity || '',
    signerIssuer: config.signer_issuer || own.signer_issuer || GITHUB,
    publicKey: key === '' ? null : isAbsolute(key) ? key : join(root, key),
    trustedRoot: config.trusted_root === '' ? null : config.trusted_root
  }
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
