import { surfaceNames } from '../surface-names.js'

/**
 * Where a request stands. `queued`: not yet with an engine, `reason` says why; `loading`: its slot is being started;
 * `waiting`: sent, and nothing has come back; `streaming`: the answer is on its way to the client.
 */
export const requestPhases = ['queued', 'loading', 'waiting', 'streaming'] as const
export type RequestPhase = typeof requestPhases[number]

/**
 * The class of a request in the waiting line of its slot. A `low` one stands behind those that are `normal` until it has
 * waited for half a minute.
 */
export const requestPriorities = ['normal', 'low'] as const
export type RequestPriority = typeof requestPriorities[number]

/** What a request is for: a surface of `/v1`, or the engine itself, past what `/v1` knows. */
export const requestSurfaces = [...surfaceNames, 'engine'] as const
export type RequestSurface = typeof requestSurfaces[number]

/** One `/v1` request that has not been answered in full. */
export interface RequestView {
  /** Its `X-Request-ID`. Clients may choose their own, so two requests can have the same. */
  readonly id: string
  /** As the client named it; empty while the form that names it is still coming in. */
  readonly model: string
  readonly surface: RequestSurface
  /** The agent that asks: by its `X-svc-Agent`, else the one whose descriptor knows its headers; null for none. */
  readonly agent: string | null
  /** Who serves it; both null while that is being found out. */
  readonly slot: string | null
  readonly upstream: string | null
  readonly phase: RequestPhase
  /** Why there is no answer yet, in words for people; null once there is nothing but the engine to wait for. */
  readonly reason: string | null
  readonly priority: RequestPriority
  /** 1, or more where an upstream failed it and it was sent again, or elsewhere. */
  readonly attempt: number
  /** ISO 8601 UTC. */
  readonly started_at: string
  readonly age_ms: number
  /** Size of the request's body. */
  readonly bytes_in: number
  /** Body bytes of the answer that went to the client so far. */
  readonly bytes_out: number
  /** Generated tokens so far, one for each content-bearing event; a plain answer tells them at its end. */
  readonly tokens: number
}

/** The `/v1` requests of clients that ended within a time. */
export interface RequestSummary {
  readonly requests: number
  readonly perMinute: number
  /** From the first byte in to the last byte out; null without a request. */
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  /** Most used first. */
  readonly surfaces: ReadonlyArray<{ readonly surface: RequestSurface, readonly count: number }>
  /** Refused, failed, or broken off by an engine; a client that leaves is no error. */
  readonly errors: number
}

/** The `/v1` requests in flight. Looking costs them nothing. */
export interface RequestService {
  /** Oldest first. */
  list (): readonly RequestView[]
  /**
   * Ends requests: the client gets `request.cancelled`, as an error answer or as the last event of its stream, and the
   * call to the engine is aborted unless another client shares it. Returns how many had this id.
   */
  cancel (id: string): number
  /** The same for every request that waits for a slot and is not with its engine yet. Returns how many. */
  cancelWaiting (slot: string): number
  /** Of the last `windowS` seconds, as far as the latest 8192 requests reach back. */
  summary (windowS: number): RequestSummary
}
