import { modelDefaultsSchema, modelRowSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

export const modelTypes = ['chat', 'embed', 'rerank', 'stt', 'tts', 'img'] as const

const base = {
  id: z.string(),
  object: z.literal('model'),
  created: z.int().meta({ description: 'Epoch seconds when the model was added; 0 if unknown' }),
  owned_by: z.string()
}

const { metadata, mmproj, ...shape } = modelRowSchema.shape

/** A model of the registry. */
export const registryRowSchema = z.strictObject({
  ...base,
  ...shape,
  mmproj,
  metadata,
  defaults: modelDefaultsSchema,
  owned_by: z.literal('local'),
  installed: z.boolean().meta({ description: 'False for a row whose file is gone' }),
  ns: z.enum(['blessed', 'pulled']).meta({ description: 'Whether it is in the folder layout of the gateway' }),
  type: z.enum(modelTypes)
})

/** A model that an upstream serves. */
export const upstreamModelSchema = z.strictObject({
  ...base,
  name: z.string(),
  upstream: z.string(),
  installed: z.literal(false),
  ns: z.literal('pulled'),
  type: z.enum(modelTypes)
})

/** A model that the NPU's runtime keeps by itself, and one that an NPU slot has. */
export const npuModelSchema = z.strictObject({
  ...base,
  name: z.string(),
  upstream: z.literal('npu'),
  backend: z.string(),
  installed: z.boolean().meta({ description: 'False for a model that the runtime of its slot has yet to download' }),
  type: z.enum(['llm', 'embedding', 'transcription']),
  capability: z.string(),
  capabilities: z.array(z.string()),
  device: z.literal('npu')
})

export const modelListRowSchema = z.union([registryRowSchema, upstreamModelSchema, npuModelSchema])

export type RegistryRow = z.output<typeof registryRowSchema>
export type UpstreamModelRow = z.output<typeof upstreamModelSchema>
export type NpuModelRow = z.output<typeof npuModelSchema>
export type ModelListRow = z.output<typeof modelListRowSchema>
