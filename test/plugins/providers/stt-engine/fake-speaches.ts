import type { EngineScript } from '../../../../kernel/testing/index.js'
import { hear, readForm, srtOf, textOf, vttOf, type Heard } from './transcript.js'

/**
 * speaches' transcription route after 0.8.3, read from github.com/speaches-ai/speaches: src/speaches/routers/stt.py at
 * b28591f, executors/whisper.py at 0d7d569, dependencies.py at 46e77dc.
 */

const DETAILS = { seek: 0, tokens: [50364], temperature: 0, avg_logprob: -0.2, compression_ratio: 1.1, no_speech_prob: 0.01 }
const FORMATS = ['text', 'json', 'verbose_json', 'srt', 'vtt']

/** @param installed what was preloaded */
export async function speaches (body: Buffer, contentType: string, installed: string): Promise<EngineScript> {
  const form = await readForm(body, contentType)
  const model = form.text('model')
  const format = form.text('response_format') ?? 'json'
  const temperature = form.text('temperature') ?? '0'
  if (form.file === null) return unprocessable('missing', ['body', 'file'], 'Field required')
  if (model === null) return unprocessable('missing', ['body', 'model'], 'Field required')
  if (!FORMATS.includes(format)) {
    return unprocessable('literal_error', ['body', 'response_format'], 'Input should be \'text\', \'json\', \'verbose_json\', \'srt\' or \'vtt\'')
  }
  if (Number.isNaN(Number(temperature))) return unprocessable('float_parsing', ['body', 'temperature'], 'Input should be a valid number')
  if (form.file.length === 0) return json(400, { detail: 'Failed to decode audio. The provided file is likely empty.' })
  const heard = hear(form.file)
  if (heard === null) return json(415, { detail: 'Failed to decode audio. The provided file type is not supported.' })
  if (model !== installed) return json(404, { detail: `Model '${model}' is not installed locally. You can download the model using \`POST /v1/models\`` })
  return ['true', '1', 'on', 'yes'].includes(form.text('stream') ?? '') ? streamed(heard) : plain(heard, format, form.text('language') ?? 'en')
}

function streamed (heard: Heard): EngineScript {
  const events = [
    ...heard.segments.map(({ text }) => ({ delta: text, type: 'transcript.text.delta', logprobs: null })),
    // it joins segments that its deltas have used up
    { text: '', type: 'transcript.text.done', logprobs: null }
  ]
  const chunks = events.map(event => `data: ${JSON.stringify(event)}\n\n`)
  return { headers: { 'content-type': 'text/event-stream; charset=utf-8' }, chunks, everyMs: 5 }
}

function plain (heard: Heard, format: string, language: string): EngineScript {
  const text = textOf(heard)
  switch (format) {
    case 'text': return { headers: { 'content-type': 'text/plain; charset=utf-8' }, chunks: [text] }
    case 'srt': return { headers: { 'content-type': 'text/plain; charset=utf-8' }, chunks: [srtOf(heard)] }
    case 'vtt': return { headers: { 'content-type': 'text/vtt; charset=utf-8' }, chunks: [vttOf(heard)] }
    case 'json': return json(200, { text, logprobs: null, usage: null })
    default: return json(200, {
      duration: heard.seconds,
      language,
      text,
      segments: heard.segments.map((segment, id) => ({ id, ...segment, ...DETAILS })),
      words: null,
      usage: null
    })
  }
}

function json (status: number, body: unknown): EngineScript {
  return { status, headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(body)] }
}

function unprocessable (type: string, loc: readonly string[], msg: string): EngineScript {
  return json(422, { detail: [{ type, loc, msg }] })
}
