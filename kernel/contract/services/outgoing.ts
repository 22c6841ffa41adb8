import type { JsonBody } from '../http/json-body.js'
import type { SurfaceName } from '../surface-names.js'

/** One try of a request at a remote upstream, before anything of it is sent. */
export interface OutgoingCall {
  readonly requestId: string
  readonly surface: SurfaceName
  readonly upstream: string
  /** As the upstream gets it. */
  readonly modelId: string
  /** Of the client's request, names in lower case; of a plugin's own request, what it gave as `origin`. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Null for what is not JSON. To be read before the watch returns. */
  readonly body: JsonBody | null
  /** Null for a form that is streamed. */
  readonly bodyBytes: number | null
}

/** What an upstream's answer said of its price, as far as it came. Tokens; null where the answer does not tell. */
export interface OutgoingUsage {
  /** Null: no answer began. */
  readonly status: number | null
  /** False for an answer that broke off, or that its reader left. */
  readonly whole: boolean
  /** Its reader gave it up. */
  readonly left: boolean
  /** Of the request, those that were read from a cache included. */
  readonly inputTokens: number | null
  /** Those of `inputTokens` that were read from a cache. */
  readonly cachedTokens: number
  readonly outputTokens: number | null
  /** Pieces of text that came in a stream: about one a token, for a stream that was cut before its usage came. */
  readonly pieces: number
}

/** Told once, when nothing of the call is left: it ended, failed, or was given up. Must not throw. */
export type OutgoingEnd = (usage: OutgoingUsage) => void

/**
 * Asked before each try at an upstream, on the path of every such request: must be quick. Null lets the call pass unwatched;
 * a `SvcError` that it throws is the answer, unless the upstream has a fallback that may be asked.
 */
export type OutgoingWatch = (call: OutgoingCall) => OutgoingEnd | null
