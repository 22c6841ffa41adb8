import { z } from 'zod'

export const querySchema = z.looseObject({
  model: z.string().optional().meta({
    description: 'Model that answers: a slot, model id, alias, or model of an upstream. Not needed with `intent=transcription`, or a client secret that names it'
  }),
  intent: z.string().optional().meta({ description: '`transcription`: speech is transcribed and not answered' })
})

export const callParamsSchema = z.strictObject({
  call_id: z.string().max(200).meta({ description: 'Id of a call', pattern: '^\\S+$', examples: ['rtc_1'] }), verb: z.enum(['accept', 'hangup', 'refer', 'reject']).meta({ examples: ['accept'] })
})

export const secretBodySchema = z.looseObject({
  session: z.looseObject({
    type: z.enum(['realtime', 'transcription']).default('realtime'),
    model: z.string().optional().meta({ pattern: '\\S', description: 'What answers' })
  }).optional().meta({ description: 'As in `session.update`' }),
  expires_after: z.looseObject({
    seconds: z.number().int().min(10).max(7_200).default(600)
  }).optional()
})

export const secretSchema = z.strictObject({
  value: z.string().meta({ description: 'Key for the browser' }),
  expires_at: z.number().int().meta({ description: 'Epoch seconds after which it opens no session' }),
  session: z.looseObject({ id: z.string(), type: z.enum(['realtime', 'transcription']) })
})
