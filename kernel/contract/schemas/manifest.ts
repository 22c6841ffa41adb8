import { z } from 'zod'
import { deviceSchema } from './enums.js'

/** manifest.json: the container images of a release, by short name. An unpublished image has no digest. */
export const manifestSchema = z.strictObject({
  _schema: z.literal('svc.manifest.v1').default('svc.manifest.v1'),
  version: z.string().default(''),
  channel: z.string().default('stable'),
  toolbox_images: z.record(z.string(), z.strictObject({
    tag: z.string().min(1).meta({ description: 'Full reference, such as ghcr.io/owner/name:tag' }),
    digest: z.union([z.literal(''), z.string().regex(/^sha256:[0-9a-f]{64}$/, { error: 'must be sha256: and 64 hex digits' })])
      .nullable().default(null),
    devices: z.array(deviceSchema).min(1).optional()
      .meta({ description: 'Devices that the image is built for; unset is any' })
  })).default({})
})
export type Manifest = z.output<typeof manifestSchema>
