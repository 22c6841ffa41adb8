import { z } from 'zod'
import { updateError } from './errors.js'
import { isVersion } from './version.js'

export const RELEASES_SCHEMA = 'svc.releases.v1'
/** A manifest is a page of text. */
export const MOST_MANIFEST_BYTES = 256 * 1024

const addressSchema = z.string().min(1).max(2000)
const shortText = z.string().max(500)

const fieldsSchema = z.looseObject({
  version: z.string().refine(isVersion, { error: 'is no version' }),
  channel: z.string(),
  url: addressSchema,
  bundle_url: addressSchema,
  digest_sha256: z.string().regex(/^(sha256:)?[0-9a-f]{64}$/i, { error: 'must be 64 hex digits' }).transform(text => text.replace(/^sha256:/i, '').toLowerCase()),
  size: z.int().positive().optional(),
  signer_identity: shortText.optional(),
  signer_issuer: shortText.optional(),
  min_data_version: z.int().min(1).default(1),
  upgrade_from: shortText.optional(),
  platforms: z.array(shortText).optional(),
  released_at: shortText.optional(),
  notes_url: addressSchema.optional(),
  toolbox_images: z.record(z.string(), z.unknown()).optional(),
  revoked: z.boolean().default(false),
  revoked_reason: shortText.optional()
})

/** What a channel says of one release. Addresses are as written: below that of the manifest where they are relative. */
export type Manifest = z.output<typeof fieldsSchema>

/**
 * The text of a manifest, checked. Fields that this release does not know stay; another schema is refused, for what it means
 * by the same names cannot be known. Throws `system.update_manifest_invalid`.
 */
export function parseManifest (text: string, from: string, channel: string): Manifest {
  const invalid = (why: string): Error => updateError('system.update_manifest_invalid', `the manifest at ${from} cannot be used: ${why}`, { details: { manifest: from } })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('it is not JSON')
  }
  const { _schema: schema } = (typeof value === 'object' && value !== null ? value : {}) as { _schema?: unknown }
  if (schema !== RELEASES_SCHEMA) throw invalid(`its _schema is ${JSON.stringify(schema)?.slice(0, 80) ?? 'missing'}, and this release reads ${RELEASES_SCHEMA}`)
  const { data, error } = fieldsSchema.safeParse(value)
  if (data === undefined) throw invalid(error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; '))
  if (data.channel !== channel) throw invalid(`it is of channel '${data.channel.slice(0, 80)}', not '${channel}'`)
  return data
}
