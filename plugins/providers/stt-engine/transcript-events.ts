import type { EventEditor, StreamEvent } from 'svc-gateway/plugin'
import { z } from 'zod'

const deltaSchema = z.looseObject({ type: z.literal('transcript.text.delta'), delta: z.string() })
const doneSchema = z.looseObject({ type: z.literal('transcript.text.done'), text: z.string() })
const wholeSchema = z.looseObject({ text: z.string(), segments: z.array(z.looseObject({ text: z.string() })).nullish() })

/**
 * A transcript as events, for clients that read nothing else once they asked for a stream: whisper.cpp's server answers as
 * a whole, and speaches can end with a text that is empty although its deltas were not.
 */
export function transcriptEvents (): EventEditor {
  let heard = ''
  return {
    event ({ event, data }) {
      const value = parsed(data)
      const delta = deltaSchema.safeParse(value).data
      if (delta !== undefined) heard += delta.delta
      const done = doneSchema.safeParse(value).data
      if (done === undefined || done.text !== '' || heard.trim() === '') return null
      return [{ event, data: JSON.stringify({ ...done, text: heard.trim() }) }]
    },
    whole (contentType, body) {
      const isJson = contentType.includes('json')
      const answer = isJson ? wholeSchema.safeParse(parsed(body)).data : { text: body, segments: null }
      if (answer === undefined) return null
      const text = answer.text.trim()
      const pieces = (answer.segments ?? [{ text }]).map(segment => segment.text).filter(piece => piece !== '')
      return [...pieces.map(delta => eventOf('transcript.text.delta', { delta })), eventOf('transcript.text.done', { text })]
    }
  }
}

function eventOf (type: string, fields: object): StreamEvent {
  return { event: type, data: JSON.stringify({ type, ...fields }) }
}

function parsed (data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch {
    return null
  }
}
