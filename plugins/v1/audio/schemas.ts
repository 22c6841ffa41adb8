import { z } from 'zod'

export const speechBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id or upstream model', pattern: '\\S' }),
  input: z.string().meta({ description: 'The text to speak' }),
  voice: z.union([z.string(), z.looseObject({})]).optional().meta({ description: 'Default: the slot\'s `default_voice`, else the engine\'s' }),
  speed: z.number().optional().meta({ description: 'Default: the slot\'s `default_speed`, else 1' }),
  response_format: z.string().optional().meta({ description: 'mp3, wav, opus, flac, pcm, ... Default: the slot\'s `default_response_format`, else the engine\'s' })
})

const formShape = {
  file: z.string().meta({ format: 'binary', description: 'The audio; supported formats depend on the engine' }),
  model: z.string().meta({ description: 'Slot name, model id or upstream model; may be anywhere in the form', pattern: '\\S' }),
  prompt: z.string().optional(),
  response_format: z.string().optional().meta({ description: 'json, text, srt, vtt, verbose_json; support depends on the engine' }),
  temperature: z.number().optional()
}

export const translationFormSchema = z.looseObject(formShape)

export const transcriptionFormSchema = z.looseObject({
  ...formShape,
  language: z.string().optional(),
  stream: z.boolean().optional().meta({ description: 'Events `transcript.text.delta` and `transcript.text.done`, from engines that have them' })
})

/** The plain form; `response_format` and `stream` ask the engine for others. */
export const transcriptionSchema = z.looseObject({ text: z.string() })

const audioModelSchema = z.strictObject({
  id: z.string().meta({ description: 'Slot name, as `model` of a request takes it' }),
  object: z.literal('model'),
  owned_by: z.string(),
  name: z.string().meta({ description: 'For people' }),
  type: z.enum(['tts', 'transcription']),
  status: z.enum(['loaded', 'loading', 'unloaded']).meta({ description: 'Slots in any state can be requested' })
})

export const audioModelsSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(audioModelSchema),
  models: z.array(audioModelSchema).meta({ description: 'The same as `data`' })
})
export type AudioModels = z.output<typeof audioModelsSchema>

export const voicesQuerySchema = z.looseObject({
  model: z.string().optional().meta({ description: 'Slot name or model id; default: all speech slots' })
})

export const voicesSchema = z.strictObject({
  voices: z.array(z.looseObject({
    id: z.string().meta({ description: 'Voice, as `voice` of a speech request takes it' }),
    name: z.string(),
    model: z.string().meta({ description: 'Speech slot that has the voice' })
  })),
  sources: z.record(z.string(), z.enum(['live', 'offline'])).meta({ description: 'Per speech slot, whether it could be queried' })
})
export type Voices = z.output<typeof voicesSchema>
