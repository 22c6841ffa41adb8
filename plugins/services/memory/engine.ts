import type { Readable } from 'node:stream'

/** One request of the Hindsight wire. Path and query are as the client sent them, percent-encoding included. */
export interface EngineRequest {
  readonly method: string
  /** `/v1/default/banks/x/memories/recall`, `/health`, `/version` */
  readonly path: string
  /** `''` or `limit=1&q=x`, without the question mark */
  readonly query: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer | Readable | null
  /** Aborted when the client leaves; the engine then cancels the work. */
  readonly signal: AbortSignal
  /** The caller calls `letGo` of the answer, where it has one. */
  readonly lends?: boolean
}

/** The engine's answer, as it goes to the client. The caller reads or destroys a body that is a stream. */
export interface EngineAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: Buffer | Readable
  /** To be called when the body is read, which lies in memory of the engine's until then. Only where the request has `lends`. */
  readonly letGo?: () => void
}

/** What an engine can do at this moment, and for what it cannot, why. */
export interface EngineStatus {
  /** Requests reach it and are let in. */
  readonly reachable: boolean
  /** The version of the wire that it speaks; null if unknown. */
  readonly version: string | null
  /** The names of the wire's `/version`, such as `observations` or `file_upload_api`. */
  readonly features: Readonly<Record<string, boolean>>
  /** Null if unknown. */
  readonly banks: number | null
  /** Works in part only; `detail` then says what is missing. */
  readonly degraded: boolean
  /** One sentence for an operator, with the next step; null if all is well. */
  readonly detail: string | null
  /** The steps that need a model (`vectors`, `rerank`, `extraction`, …): null if on, else why it is off. */
  readonly steps?: Readonly<Record<string, string | null>>
}

export interface MemoryEngine {
  readonly name: 'embedded' | 'hindsight'
  /** @throws if the engine cannot be reached, or the signal's reason when the client left */
  request (request: EngineRequest): Promise<EngineAnswer>
  /** What works and why the rest does not; never throws, bounded in time. */
  status (): Promise<EngineStatus>
  /** Memory was switched off: lets go of what it holds. The next request opens it again. */
  close? (): Promise<void>
}
