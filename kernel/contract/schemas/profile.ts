import { z } from 'zod'
import { deviceClassSchema, gpuBackendSchema } from './enums.js'

/** A profile: image plus tuned engine flags. */
export const profileSchema = z.strictObject({
  image: z.string().min(1).meta({ description: 'Container image reference, or a short name of the manifest' }),
  flags: z.string().default('').meta({ description: 'Engine flags, without model, port and context size' }),
  mtp: z.boolean().default(false).meta({ description: 'Opt in to multi-token prediction' }),
  device_class: deviceClassSchema.default('gpu'),
  backend: gpuBackendSchema.nullable().default(null).meta({ description: 'GPU runtime; unset for profiles that use no GPU' }),
  cloned_from: z.string().nullable().default(null).meta({ description: 'Provenance only' }),
  intent: z.string().default('').meta({ description: 'Label for people' }),
  quant: z.string().default('').meta({ description: 'Informational, never read at run time' })
})

export type Profile = z.output<typeof profileSchema>
export interface NamedProfile extends Profile { readonly name: string, readonly seed: boolean }
