import type { EngineScript } from '../../../../kernel/testing/index.js'
import { hear, readForm, srtOf, textOf, vttOf, type Heard } from './transcript.js'

/**
 * whisper.cpp's `whisper-server`, as version 1.9.5 answers: measured, with a model that has no weights
 * (whisper-server.test.ts runs both). It knows no `model` and no `stream`, and takes an unknown format for json.
 */
export async function whisperServer (body: Buffer, contentType: string): Promise<EngineScript> {
  const form = await readForm(body, contentType)
  const heard = form.file === null ? null : hear(form.file)
  if (heard === null) return { status: 400, headers: { 'content-type': 'text/plain' }, chunks: ['Invalid request'] }
  if (Number.isNaN(parseFloat(form.text('temperature') ?? '0'))) {
    return { status: 500, headers: { 'content-type': 'text/plain' }, chunks: ['500 Internal Server Error\nstof'] }
  }
  return answer(heard, form.text('response_format') ?? 'json', form.text('language') ?? 'auto', form.text('translate') === 'true')
}

function answer (heard: Heard, format: string, language: string, translates: boolean): EngineScript {
  const text = `${textOf(heard)}\n`
  switch (format) {
    case 'text': return { headers: { 'content-type': 'text/html; charset=utf-8' }, chunks: [text] }
    case 'srt': return { headers: { 'content-type': 'application/x-subrip' }, chunks: [srtOf(heard)] }
    case 'vtt': return { headers: { 'content-type': 'text/vtt' }, chunks: [vttOf(heard)] }
    case 'verbose_json': return json({
      task: translates ? 'translate' : 'transcribe',
      language: language === 'auto' ? 'english' : language,
      duration: heard.seconds,
      text,
      segments: heard.segments.map((segment, id) => ({
        id, ...segment, tokens: [50364], temperature: 0, avg_logprob: -0.2, no_speech_prob: 0.01
      }))
    })
    default: return json({ text })
  }
}

function json (body: unknown): EngineScript {
  return { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(body)] }
}
