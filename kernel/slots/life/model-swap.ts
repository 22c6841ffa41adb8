import {
  messageOf, svcError, type ImagePullStatus, type LaunchTrouble, type NamedSlotConfig, type SlotStatus, type SvcError
} from '../../contract/index.js'
import { abortable } from '../../async/waiting.js'
import type { ResolvedImage } from '../../runtime/image/image-manifest.js'
import { isServing } from '../schedule/slot-machine.js'
import type { SlotPlans } from '../plan/slot-plans.js'
import type { Swap } from '../plan/swaps.js'

export interface SwapDeps {
  readonly plans: SlotPlans
  /** Plans of the same surroundings with swaps of their own: what would be launched, while what runs goes on. */
  readonly trialPlans: () => SlotPlans
  /** The profile that goes with a model; null is the slot's own. */
  readonly profileFor: (slot: NamedSlotConfig, model: string) => string | null
  /** What a writer of the slot's file would be refused with, for the sake of this model. */
  readonly refusals: (slot: NamedSlotConfig, model: string, profile: string | null) => readonly string[]
  /** The context size of a model that only its file tells; null leaves it to the launch. */
  readonly contextFor: (slot: NamedSlotConfig, model: string) => Promise<number | null>
  readonly status: (name: string) => SlotStatus
  /** Makes the image ready, or tells why it cannot be had. */
  readonly fetchImage: (name: string, image: ResolvedImage, signal: AbortSignal) => Promise<ImagePullStatus>
  /** Writes down what is in force. */
  readonly record: (name: string) => Promise<void>
  /** Null where engines run as processes. */
  readonly imageOf: (plans: SlotPlans, name: string) => ResolvedImage | null
  /** Verbs on the slot, once it may have its device. */
  readonly restart: (name: string) => Promise<void>
  readonly load: (name: string) => Promise<void>
  readonly unload: (name: string) => Promise<void>
}

/**
 * Puts another model in force. All that can be known before is asked before anything stops; when the new engine does not
 * come up nonetheless, the slot goes back to what it ran, and the error says so. A caller who leaves changes nothing. What a
 * caller was told outlasts a kill of the gateway.
 */
export async function swapModel (deps: SwapDeps, name: string, model: string, signal: AbortSignal): Promise<void> {
  const { plans } = deps
  const slot = plans.slot(name)
  const wanted = model === slot.model.default
    ? null
    : { model, profile: deps.profileFor(slot, model), contextSize: await abortable(deps.contextFor(slot, model), signal) }
  await assertLaunchable(deps, slot, model, wanted, signal)
  signal.throwIfAborted()
  const before = plans.swaps.of(name)
  const { modelId: formerly, state } = deps.status(name)
  plans.swaps.put(name, wanted)
  const modelId = plans.modelId(name)
  const work = deps.restart(name).catch(async (error: unknown) => {
    // a later swap has taken over, or the gateway stops: there is nothing to go back to
    if (!isFailure(error) || !plans.swaps.restore(name, wanted, before)) throw error
    throw await goneBack(deps, name, model, isServing(state) ? formerly : null, error as SvcError)
  }).finally(() => deps.record(name))
  work.catch(() => undefined) // a caller who leaves does not hear of it; the slot's state tells
  await abortable(work, signal)
  if (deps.status(name).modelId === modelId) return
  throw svcError('slot.stopped', `slot '${name}' got another model while '${model}' was loading`, { details: { slot: name, model } })
}

async function assertLaunchable (
  deps: SwapDeps, slot: NamedSlotConfig, model: string, wanted: Swap | null, signal: AbortSignal
): Promise<void> {
  const { name } = slot
  const trial = deps.trialPlans()
  trial.swaps.put(name, wanted)
  // refusals of the configuration keep their code and the field that they name
  trial.effective(name)
  const troubles: readonly LaunchTrouble[] = await abortable(trial.troubles(name), signal)
  const refusals = deps.refusals(slot, model, wanted?.profile ?? null)
  const reasons = [...new Set([...refusals, ...troubles.map(({ message }) => message)])]
  if (reasons.length > 0) throw notGiven(name, model, reasons, deps.status(name))
  const image = deps.imageOf(trial, name)
  if (image === null) return
  const { state, error } = await deps.fetchImage(name, image, signal)
  if (state !== 'present' && state !== 'completed') throw notGiven(name, model, [error ?? `image ${image.ref} is missing`], deps.status(name))
}

/** The slot that served serves again; one that did not is left where a request finds it. */
async function goneBack (deps: SwapDeps, name: string, model: string, formerly: string | null, error: SvcError): Promise<Error> {
  const failed = `slot '${name}' could not switch to '${model}': ${error.message}`
  const details = { ...error.details, slot: name, model, restored: formerly }
  if (formerly === null) {
    await deps.unload(name).catch(() => undefined) // told by its own state
    return svcError('slot.load_failed', `${failed}; the slot keeps its previous model`, { details, cause: error })
  }
  try {
    await deps.load(name)
    return svcError('slot.load_failed', `${failed}; it is back on '${formerly}'`, { details, cause: error })
  } catch (again) {
    return svcError('slot.load_failed', `${failed}; and '${formerly}' did not start again: ${messageOf(again)}`,
      { details: { ...details, restored: null }, cause: error })
  }
}

function notGiven (slot: string, model: string, reasons: readonly string[], { state, modelId }: SlotStatus): SvcError {
  const runs = isServing(state) && modelId !== null ? `; it keeps running '${modelId}'` : ''
  return svcError('slot.config_error', `slot '${slot}' cannot switch to '${model}': ${reasons.join('; ')}${runs}`,
    { param: 'model', details: { slot, model, reasons } })
}

function isFailure (error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'slot.load_failed' || code === 'slot.crash_looping' || code === 'model.not_found'
}
