import type { EngineAddress, EngineClient } from '../../provider/engine-client.js'
import type { EngineForm } from '../../provider/engine-runtime.js'
import type { EngineProvider } from '../../provider/provider.js'
import type { ArgvSegmentName } from '../../provider/provider-launch.js'
import type { SvcError } from '../../errors/errors.js'
import type { ErrorCode } from '../../errors/error-codes.js'
import type { Device, SlotState, SlotType } from '../../schemas/enums.js'
import type { NamedProfile } from '../../schemas/profile.js'
import type { NamedSlotConfig } from '../../schemas/named-slot.js'
import type { ChangeOptions, ConfigDraft } from '../config/config-draft.js'
import type { RequestPriority } from '../requests.js'

/** Why a slot is in `error`. Times in epoch milliseconds. */
export interface SlotFailure {
  readonly code: string
  readonly message: string
  /**
   * `heals`: requests try again, at growing intervals. `unfit`: found before anything was started, and looked for anew by
   * each request. `stays`: nothing is tried until something is changed or an operator's verb asks for it.
   */
  readonly kind: 'heals' | 'unfit' | 'stays'
  /** Launches that failed in a row; an operator's verb resets it. */
  readonly attempts: number
  /** Until then requests are refused with Retry-After; a verb may try at once. */
  readonly retryAt: number
  /** Last lines the engine wrote. */
  readonly logTail: readonly string[]
}

/** A slot at one moment, as its owner knows it. Times in epoch milliseconds. */
export interface SlotStatus {
  readonly name: string
  readonly state: SlotState
  readonly since: number
  readonly message: string
  /** Counts launches; a container of an older generation is never used. */
  readonly generation: number
  readonly modelId: string | null
  readonly port: number | null
  /** Further ports of the running engine by name (`EngineProvider.ports`). */
  readonly ports: Readonly<Record<string, number>>
  readonly address: EngineAddress | null
  /** Container id, or the id of the child process. */
  readonly engineId: string | null
  /** What the container engine, or the list of processes, calls it. */
  readonly engineName: string | null
  /** What runs: an image reference, or the label of a process candidate. */
  readonly engineLabel: string | null
  readonly inFlight: number
  /** Requests and verbs that wait: for the slot to come up, or for a worker. */
  readonly waiting: number
  /** Requests that the running engine works on at once; null without one, and when it takes as many as it is given. */
  readonly workers: number | null
  readonly lastUsedAt: number | null
  readonly startedAt: number | null
  readonly adopted: boolean
  readonly healthOk: boolean | null
  /** The running engine was started from another configuration than the present one. */
  readonly configDrift: boolean
  /** An engine is left running for the slot, which takes no requests until a file can be read. `state` is `error` then. */
  readonly held: boolean
  readonly failure: SlotFailure | null
  /** 0 to 1 while an image is fetched or a model is loaded, as far as it is known. */
  readonly progress: number | null
}

/** An engine of an earlier run that is left running because a file that says what its slot should run cannot be read. */
export interface HeldEngine {
  /** Image reference, or the label of a process candidate. */
  readonly label: string
  readonly address: EngineAddress | null
  /** The file, relative to the configuration root: `slots/agent.toml`, `profiles.toml`; or `registry.toml`. */
  readonly file: string
}

/** A slot that is left out because its file could not be read at the first load. */
export interface UnreadSlot {
  readonly name: string
  /** What an earlier gateway left running for it; it is kept, and adopted once the file can be read. */
  readonly engine: HeldEngine | null
}

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

export interface ResolvedArgv {
  readonly argv: readonly string[] | null
  /** One entry per surviving flag: the segment that set its final value. */
  readonly provenance: ReadonlyArray<{ readonly flag: string, readonly value: string | null, readonly segment: ArgvSegmentName }>
  /** Duplicate flags that were collapsed. */
  readonly removed: number
}

/** One thing that the running engine of a slot has otherwise than an engine that would be started now; null: not at all. */
export interface LaunchDifference {
  /** A flag (`--ctx-size`), `env.NAME` (whose value is not told), or a part of the launch (`image`, `mounts`). */
  readonly key: string
  readonly running: string | null
  readonly rendered: string | null
}

/** What the next launch of a slot uses, with everything its file leaves open filled in. */
export interface SlotOutlook {
  readonly profile: string | null
  /** Reference of the container image; null where engines run as processes, or the slot has none. */
  readonly image: string | null
  /** Tokens; null for slot types that have no context window. */
  readonly contextSize: number | null
  /** Whether it takes images: its model has a projector that is loaded, or is its engine's own to know. */
  readonly vision: boolean
}

/** What becomes of a profile when a slot uses it. */
export interface ProfileOutlook {
  /** Engine that runs it; null when its plugin is away. */
  readonly provider: string | null
  readonly family: string | null
  /** Types of slots that it suits. */
  readonly slotTypes: readonly SlotType[]
  /** Its flags, merged with those of multi-token prediction when it opts in. */
  readonly resolvedFlags: string
}

export interface SlotMetrics {
  readonly tokensPerSec: number
  readonly ttftMs: number | null
  readonly requestCount: number
  readonly tokenCount: number
}

/** The voices of a speech slot, each as its engine words it: a name, or an object with an `id`. */
export interface SlotVoices {
  readonly name: string
  readonly voices: readonly unknown[]
  /** `offline`: the slot is not up, did not answer within two seconds, or its engine has no such listing. */
  readonly source: 'live' | 'offline'
}

export const convergences = ['loaded', 'swapped', 'reloaded', 'skipped'] as const
export type Convergence = typeof convergences[number]

export const pullStates = ['present', 'pulling', 'completed', 'failed', 'missing', 'cancelled'] as const
export type PullState = typeof pullStates[number]

/** Progress of an image pull. `layer` counts finished layers. Bytes where the engine reports them. */
export interface ImagePullStatus {
  readonly slot_name: string
  readonly image: string
  readonly state: PullState
  readonly layer: number
  readonly total_layers: number
  readonly current_bytes: number
  readonly total_bytes: number
  readonly error: string | null
}

export const slotRules = [
  'capacity', 'anchor', 'port', 'default', 'exclusivity', 'provider', 'model', 'args', 'options', 'profile', 'fit'
] as const
export type SlotRule = typeof slotRules[number]

/** What is wrong with one slot among others. `param` is the key at fault, dotted. */
export interface SlotProblem {
  readonly slot: string
  readonly rule: SlotRule
  readonly code: ErrorCode
  readonly message: string
  readonly param: string | null
  readonly details: Readonly<Record<string, unknown>>
}

export interface LogQuery {
  readonly tail: number
  readonly follow: boolean
}

export const launchNeeds = ['config', 'device', 'image', 'program', 'model', 'fit'] as const

/** What is known, before anything is started, to keep a slot from coming up on this host. */
export interface LaunchTrouble {
  readonly what: typeof launchNeeds[number]
  readonly message: string
}

/** A slot that could be created. */
export interface SlotWish {
  readonly type: SlotType
  readonly device: Device
  readonly provider: string
  /** `file` is the name or path of its file, empty if unknown. Null for a slot without a model. */
  readonly model: { readonly id: string, readonly file: string } | null
}

/** The slots as they would be, and with `config` everything else that changes along with them. */
export interface SlotDraft {
  readonly config: ConfigDraft
  /** As `SlotService.create`. */
  create (name: string, config: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  /** As `SlotService.update`. */
  update (name: string, patch: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  /** Removes the file; the engine goes once that is written. */
  delete (name: string): Promise<void>
  /** The profile that a model asks for, when it suits the slot on the device, else null. */
  preferredProfile (slot: NamedSlotConfig, device: Device, modelId: string): string | null
  /**
   * The profile that was chosen for a slot, when it suits the slot as it is to be. Null for none, for the default of its
   * device and for what its model asks for.
   */
  chosenProfile (before: NamedSlotConfig, after: NamedSlotConfig): string | null
  /** What would keep the slot, as the draft has it, from coming up here. Asks the disk, and no engine and no network. */
  troubles (name: string): Promise<readonly LaunchTrouble[]>
}

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
