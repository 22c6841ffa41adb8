import type { Upstream } from '../schemas/upstream.js'
import type { UpstreamTemplate } from '../provider/upstream-template.js'

/** `closed`: requests pass. `open`: they are refused at once. `half-open`: the next one goes through as a probe. */
export const circuitStates = ['closed', 'open', 'half-open'] as const

export interface CircuitView {
  readonly state: typeof circuitStates[number]
  /** In a row. */
  readonly failures: number
  /** How long the upstream is still left alone. */
  readonly retry_in_ms: number
}

export const upstreamSources = ['upstreams.toml', 'providers.toml'] as const

/** An upstream as it is in force, and how it is. */
export interface UpstreamStatus {
  readonly config: Upstream
  readonly source: typeof upstreamSources[number]
  /** Ids of its last good list, and those that its filters name. */
  readonly models: readonly string[]
  /** ISO time of the last good list, or null. */
  readonly refreshed_at: string | null
  readonly error: string | null
  readonly circuit: CircuitView
}

/** What an upstream said when it was asked for its models. */
export interface UpstreamAnswer {
  readonly ok: boolean
  /** Null when there was no answer. */
  readonly status: number | null
  readonly latency_ms: number
  readonly models_count: number | null
  readonly error: string | null
}

/** What an upstream answered to a read beside its `/v1`. */
export type UpstreamReading =
  | { readonly ok: true, readonly body: unknown }
  /** `status` null without an answer. */
  | { readonly ok: false, readonly status: number | null, readonly error: string }

/** The remote upstreams. Their rows are changed through `ConfigService.change`. */
export interface UpstreamService {
  readonly templates: readonly UpstreamTemplate[]
  /** In order of routing: of one model id the first upstream that has it is asked. */
  list (): readonly UpstreamStatus[]
  get (name: string): UpstreamStatus | undefined
  /**
   * Asks for the model list now, whatever is known, and keeps the answer. A good one also ends the time in which a failing
   * upstream is left alone. Throws `upstream.not_found`; every failure of the upstream is an answer.
   */
  ask (name: string, signal: AbortSignal): Promise<UpstreamAnswer>
  /**
   * Reads JSON of at most 8 MiB from an upstream with its key; for servers that have more than `/v1`. Never rejects.
   * @param upstream as in force, or one that is to be tried
   * @param path with its query, beside the `/v1` that the upstream's URL ends in
   */
  read (upstream: Upstream, path: string, signal: AbortSignal): Promise<UpstreamReading>
  /** Called when an upstream first tells its models, and when it tells others. Returns the function that unregisters it. */
  onModels (listener: () => void): () => void
}
