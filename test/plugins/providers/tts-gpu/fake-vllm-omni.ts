import type { EngineScript, SeenRequest } from '../../../../kernel/testing/index.js'
import { mp3Of, pcmOf, spokenSeconds, wavHead, wavOf } from '../audio/sound.js'

/** vLLM-Omni's speech API with a Qwen3-TTS CustomVoice model, as its documentation describes it. */

export const VOICES = ['aiden', 'dylan', 'eric', 'ono_anna', 'ryan', 'serena', 'sohee', 'uncle_fu', 'vivian']
const LANGUAGES = ['Auto', 'Chinese', 'English', 'Japanese', 'Korean', 'German', 'French', 'Russian', 'Portuguese', 'Spanish', 'Italian']
const TYPES: Readonly<Record<string, string>> = { wav: 'audio/wav', mp3: 'audio/mpeg', flac: 'audio/flac', pcm: 'audio/pcm', opus: 'audio/ogg' }

/** @param served what the server was started with as `--served-model-name` */
export function vllmOmni (served: string): (request: SeenRequest) => EngineScript {
  return ({ method, url, body }) => {
    if (method === 'GET' && url === '/v1/audio/voices') return json(200, { voices: VOICES, uploaded_voices: [] })
    if (method === 'GET' && url === '/v1/models') return json(200, { object: 'list', data: [{ id: served, object: 'model', owned_by: 'vllm' }] })
    if (method !== 'POST' || url !== '/v1/audio/speech') return json(404, { detail: 'Not Found' })
    return speech(JSON.parse(body.toString()) as Record<string, unknown>, served)
  }
}

function speech (sent: Record<string, unknown>, served: string): EngineScript {
  const { model = served, input, voice = 'vivian', response_format: format = 'wav', speed = 1, language = 'Auto' } = sent
  const { task_type: task = 'CustomVoice', stream = false, stream_format: streamFormat = stream === true ? 'sse' : null } = sent
  if (model !== served) return refusal(404, `The model \`${String(model)}\` does not exist.`, 'NotFoundError', 'model')
  if (typeof input !== 'string' || input.trim() === '') return refusal(400, 'Input text cannot be empty')
  if (typeof speed !== 'number' || speed < 0.25 || speed > 4) return refusal(400, 'speed must be between 0.25 and 4.0')
  if (typeof format !== 'string' || !(format in TYPES)) return refusal(400, `Unsupported response_format: ${String(format)}`)
  if (!LANGUAGES.includes(String(language))) return refusal(400, `Invalid language '${String(language)}'. Supported: ${LANGUAGES.join(', ')}`)
  if (task !== 'CustomVoice') return refusal(400, `Qwen3-TTS CustomVoice checkpoint does not support task_type='${String(task)}'.`)
  if (!VOICES.includes(String(voice).toLowerCase())) return refusal(400, `Invalid voice '${String(voice)}'. Supported: ${VOICES.join(', ')}`)
  if (streamFormat !== null && ((format !== 'pcm' && format !== 'wav') || speed !== 1)) {
    return refusal(400, 'Streaming requires response_format \'pcm\' or \'wav\' and speed 1.0')
  }
  return answer(input, speed, format, streamFormat)
}

function answer (input: string, speed: number, format: string, streamFormat: unknown): EngineScript {
  const seconds = spokenSeconds(input, speed)
  const pieces = Array.from({ length: 4 }, () => pcmOf(seconds / 4))
  if (streamFormat === 'sse') {
    const events = [
      ...pieces.map(piece => ({ type: 'speech.audio.delta', audio: piece.toString('base64'), response_format: format })),
      { type: 'speech.audio.done', usage: { input_tokens: input.length, output_tokens: 4, total_tokens: input.length + 4 } }
    ]
    return { headers: { 'content-type': 'text/event-stream' }, chunks: events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`) }
  }
  const headers = { 'content-type': TYPES[format]! }
  if (streamFormat === 'audio') return { headers, chunks: [...format === 'wav' ? [wavHead(0, undefined, false)] : [], ...pieces] }
  if (format === 'wav') return { headers, chunks: [wavOf(seconds)] }
  if (format === 'pcm') return { headers, chunks: [pcmOf(seconds)] }
  if (format === 'mp3') return { headers, chunks: [mp3Of(seconds)] }
  throw new Error(`the fake has no encoder for ${format}`)
}

function json (status: number, body: unknown): EngineScript {
  return { status, headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(body)] }
}

function refusal (code: number, message: string, type = 'BadRequestError', param: string | null = null): EngineScript {
  return json(code, { error: { message, type, param, code } })
}
