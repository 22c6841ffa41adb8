import type { EngineAddress, SlotState } from '../../contract/index.js'

/** An engine of this slot that exists: running, or dead and not yet removed. */
export interface Engine {
  readonly id: string
  /** What the container engine calls it. */
  readonly name?: string
  readonly address: EngineAddress
  readonly label: string
  /** Hash of the launch it came from. */
  readonly configHash: string
  readonly adopted: boolean
  /** Requests it works on at once; null takes as many as it is given. */
  readonly workers: number | null
}

/**
 * What a slot is asked for: `worker` a lease that occupies a worker, `lease` one that does not, `ready` nothing
 * but that the slot is up.
 */
export type Wants = 'worker' | 'lease' | 'ready'

/**
 * What becomes of the next request after a failure. `heals`: it may pass by itself, so tries are paced. `unfit`: it was
 * found before anything was started; it is looked for anew each time, which costs no launch. `stays`: it took a launch
 * to find it and it will not pass, so nothing is tried until something is changed.
 */
export type FailureClass = 'heals' | 'unfit' | 'stays'

export interface CoreFailure {
  readonly code: string
  readonly message: string
  readonly kind: FailureClass
  /** Launches that failed in a row; those that were refused before they began do not count. */
  readonly attempts: number
  readonly retryAt: number
  readonly logTail: readonly string[]
  /** All that is wrong is that the engine could not be removed: once it is gone the slot is as after an unload. */
  readonly resists?: true
}

/**
 * One slot's life as data. `slot-scheduler.ts` is the only way to a new one; `slot-owner.ts` runs
 * the effects. Invariants: at most one operation runs (`op`), and a launch starts only when `engine` is null,
 * so there are never two engines of one slot.
 */
export interface ScheduledSlot {
  readonly state: SlotState
  readonly message: string
  /** When `state` was entered. This and all other times of a core are on the monotonic clock. */
  readonly since: number
  readonly generation: number
  readonly engine: Engine | null
  /** The operation that runs: it reports back exactly once. */
  readonly op: 'launch' | 'stop' | null
  /** The running launch was told to give up. */
  readonly aborting: boolean
  /** Come up (again) once the running operation is over. */
  readonly wanted: boolean
  /** `drain` waits for requests in flight, `now` does not. */
  readonly stopping: 'no' | 'drain' | 'now'
  /** A removal failed; it is tried again with the next request or verb, and by itself at `stopAgainAt`. */
  readonly stuck: boolean
  /** Removals of this engine that failed in a row. */
  readonly resisted: number
  /** Null unless it is stuck. */
  readonly stopAgainAt: number | null
  /** A connection to the engine broke: no request is sent there before it has answered its health check again. */
  readonly suspect: boolean
  /** Only requests of the low class have asked for the launch: when the last of them leaves, it ends. */
  readonly chore: boolean
  /** When a load was last ended that way. */
  readonly abandonedAt: number | null
  /** Leases of the present generation, and how many of them occupy no worker. */
  readonly inFlight: number
  readonly light: number
  /** Waiters by what they want. Those who want a worker are let in as workers get free, in the order they came. */
  readonly waitingWorkers: number
  readonly waitingLeases: number
  readonly waitingReady: number
  readonly failure: CoreFailure | null
  /** 0 to 1 of the launch's present phase; null if unknown. */
  readonly progress: number | null
  readonly readyAt: number | null
  readonly lastUsedAt: number | null
}

export type LaunchPhase = 'pulling' | 'starting' | 'warming'

export type SlotInput =
  /**
   * `bound`: how many may wait for a lease. `joins`: waits for an engine that is on its way and brings back one that
   * failed; wakes none that was unloaded. `low`: a request of the low class.
   */
  | { readonly type: 'demand', readonly wants: Wants, readonly bound: number, readonly joins?: boolean, readonly low?: boolean }
  | { readonly type: 'leave', readonly wants: Wants }
  | { readonly type: 'release', readonly generation: number, readonly light: boolean, readonly broken?: boolean }
  /** The engine is there, as far as its health check tells. */
  | { readonly type: 'answers', readonly generation: number }
  | { readonly type: 'load' }
  /** Those who wait are refused; what runs goes on. */
  | { readonly type: 'turn-away' }
  | { readonly type: 'unload', readonly force: boolean }
  | { readonly type: 'restart', readonly force: boolean }
  /** Something that a launch looks at has changed: files, models, hardware, images, plugins. */
  | { readonly type: 'surroundings' }
  | { readonly type: 'evict', readonly reason: string }
  | { readonly type: 'soft-idle' }
  | { readonly type: 'drain-due' }
  /** The pause after a removal that failed is over. */
  | { readonly type: 'stop-again' }
  /** With the generation of the launch that is found. */
  | { readonly type: 'adopt', readonly generation: number }
  /** An engine of an earlier run that could not be removed: it goes before anything else is started. */
  | { readonly type: 'inherit', readonly engine: Engine, readonly message: string }
  | { readonly type: 'phase', readonly generation: number, readonly phase: LaunchPhase, readonly message: string, readonly progress?: number | null }
  | { readonly type: 'launched', readonly generation: number, readonly engine: Engine }
  | { readonly type: 'launch-failed', readonly generation: number, readonly failure: LaunchFailure }
  | { readonly type: 'exited', readonly engineId: string, readonly exitCode: number | null }
  | { readonly type: 'unhealthy', readonly generation: number, readonly message: string }
  | { readonly type: 'stopped', readonly logTail: readonly string[] }
  | { readonly type: 'stop-failed', readonly message: string }

export interface LaunchFailure {
  readonly code: string
  readonly message: string
  readonly logTail: readonly string[]
  /** The engine that the failed launch could not remove. */
  readonly leftover: Engine | null
  /** Not a failure of the slot: an engine found at start that is no longer fit to adopt. */
  readonly quiet: boolean
  readonly kind: FailureClass
}

export interface Refusal {
  readonly code: 'slot.load_failed' | 'model.not_found' | 'slot.crash_looping' | 'slot.stopped' | 'slot.queue_full'
  readonly message: string
  readonly retryAfterS: number | null
  readonly cause: string
  readonly logTail: readonly string[]
}

export type SlotEffect =
  | { readonly type: 'launch', readonly generation: number }
  | { readonly type: 'adopt', readonly generation: number }
  | { readonly type: 'abort-launch' }
  | { readonly type: 'stop', readonly engine: Engine, readonly crashed: boolean }
  /** The first waiters for a worker are let in, and with `rest` all others that wait; the leases are already counted. */
  | { readonly type: 'grant', readonly workers: number, readonly rest: boolean }
  | { readonly type: 'refuse', readonly refusal: Refusal }
  /** Comes back as `answers` or `unhealthy`. */
  | { readonly type: 'probe', readonly engine: Engine, readonly generation: number }
  /** Leases of the engine that goes are told why. */
  | { readonly type: 'revoke', readonly why: 'unloaded' | 'restarted' | 'lost', readonly message: string }
  | { readonly type: 'arm-drain' }
  | { readonly type: 'disarm-drain' }

/** Answer to one `demand`, `load` or `restart`: what becomes of the one who asked. */
export type DemandAnswer = 'granted' | 'wait' | Refusal

export interface Decision {
  readonly core: ScheduledSlot
  readonly effects: readonly SlotEffect[]
  /** Only for inputs that ask for the slot. */
  readonly answer: DemandAnswer | null
}

export function newCore (now: number): ScheduledSlot {
  return {
    state: 'offline',
    message: '',
    since: now,
    generation: 0,
    engine: null,
    op: null,
    aborting: false,
    wanted: false,
    stopping: 'no',
    stuck: false,
    resisted: 0,
    stopAgainAt: null,
    suspect: false,
    chore: false,
    abandonedAt: null,
    inFlight: 0,
    light: 0,
    waitingWorkers: 0,
    waitingLeases: 0,
    waitingReady: 0,
    failure: null,
    progress: null,
    readyAt: null,
    lastUsedAt: null
  }
}
