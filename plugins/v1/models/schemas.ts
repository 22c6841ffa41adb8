import { z } from 'zod'

export const modelObjectSchema = z.looseObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int().meta({ description: 'Epoch seconds: when the model was added, else when the gateway started; for an upstream\'s model, as the upstream reports it' }),
  owned_by: z.string().meta({ description: '`svc` for slots, aliases and virtual names; the slot for models of its own; else the upstream' }),
  name: z.string().meta({ description: 'For people' }),
  type: z.string().meta({ description: '`model`, unless the upstream says otherwise' }),
  display_name: z.string().meta({ description: '`name`, where clients of the Messages API look for it' }),
  created_at: z.string().meta({ description: '`created` as ISO 8601' }),
  context_length: z.unknown().meta({ description: 'Tokens; 0 for a virtual name when unknown' }),
  max_model_len: z.unknown().meta({ description: '`context_length` under its other usual name' }),
  status: z.unknown().meta({ description: 'For a name that leads to a slot: `loaded`, `loading` or `unloaded`; all of them can be requested' }),
  capabilities: z.unknown().meta({ description: 'For a name that leads to a slot: `chat`, `vision`, `embed`, `rerank`, `asr`, `tts`, `image`' }),
  supported_endpoints: z.unknown().meta({ description: 'For a name that leads to a slot: the routes that take it' }),
  _svc: z.unknown().meta({ description: 'What an alias or a virtual name currently stands for' })
}).partial({ context_length: true, max_model_len: true, status: true, capabilities: true, supported_endpoints: true, _svc: true })
  .meta({ description: 'A model that can be requested. Rows of upstreams keep all other fields that the upstream reports' })

export const modelListSchema = z.strictObject({ object: z.literal('list'), data: z.array(modelObjectSchema) })

export const listQuerySchema = z.looseObject({
  owned_by: z.string().optional().meta({ description: 'Only rows of this owner; also as header X-svc-Model-Filter' })
})

export const modelParamsSchema = z.strictObject({ '*': z.string().min(1).meta({ description: 'Model id', pattern: '^\\S+$', examples: ['agent'] }) })
