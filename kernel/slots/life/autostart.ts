import type { ConfigService, SlotService } from '../../contract/index.js'
import { needsModel } from '../plan/needs-model.js'

/**
 * Loads every enabled slot that has a model, one after the other, in configuration order. A
 * slot that fails is left to its next request; one that `mayStart` refuses, as image slots are while the GPU serves
 * language models, too. What it gives ends the wait for that slot. Never rejects.
 */
export async function autostart (
  slots: SlotService, config: ConfigService, mayStart: (name: string) => AbortSignal | null, signal: AbortSignal
): Promise<void> {
  if (!config.snapshot.svc.slots.autostart) return
  for (const name of slots.names()) {
    if (signal.aborted) return
    try {
      const slot = slots.config(name)
      const provider = slots.provider(name)
      if (!slot.enabled || slot.served_by !== null || provider === null) continue
      const start = mayStart(name)
      if (start === null || start.aborted) continue
      const hasModel = slots.status(name).modelId !== null || !needsModel(provider, slot)
      if (hasModel) await slots.ensureReady(name, AbortSignal.any([signal, start]))
    } catch {
      // told by the slot's own state and log
    }
  }
}
