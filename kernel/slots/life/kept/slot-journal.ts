import type { Clock, EventBus, Logger, SlotStatus } from '../../../contract/index.js'
import type { ScheduledSlot } from '../../schedule/scheduled-slot.js'
import { replicaPlace } from '../../schedule/replica-names.js'
import { isLoading, isServing } from '../../schedule/slot-machine.js'
import type { Swap } from '../../plan/swaps.js'
import type { SlotStateFile, SlotStateFiles } from './slot-state-file.js'

export interface SlotJournalDeps {
  readonly events: EventBus
  readonly log: Logger
  readonly clock: Clock
  readonly stateFiles: SlotStateFiles
}

/** `ready` to `serving` and back happens with every request: readers of the feed see it, the journal does not. */
export function isJournalled (core: ScheduledSlot, before: ScheduledSlot): boolean {
  const flips = core.engine === before.engine && isServing(core.state) && isServing(before.state) && core.state !== 'idle'
  return core.state !== before.state && !flips
}

/** Tells what becomes of slots: on the event bus, in the log, and in their state files. */
export class SlotJournal {
  readonly #deps: SlotJournalDeps
  /** When the load of a slot began, on the monotonic clock. */
  readonly #began = new Map<string, number>()

  constructor (deps: SlotJournalDeps) {
    this.#deps = deps
  }

  /** @param isReplica one of several of its slot, whose own state is told by those who know all of them */
  announce ({ name, modelId, adopted }: SlotStatus, core: ScheduledSlot, before: ScheduledSlot, isReplica: boolean): void {
    const { events, log } = this.#deps
    const { slot, index } = replicaPlace(name)
    const title = isReplica ? `${slot} replica ${index}` : name
    const message = `${title}: ${before.state} -> ${core.state}`
    const data = {
      slot,
      ...(isReplica ? { replica: index } : {}),
      from: before.state,
      to: core.state,
      ...(core.message === '' ? {} : { message: core.message }),
      // between two engines of one verb, as a swap has them
      ...(core.state === 'offline' && core.wanted ? { restarting: true } : {}),
      model_id: modelId
    }
    const failed = core.state === 'error'
    const type = isReplica ? 'slot.replica' : 'slot.state'
    events.emit({ type, severity: failed ? 'error' : 'info', source: `slot:${slot}`, message, data })
    const tookS = this.#loadTime(name, core, before)
    const line = stateLine(title, modelId, core, adopted ? null : tookS)
    const fields = tookS === null ? data : { ...data, took_s: tookS }
    if (failed) log.error({ ...fields, ...core.failure?.logTail.length ? { log_tail: core.failure.logTail } : {} }, line)
    else log[core.state === 'warming' || core.state === 'unloading' ? 'debug' : 'info'](fields, line)
  }

  /** Seconds to a tenth that a load took which ends now; null for anything else. */
  #loadTime (name: string, core: ScheduledSlot, before: ScheduledSlot): number | null {
    const now = this.#deps.clock.monotonic()
    if (isLoading(core.state)) {
      if (!isLoading(before.state)) this.#began.set(name, now)
      return null
    }
    const began = this.#began.get(name)
    this.#began.delete(name)
    return began === undefined || !isServing(core.state) ? null : Math.round((now - began) / 100) / 10
  }

  /**
   * @param swap in force, read back by `swapIn`
   * @param model that the slot's file names
   */
  note (
    status: SlotStatus, core: ScheduledSlot, { swap, model }: { readonly swap: Swap | null, readonly model: string | null }
  ): void {
    const { stateFiles, clock } = this.#deps
    stateFiles.note(status.name, {
      name: status.name,
      state: core.state,
      model_id: status.modelId,
      port: status.port,
      ports: status.ports,
      updated_at: clock.now() / 1000,
      last_used_at: status.lastUsedAt === null ? null : status.lastUsedAt / 1000,
      generation: core.generation,
      message: core.message,
      extra: {
        adopted: status.adopted,
        engine_id: status.engineId,
        override: swap?.model ?? null,
        override_of: swap === null ? null : model,
        override_profile: swap?.profile ?? null,
        override_context: swap?.contextSize ?? null
      }
    })
  }
}

/**
 * The swap that was in force when a state was noted; null as well where the slot's file has been given another model since.
 * Pure.
 * @param now the model that the file names
 */
export function swapIn ({ extra }: SlotStateFile, now: string | null): Swap | null {
  const { override: model, override_of: of, override_profile: profile, override_context: context } = extra
  // an older release did not note of which model it was
  if (typeof model !== 'string' || (of !== undefined && of !== now)) return null
  return { model, profile: typeof profile === 'string' ? profile : null, contextSize: typeof context === 'number' ? context : null }
}

/** The log's line: what happened, to which slot, with which model, each once. Pure. */
function stateLine (
  name: string, modelId: string | null, { state, message, failure }: ScheduledSlot, tookS: number | null
): string {
  const model = modelId === null ? '' : ` (${modelId})`
  if (state === 'error') return `${name} failed${model}: ${failure?.message ?? message}`
  if (tookS !== null) return `${name} ready in ${tookS.toFixed(1)} s${model}`
  if (state === 'ready' || state === 'idle') return `${name} ${state}${model}${message === '' ? '' : `: ${message}`}`
  return `${name} ${state}${model}${state === 'pulling' && message !== '' ? `: ${message}` : ''}`
}
