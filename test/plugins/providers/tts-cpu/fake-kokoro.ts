import type { EngineScript, SeenRequest } from '../../../../kernel/testing/index.js'
import { mp3Of, pcmOf, spokenSeconds, wavHead, wavOf } from '../audio/sound.js'

/**
 * Kokoro-FastAPI's HTTP protocol, v0.6.0, read from github.com/remsky/Kokoro-FastAPI: api/src/routers/openai_compatible.py
 * at 032990d, api/src/services/tts_service.py at 5dbf2e2, api/src/inference/base.py at 2dc9b81, api/src/structures/schemas.py
 * at 153217a; its names for OpenAI's voices are those that CHANGELOG.md has for this version. From v0.8 on a blank input is
 * a 400.
 */

const MODELS = ['tts-1', 'tts-1-hd', 'kokoro', 'gpt-4o-mini-tts']
export const VOICES = [
  'af_bella', 'af_heart', 'af_nicole', 'af_sarah', 'af_sky', 'am_adam', 'am_michael', 'bf_emma', 'bf_isabella', 'bm_george'
]
/** OpenAI's names for some of them. */
const ALIASES: Readonly<Record<string, string>> = {
  alloy: 'am_adam', ash: 'af_nicole', coral: 'bf_emma', echo: 'af_bella', fable: 'af_sarah', nova: 'bf_isabella', onyx: 'bm_george',
  sage: 'am_michael', shimmer: 'af_sky'
}
const TYPES: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg', opus: 'audio/opus', aac: 'audio/aac', flac: 'audio/flac', wav: 'audio/wav', pcm: 'audio/pcm'
}
const JSON_TYPE = { 'content-type': 'application/json' }

interface Order {
  readonly input: string
  readonly speed: number
  readonly format: string
  readonly stream: boolean
}

export function kokoro ({ method, url, body }: SeenRequest): EngineScript {
  if (method === 'GET' && url === '/v1/audio/voices') return json(200, { voices: VOICES.map(id => ({ id, name: id })) })
  if (method === 'GET' && url === '/v1/models') return json(200, { object: 'list', data: MODELS.map(id => ({ id, object: 'model', created: 1_686_935_002, owned_by: 'kokoro' })) })
  if (method !== 'POST' || url !== '/v1/audio/speech') return json(404, { detail: 'Not Found' })
  const order = read(body)
  return 'input' in order ? speak(order) : order
}

function read (body: Buffer): Order | EngineScript {
  let sent: Record<string, unknown>
  try {
    sent = JSON.parse(body.toString()) as Record<string, unknown>
  } catch {
    return unprocessable('json_invalid', ['body', 0], 'JSON decode error')
  }
  const { model = 'kokoro', input, voice = 'af_heart', response_format: format = 'mp3', speed = 1, stream = true } = sent
  if (input === undefined) return unprocessable('missing', ['body', 'input'], 'Field required')
  for (const [key, value] of Object.entries({ model, input, voice })) {
    if (typeof value !== 'string') return unprocessable('string_type', ['body', key], 'Input should be a valid string')
  }
  if (typeof format !== 'string' || !(format in TYPES)) {
    return unprocessable('literal_error', ['body', 'response_format'], 'Input should be \'mp3\', \'opus\', \'aac\', \'flac\', \'wav\' or \'pcm\'')
  }
  if (typeof speed !== 'number') return unprocessable('float_parsing', ['body', 'speed'], 'Input should be a valid number')
  if (speed < 0.25) return unprocessable('greater_than_equal', ['body', 'speed'], 'Input should be greater than or equal to 0.25')
  if (speed > 4) return unprocessable('less_than_equal', ['body', 'speed'], 'Input should be less than or equal to 4')
  if (!MODELS.includes(model as string)) return refused('invalid_model', `Unsupported model: ${String(model)}`)
  // an empty name is split into nothing, which it then looks at
  if ((voice as string).replaceAll(' ', '') === '') return failed('string index out of range')
  const problem = voiceProblem(voice as string)
  if (problem !== null) return refused('validation_error', problem)
  if ((input as string).trim() === '') {
    if (stream === false) return failed('list index out of range')
    // its head is gone by then: the body breaks off
    return { headers: headersOf(format, true), chunks: [Buffer.alloc(0)], dieAfter: 1 }
  }
  return { input: input as string, speed, format, stream: stream !== false }
}

/** Voices may be mixed: `af_bella(2)+af_sky(1)`. */
function voiceProblem (voice: string): string | null {
  const mixed = voice.replaceAll(' ', '')
  if (/^[+-]|[+-]$|[+-]{2,}/.test(mixed)) return 'Voice combination contains empty combine items'
  for (const item of mixed.split(/[-+]/)) {
    const name = item.split('(')[0]!
    if (!VOICES.includes(ALIASES[name] ?? name)) return `Voice '${name}' not found. Available voices: ${[...VOICES].sort().join(', ')}`
  }
  return null
}

/** A streamed answer comes sentence by sentence; a WAV file that is streamed does not know its length. */
function speak ({ input, speed, format, stream }: Order): EngineScript {
  const seconds = spokenSeconds(input, speed)
  const headers = headersOf(format, stream)
  const sentences = input.split(/(?<=[.!?])\s+/).map(sentence => spokenSeconds(sentence, speed))
  if (format === 'pcm') return { headers, chunks: stream ? sentences.map(each => pcmOf(each)) : [pcmOf(seconds)] }
  if (format === 'wav') return { headers, chunks: stream ? [wavHead(0, undefined, false), ...sentences.map(each => pcmOf(each))] : [wavOf(seconds)] }
  if (format === 'mp3') return { headers, chunks: stream ? sentences.map(mp3Of) : [mp3Of(seconds)] }
  throw new Error(`the fake has no encoder for ${format}`)
}

function headersOf (format: string, stream: boolean): Record<string, string> {
  return {
    'content-type': TYPES[format]!,
    'content-disposition': `attachment; filename=speech.${format}`,
    'cache-control': 'no-cache',
    ...stream ? { 'x-accel-buffering': 'no' } : {}
  }
}

function json (status: number, body: unknown): EngineScript {
  return { status, headers: JSON_TYPE, chunks: [JSON.stringify(body)] }
}

function refused (error: string, message: string): EngineScript {
  return json(400, { detail: { error, message, type: 'invalid_request_error' } })
}

function failed (message: string): EngineScript {
  return json(500, { detail: { error: 'processing_error', message, type: 'server_error' } })
}

function unprocessable (type: string, loc: readonly unknown[], msg: string): EngineScript {
  return json(422, { detail: [{ type, loc, msg }] })
}
