import { z } from 'zod'
import { freeTableSchema, MAX_LIST_ENTRIES } from './free-table.js'
import { modelCapabilities } from './enums.js'
import { MAX_CONTEXT_SIZE, MIN_CONTEXT_SIZE } from './slot-config.js'

/** Defaults that a model brings to the slots that load it. Every key is optional. */
export const modelDefaultsSchema = z.strictObject({
  context_size: z.int().min(MIN_CONTEXT_SIZE).max(MAX_CONTEXT_SIZE).optional(),
  n_gpu_layers: z.int().min(-1).max(100_000).optional(),
  rope_freq_base: z.number().min(0).max(1e9).optional(),
  extra_args: z.string().optional(),
  chat_template: z.string().min(1).optional(),
  profile: z.string().min(1).optional(),
  enable_thinking: z.boolean().optional(),
  mtp: z.boolean().optional(),
  vision: z.boolean().optional()
})

/** One `[models.<id>]` table of registry/registry.toml. `size_bytes` in bytes, `path` absolute. */
export const modelRowSchema = z.strictObject({
  name: z.string().default(''),
  path: z.string().startsWith('/', { error: 'must be an absolute path' }),
  size_bytes: z.int().min(0).default(0),
  quant: z.string().default(''),
  license: z.string().default('unknown'),
  capabilities: z.array(z.enum(modelCapabilities)).default([]),
  hf_repo: z.string().default(''),
  hf_filename: z.string().default(''),
  tags: z.array(z.string()).max(MAX_LIST_ENTRIES).default([]),
  backends: z.array(z.string()).max(MAX_LIST_ENTRIES).default([]),
  mmproj: z.string().nullable().default(null).meta({ description: 'Absolute path of the projector sidecar' }),
  defaults: modelDefaultsSchema.prefault({}),
  metadata: freeTableSchema.default({})
    .meta({ description: 'Facts read from the file: context_length (tokens), architecture, ...' })
})

export type ModelRow = z.output<typeof modelRowSchema>
export interface Model extends ModelRow { readonly id: string }
