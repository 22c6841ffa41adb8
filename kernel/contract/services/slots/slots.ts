import type { EngineAddress, EngineClient } from '../../provider/engine-client.js'
import type { EngineForm } from '../../provider/engine-runtime.js'
import type { EngineProvider } from '../../provider/provider.js'
import type { SvcError } from '../../errors/errors.js'
import type { Device } from '../../schemas/enums.js'
import type { NamedProfile } from '../../schemas/profile.js'
import type { NamedSlotConfig } from '../../schemas/named-slot.js'
import type { ChangeOptions } from '../config/config-draft.js'
import type { RequestPriority } from '../requests.js'
import type { ImagePullStatus, LogQuery, SlotMetrics, SlotStatus, SlotVoices, UnreadSlot } from './slot-status.js'
import type { LaunchDifference, LaunchTrouble, ProfileOutlook, ResolvedArgv, SlotOutlook } from './slot-outlook.js'
import type { SlotDraft, SlotProblem, SlotWish } from './slot-draft.js'

/** The right to send one request to a ready engine. While it is held the slot is not evicted or idle-stopped. */
export interface SlotLease {
  readonly slot: string
  readonly provider: EngineProvider
  readonly address: EngineAddress
  readonly modelId: string | null
  readonly generation: number
  /** Something came from the engine: it works, whatever its health check says. */
  heard (): void
  /**
   * The engine is taken away before the request is over: the slot is unloaded, restarted or found to be lost. The listener
   * is called at most once, ends the call and tells its client the error; the lease is released as ever. One listener.
   */
  onRevoked (listener: (error: SvcError) => void): void
  /**
   * Must be called exactly once, on every exit.
   * @param broken the connection to the engine broke: no other request is sent there before it answers its health check
   */
  release (broken?: boolean): void
}

export const convergences = ['loaded', 'swapped', 'reloaded', 'skipped'] as const
export type Convergence = typeof convergences[number]

/**
 * The slots. No outside code asks for a state and then acts on it: `acquire` and `ensureReady` decide inside
 * the slot's owner. Names that do not exist throw `slot.not_found`.
 */
export interface SlotService {
  /** In configuration order; those that another slot's engine serves (`served_by`) stand behind it. */
  names (): readonly string[]
  /** Slots that are left out because their files cannot be read. */
  unread (): readonly UnreadSlot[]
  config (name: string): NamedSlotConfig
  status (name: string): SlotStatus
  /**
   * Has an engine, or is getting one: from the moment that is decided, while what the engine is to be made of is still being
   * looked at and its state says nothing of it yet, until the engine is gone.
   */
  isLive (name: string): boolean
  /** Where `configDrift` is set, how the engine differs from one that would be started now; none where that is not known. */
  differences (name: string): readonly LaunchDifference[]
  provider (name: string): EngineProvider | null
  device (name: string): Device
  /** Null while no engine runs. */
  client (name: string): EngineClient | null
  /** One snapshot now and one after every change, until the signal aborts or the slot is deleted. */
  watch (name: string, signal: AbortSignal): AsyncIterable<SlotStatus>
  /**
   * Loads the slot if it must and waits for it. Rejects with `slot.load_failed`, `slot.crash_looping` or the
   * signal's reason. Giving up never cancels the load for others.
   */
  ensureReady (name: string, signal: AbortSignal): Promise<void>
  /**
   * A lease if the slot serves and has a free worker at this moment, else null; starts nothing. The fast path of
   * `acquire`. A `light` lease takes no worker (`Surface.light`).
   */
  tryAcquire (name: string, light?: boolean): SlotLease | null
  /**
   * `ensureReady` and the lease in one step, so that nothing can happen in between. Waits for a worker in the order of
   * the calls, with a low `priority` behind those that have a normal one; giving that up also ends a load that no
   * other caller asked for; rejects with `slot.queue_full` when as many wait as `[dispatcher] queue_per_slot` allows.
   */
  acquire (name: string, signal: AbortSignal, light?: boolean, priority?: RequestPriority): Promise<SlotLease>
  /** Operator's verbs. They reset the failure count and return when done, or throw what failed. */
  load (name: string, options?: { readonly model?: string, readonly signal?: AbortSignal }): Promise<void>
  unload (name: string, options?: { readonly force?: boolean, readonly signal?: AbortSignal }): Promise<void>
  restart (name: string, options?: { readonly signal?: AbortSignal }): Promise<void>
  swap (name: string, model: string, options?: { readonly signal?: AbortSignal }): Promise<void>
  /**
   * Brings the engine in line with the configuration: loads a slot that is not up, restarts one that runs another model
   * (`swapped`, also one that a swap put there) or was started from another configuration (`reloaded`), leaves alone one
   * that is right. Throws as `load` does.
   */
  converge (name: string, options?: { readonly signal?: AbortSignal }): Promise<Convergence>
  /**
   * How long the engine of a slot stays without a request, in milliseconds, until it ends: Infinity keeps it. What the
   * operator said of the slot stands: a pinned slot, an anchor and a slot with an idle time of its own may stay longer by
   * it, and never shorter.
   */
  keep (name: string, ms: number): void
  /** Milliseconds without a request after which it is unloaded, as things are; null is never. */
  idleTimeoutMs (name: string): number | null
  create (name: string, config: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  update (name: string, patch: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  /**
   * Refuses a pinned slot (`slot.pinned`), and one whose engine is the only one to serve slots with a file or capabilities
   * (`slot.in_use`); `force` takes these along.
   */
  delete (name: string, options?: { readonly force?: boolean }): Promise<void>
  /**
   * What would be wrong if these were all the slots there are, in this order: the rules that `create` and `update`
   * hold every write against. With other profiles than the present ones when they are given. Pure; nothing is written.
   */
  check (slots: readonly NamedSlotConfig[], profiles?: ReadonlyMap<string, NamedProfile>): readonly SlotProblem[]
  /** As `SlotDraft.troubles`, of the slot as it is written. Does not wait for writers. */
  troubles (name: string): Promise<readonly LaunchTrouble[]>
  /** Why such a slot could not start here, as far as its engine and its image tell; null when it could. Asks no disk. */
  misfit (wish: SlotWish): string | null
  /**
   * Several writes as one: `work` shapes a draft, the rules are held against the outcome, then all files are written or
   * none (`ConfigService.change`, with its terms for `work`). What `create` and `update` fill in and re-derive, the
   * draft does too.
   */
  change<T> (work: (draft: SlotDraft) => Promise<T>, options?: ChangeOptions): Promise<T>
  /**
   * These slots are not loaded by themselves at this start of the gateway, because something else decides what runs: a plugin
   * in its `onStart`, or an order that comes while slots still come up. Requests and verbs load them as ever.
   */
  skipAutostart (names: readonly string[]): void
  /** How its engine runs: as its file says, else as its provider does, else as the gateway does. */
  runtime (name: string): EngineForm
  resolved (name: string): ResolvedArgv
  /** Throws `slot.config_error` for a slot that cannot be launched, as `resolved` does. */
  outlook (name: string): SlotOutlook
  /** Throws `slot.config_error` for flags with an open quote. */
  profileOutlook (profile: NamedProfile): ProfileOutlook
  /**
   * The engine's lines without what could be a secret, also while it loads its model; without an engine the last lines of
   * the failed one.
   */
  logs (name: string, query: LogQuery, signal: AbortSignal): AsyncIterable<string>
  metrics (name: string): SlotMetrics
  /**
   * Resident memory of the running engine in MiB, as it was measured last: 0 without an engine, null when it cannot be told.
   * Does not wait for a measurement.
   */
  memoryMb (name: string): Promise<number | null>
  /** Asks a running engine, for at most two seconds; starts nothing and never fails but for an unknown name. */
  voices (name: string, signal: AbortSignal): Promise<SlotVoices>
  /** Starts a pull or joins the running one. Throws `slot.config_error` when the slot has no image. */
  pullImage (name: string): Promise<{ readonly resumed: boolean, readonly status: ImagePullStatus }>
  pullStatus (name: string): Promise<ImagePullStatus>
  watchPull (name: string, signal: AbortSignal): AsyncIterable<ImagePullStatus>
}
