import { svcError } from 'svc-gateway/plugin'
import { comfyuiError } from './errors.js'
import { imageSlot, lookAt, mustArbitrate, type ImageSlotServices } from './image-slot.js'
import type { OrderWork } from './orders.js'
import type { SwitchoverAnswer, SwitchoverBody } from './schemas.js'
import { modeName } from './status.js'

/**
 * Gives the GPU to the image engine or back. Answers when the switch has begun, and resolves when it is
 * over; rejects when it did not come about. Without `force` nothing that works is stopped.
 */
export async function switchOver (
  services: ImageSlotServices, { mode, force = false, pin }: SwitchoverBody, { answer, note, signal }: OrderWork<SwitchoverAnswer>
): Promise<void> {
  const { gpu } = services
  const wanted = mode === 'generation' ? 'img' : 'llm'
  note({ before: stateOf(services) })
  if (wanted === 'img') mustArbitrate(services)
  if (wanted === 'llm' && pin === true) {
    throw comfyuiError('comfyui.invalid_pin', '`pin` keeps image mode: it needs mode generation', { param: 'pin' })
  }
  mayBegin(services, wanted, force)
  if (wanted === 'llm' && gpu.status().mode === 'img') {
    if (!force) await mustBeIdle(services, signal)
    if (pin === false) await gpu.pin(false)
    // it may have begun to change hands meanwhile
    mayBegin(services, wanted, force)
  }
  const begun = gpu.switchTo(wanted, { force, ...(pin === undefined ? {} : { pin }) })
  answer({ status: begun ? 'switching' : 'noop', mode })
  if (!begun) return note({ message: `the GPU is already in ${mode} mode` })
  await gpu.settled(signal)
  note({ after: stateOf(services) })
  const { mode: now, error } = gpu.status()
  if (now === wanted) return
  throw svcError('gpu.switch_failed', `${mode} mode was not entered: ${error ?? 'the other mode was requested in the meantime'}`, { details: { reason: error } })
}

/** A switch under way is turned round by force alone; one in the same direction is not begun twice. */
function mayBegin ({ gpu }: ImageSlotServices, wanted: 'img' | 'llm', force: boolean): void {
  const { switching, mode } = gpu.status()
  if (!switching || (force && mode !== wanted)) return
  const target = modeName(mode)
  throw comfyuiError('comfyui.switch_in_progress', `the GPU is switching to ${target} mode; wait for it, or reverse it with force`, { details: { target } })
}

async function mustBeIdle (services: ImageSlotServices, signal: AbortSignal): Promise<void> {
  const slot = imageSlot(services)
  if (slot === null) return
  const { jobs } = await lookAt(services, services.slots.client(slot.name), signal)
  const { inFlight, waiting } = services.slots.status(slot.name)
  const running = Math.max(jobs.running, inFlight - jobs.pending)
  const pending = jobs.pending + waiting
  if (running + pending === 0) return
  throw comfyuiError('comfyui.busy', `the image engine has ${running} jobs running and ${pending} waiting; wait for them, cancel them with POST /api/comfyui/render/cancel, or use force`,
    { details: { queue: { running, pending } } })
}

function stateOf ({ gpu }: ImageSlotServices): Record<string, unknown> {
  const { mode, pinned, saved_llm_slots: saved } = gpu.status()
  return { mode: modeName(mode), pinned, saved_llm_slots: [...saved] }
}
