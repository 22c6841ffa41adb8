import type { Json } from '../over-chat/ref.js'
import { rateOf, type SoundFormat } from './sound/sound-format.js'
import type { Settings } from './settings.js'

/** The settings as the API words them. Pure. */
export function sessionWords (settings: Settings, id: string, expiresAt: number): Json {
  const { type, transcription, turns } = settings
  const input = {
    format: formatWords(settings.inputFormat), transcription, noise_reduction: null, turn_detection: turns?.told ?? null
  }
  const object = type === 'realtime' ? 'realtime.session' : 'realtime.transcription_session'
  const head = { type, object, id, expires_at: expiresAt, include: null }
  if (type === 'transcription') return { ...head, audio: { input } }
  return {
    ...head,
    model: settings.model,
    output_modalities: [settings.modality],
    instructions: settings.instructions,
    tools: settings.tools,
    tool_choice: settings.toolChoice,
    max_output_tokens: settings.maxOutputTokens,
    tracing: null,
    truncation: 'disabled',
    prompt: null,
    ...settings.temperature === null ? {} : { temperature: settings.temperature },
    ...settings.effort === null ? {} : { reasoning: { effort: settings.effort } },
    audio: {
      input,
      output: {
        format: formatWords(settings.outputFormat), voice: settings.voice, speed: settings.speed ?? 1,
        ...settings.speechModel === null ? {} : { model: settings.speechModel }
      }
    }
  }
}

export function formatWords (format: SoundFormat): Json {
  return format === 'audio/pcm' ? { type: format, rate: rateOf(format) } : { type: format }
}
