import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { toTrustMaterial } from '@sigstore/verify'
import { z } from 'zod'

/** The public Sigstore's, as its own client has it. */
const PUBLIC = fileURLToPath(new URL('./trust/public.json', import.meta.url))

const bytes = z.base64().transform(text => Buffer.from(text, 'base64'))
const time = z.iso.datetime({ offset: true }).transform(text => new Date(text))
const span = z.looseObject({ start: time.optional(), end: time.optional() })
const logSchema = z.looseObject({
  baseUrl: z.string(),
  publicKey: z.looseObject({ rawBytes: bytes, keyDetails: z.string(), validFor: span.optional() }),
  logId: z.looseObject({ keyId: bytes }),
  checkpointKeyId: z.looseObject({ keyId: bytes }).optional()
})
const authoritySchema = z.looseObject({
  certChain: z.looseObject({ certificates: z.array(z.looseObject({ rawBytes: bytes })).min(1) }),
  validFor: span.optional()
})
const rootSchema = z.looseObject({
  tlogs: z.array(logSchema).default([]),
  ctlogs: z.array(logSchema).default([]),
  certificateAuthorities: z.array(authoritySchema).default([]),
  timestampAuthorities: z.array(authoritySchema).default([])
})

export type TrustRoot = Parameters<typeof toTrustMaterial>[0]

/** Of kinds of keys, the library asks only whether it is a bare RSA key. */
const BARE_RSA = 1
const OTHER_KEY = 5

/** Whom a Sigstore is trusted by: its authorities and logs. Rejects with what is wrong with the file. */
export async function readTrustRoot (file: string | null): Promise<TrustRoot> {
  const { data, error } = rootSchema.safeParse(JSON.parse(await readFile(file ?? PUBLIC, 'utf8')))
  if (data === undefined) throw new Error(`${error.issues[0]!.path.join('.')}: ${error.issues[0]!.message}`)
  const log = ({ publicKey, ...rest }: z.output<typeof logSchema>): object => ({
    ...rest, publicKey: { ...publicKey, keyDetails: /^PKCS1_RSA_PKCS1V5$|^PKIX_RSA/.test(publicKey.keyDetails) ? BARE_RSA : OTHER_KEY }
  })
  return { mediaType: '', ...data, tlogs: data.tlogs.map(log), ctlogs: data.ctlogs.map(log) } as unknown as TrustRoot
}
