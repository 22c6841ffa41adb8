import { z } from 'zod'
import { askEngine } from '../engine-call.js'
import { defineOmniTool, slotFor, type OfferTool } from '../tool.js'

const answerSchema = z.looseObject({ text: z.string() })

/** Writes down what is said in a recording of the conversation. */
export const transcribeAudio: OfferTool = context => {
  const slot = slotFor(context.slots, 'transcription')
  return slot === null ? null : defineOmniTool({
    name: 'transcribe_audio',
    description: 'Write down what is said in a recording that the user attached.',
    parameters: z.object({
      audio: z.string().min(1).describe('Name of the attachment, such as audio_1, or a data: URL'),
      language: z.string().optional().describe('Code of the spoken language, such as en')
    }),
    run: async ({ audio, language }, signal) => {
      const { data, format } = recording(audio)
      const form = new FormData()
      // before the file, so that an engine that reads in order has them in time
      form.append('model', context.dispatch.target(slot.name, 'transcription')?.modelId ?? slot.name)
      if (language !== undefined) form.append('language', language)
      form.append('response_format', 'json')
      form.append('file', new Blob([new Uint8Array(data)], { type: `audio/${format}` }), `audio.${format}`)
      const encoded = new Response(form)
      const contentType = encoded.headers.get('content-type')!
      const body = Buffer.from(await encoded.arrayBuffer())
      const request = { surface: 'transcription', path: '/audio/transcriptions', body, contentType, model: slot.name } as const
      const { bytes } = await askEngine(context, request, signal)
      return { told: { text: answerSchema.parse(JSON.parse(bytes.toString('utf8'))).text } }
    }
  })

  function recording (name: string): { readonly data: Buffer, readonly format: string } {
    const attachment = context.attachments.get(name)
    if (attachment?.kind === 'audio') return { data: Buffer.from(attachment.content, 'base64'), format: attachment.format }
    const url = /^data:audio\/([a-z0-9.+-]+)[^,]*;base64,(.+)$/is.exec(name)
    if (url !== null) return { data: Buffer.from(url[2]!, 'base64'), format: url[1]!.replace(/^x-/, '') }
    const known = [...context.attachments].filter(([, { kind }]) => kind === 'audio').map(([key]) => key)
    throw new Error(`there is no recording '${name.slice(0, 100)}'; attached are: ${known.join(', ') || 'none'}`)
  }
}
