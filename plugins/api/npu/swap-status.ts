import type { GatewayEvent, SlotState, SlotStatus } from 'svc-gateway/plugin'
import type { SwapStatus } from './schemas.js'

const coming: ReadonlySet<SlotState> = new Set(['pulling', 'starting', 'warming'])

/**
 * What happens to the engine of the NPU. Pure.
 * @param anchors slots with an engine of their own there
 * @param events `slot.state`, oldest first
 */
export function swapStatus (anchors: readonly SlotStatus[], events: readonly GatewayEvent[]): SwapStatus {
  const arriving = anchors.find(({ state }) => coming.has(state))
  if (arriving !== undefined) {
    return { in_progress: true, from_model: formerModel(arriving.name, events), to_model: arriving.modelId }
  }
  const leaving = anchors.find(({ state }) => state === 'unloading')
  if (leaving !== undefined) return { in_progress: true, from_model: leaving.modelId, to_model: null }
  return { in_progress: false, from_model: null, to_model: null }
}

/** The model of the engine that made way for the one that is coming. */
function formerModel (slot: string, events: readonly GatewayEvent[]): string | null {
  const own = events.filter(({ data }) => data.slot === slot).reverse()
  const between = own.findIndex(({ data }) => !coming.has(data.to as SlotState))
  if (own[between]?.data.restarting !== true) return null
  const left = own.slice(between).find(({ data }) => data.to === 'unloading')
  return typeof left?.data.model_id === 'string' ? left.data.model_id : null
}
