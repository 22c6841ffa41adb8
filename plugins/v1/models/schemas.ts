import { z } from 'zod'

export const modelObjectSchema = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int().meta({ description: 'Epoch seconds of this request' }),
  owned_by: z.string().meta({ description: '`svc` for slots and virtual names, else the upstream' }),
  name: z.string().optional(),
  context_length: z.int().optional().meta({ description: 'Tokens; 0 when unknown' }),
  _svc: z.record(z.string(), z.unknown()).optional().meta({ description: 'What a virtual name stands for at this moment' })
})

export const modelListSchema = z.strictObject({ object: z.literal('list'), data: z.array(modelObjectSchema) })

export const listQuerySchema = z.looseObject({
  owned_by: z.string().optional().meta({ description: 'Only rows of this owner; also as header X-svc-Model-Filter' })
})

export const modelParamsSchema = z.strictObject({ '*': z.string().min(1).meta({ description: 'Model id' }) })
