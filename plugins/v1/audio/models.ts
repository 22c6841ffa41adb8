import type { SlotService } from 'svc-gateway/plugin'
import type { AudioModels } from './schemas.js'

const states: Readonly<Record<string, 'loaded' | 'loading'>> = {
  ready: 'loaded', serving: 'loaded', idle: 'loaded', pulling: 'loading', starting: 'loading', warming: 'loading'
}

/** The slots that speak or listen. The list stands twice, since clients of this route look for it under either name. */
export function audioModels (slots: SlotService): AudioModels {
  const models = slots.names().flatMap(name => {
    const { type, enabled } = slots.config(name)
    if (!enabled || (type !== 'tts' && type !== 'transcription')) return []
    const { state, modelId } = slots.status(name)
    return [{
      id: name, object: 'model' as const, owned_by: 'svc', name: modelId === null ? name : `${name} · ${modelId}`, type,
      status: states[state] ?? 'unloaded' as const
    }]
  })
  return { object: 'list', data: models, models }
}
