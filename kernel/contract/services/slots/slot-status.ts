import type { EngineAddress } from '../../provider/engine-client.js'
import type { SlotState } from '../../schemas/enums.js'

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

/** One engine of a slot that may have several. Times in epoch milliseconds. */
export interface ReplicaStatus extends Pick<
  SlotStatus, 'state' | 'since' | 'message' | 'port' | 'address' | 'engineId' | 'engineName' | 'inFlight'
> {
  /** From 1. */
  readonly index: number
  /** Why it is in `error`. */
  readonly error: string | null
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
  /** What the container engine, the cluster, or the list of processes calls it. */
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
  /** All engines that the slot may have, in order; absent where that is one. The rest is said of them together. */
  readonly replicas?: readonly ReplicaStatus[]
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

export interface LogQuery {
  readonly tail: number
  readonly follow: boolean
}
