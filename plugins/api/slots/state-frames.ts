import { deviceBackends, type SlotService, type SlotStatus, type SseEvent } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { stateSchema } from './schemas.js'

export type SlotStateFrame = z.output<typeof stateSchema>

export function stateOf (slots: SlotService, name: string): SlotStateFrame {
  return frameOf(slots, slots.status(name))
}

/** The state now and after every change that shows here, until the client leaves or the slot is deleted. */
export async function* stateFrames (slots: SlotService, name: string, signal: AbortSignal): AsyncGenerator<SseEvent> {
  let last = ''
  for await (const status of slots.watch(name, signal)) {
    if (!slots.names().includes(name)) return
    const data = frameOf(slots, status)
    const text = JSON.stringify(data)
    if (text === last) continue
    last = text
    yield { event: 'state', data }
  }
}

function frameOf (slots: SlotService, { name, state, port, modelId, message, since }: SlotStatus): SlotStateFrame {
  return { name, state, port, model_id: modelId, backend: deviceBackends[slots.device(name)], message, updated_at: since / 1000 }
}
