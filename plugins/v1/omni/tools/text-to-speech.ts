import { z } from 'zod'
import { askEngine } from '../engine-call.js'
import { defineOmniTool, slotFor, type OfferTool } from '../tool.js'

/** Speaks a text, with the defaults of the speech slot. The sound goes to the client; the model hears how long it is. */
export const textToSpeech: OfferTool = context => {
  const slot = slotFor(context.slots, 'tts')
  return slot === null ? null : defineOmniTool({
    name: 'text_to_speech',
    description: 'Speak a text aloud. The recording reaches the user together with your answer.',
    parameters: z.object({
      input: z.string().min(1).describe('The text to speak'),
      voice: z.string().optional().describe('Name of the voice')
    }),
    run: async ({ input, voice }, signal) => {
      const body = Buffer.from(JSON.stringify({
        model: slot.name,
        input,
        voice: voice ?? slot.default_voice ?? undefined,
        speed: slot.default_speed ?? undefined,
        response_format: slot.default_response_format ?? undefined
      }))
      const { bytes, contentType } = await askEngine(context, { surface: 'speech', path: '/audio/speech', body }, signal)
      return {
        told: { content_type: contentType, byte_length: bytes.length, note: 'the recording is delivered to the user with your answer' },
        audio: { data: bytes, contentType, transcript: input }
      }
    }
  })
}
