import { isObject, type Json } from '../over-chat/ref.js'
import type { ServerEvent } from './response.js'

const names: Readonly<Record<string, string>> = {
  'conversation.item.added': 'conversation.item.created',
  'response.output_text.delta': 'response.text.delta',
  'response.output_text.done': 'response.text.done',
  'response.output_audio.delta': 'response.audio.delta',
  'response.output_audio.done': 'response.audio.done',
  'response.output_audio_transcript.delta': 'response.audio_transcript.delta',
  'response.output_audio_transcript.done': 'response.audio_transcript.done'
}
const parts: Readonly<Record<string, string>> = { output_text: 'text', output_audio: 'audio' }
/** What sessions did not have. */
const newer = ['include', 'tracing', 'truncation']
const formats: Readonly<Record<string, string>> = { 'audio/pcm': 'pcm16', 'audio/pcmu': 'g711_ulaw', 'audio/pcma': 'g711_alaw' }

/** An event in the words that the API had before it was final; null for one that it did not have. Pure. */
export function betaEvent (event: ServerEvent): ServerEvent | null {
  const { type, item, response, session } = event
  if (type === 'conversation.item.done') return null
  if (isObject(session)) {
    const isTranscription = session.type === 'transcription'
    return { ...event, type: isTranscription ? `transcription_${type}` : type, session: betaSession(session) }
  }
  return {
    ...event,
    type: names[type] ?? type,
    ...isObject(item) ? { item: betaItem(item) } : {},
    ...isObject(response) ? { response: betaResponse(response) } : {}
  }
}

function betaItem (item: Json): Json {
  if (!Array.isArray(item.content)) return item
  const content = (item.content as readonly Json[]).map(part => ({ ...part, type: parts[String(part.type)] ?? part.type }))
  return { ...item, content }
}

function betaResponse (response: Json): Json {
  const { output_modalities: modalities, max_output_tokens: most, audio, output, ...rest } = response
  const { output: sound } = audio as { readonly output: Json }
  return {
    ...rest,
    output: (output as readonly Json[]).map(betaItem),
    modalities: betaModalities(modalities),
    voice: sound.voice,
    output_audio_format: betaFormat(sound.format),
    max_output_tokens: most
  }
}

function betaSession (session: Json): Json {
  const { type, audio, output_modalities: modalities, max_output_tokens: most, ...others } = session
  const rest = Object.fromEntries(Object.entries(others).filter(([key]) => !newer.includes(key)))
  const { input, output } = audio as { readonly input: Json, readonly output?: Json }
  return {
    ...rest,
    ...type === 'transcription' ? {} : { modalities: betaModalities(modalities), max_response_output_tokens: most },
    input_audio_format: betaFormat(input.format),
    input_audio_transcription: input.transcription,
    input_audio_noise_reduction: null,
    turn_detection: input.turn_detection,
    ...output === undefined ? {} : { voice: output.voice, speed: output.speed, output_audio_format: betaFormat(output.format) }
  }
}

function betaModalities (modalities: unknown): readonly string[] {
  return Array.isArray(modalities) && modalities.includes('audio') ? ['audio', 'text'] : ['text']
}

function betaFormat (format: unknown): unknown {
  return isObject(format) ? formats[String(format.type)] : format
}
