/** What the gateway and the engine's thread say to each other. */

/** A request of the wire, after the pieces of its body but the last. Paths and queries as the client sent them. */
export interface RequestMessage {
  readonly kind: 'request'
  readonly id: number
  /** The last piece of its body, and all of a small one. */
  readonly bytes: Uint8Array | null
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether its answer may lie in one of the slots, which is let go when it is sent. */
  readonly lends: boolean
}

/** A step that needs a model: what serves it, or why nothing does. */
export type Ability =
  /** `identity` changes where vectors of before no longer compare with those of now; the model's name by default. */
  | { readonly model: string, readonly identity?: string, readonly why: null }
  | { readonly model: null, readonly why: string }
export const abilityNames = ['embed', 'rerank', 'chat'] as const
export type AbilityName = typeof abilityNames[number]
/** How long a recall waits for a model before it goes on without. */
export interface Patience {
  readonly embedMs: number
  readonly rerankMs: number
}
export type Abilities = Readonly<Record<AbilityName, Ability>> & {
  readonly patience?: Patience
  /** Whether facts are extracted from what is retained. */
  readonly extracts?: boolean
  /** How long a language model may take. */
  readonly chatTimeoutMs?: number
  /** What models may take for the consolidation of one bank in one day, UTC. */
  readonly consolidationTokens?: number
}

/** Why no facts are extracted where `extracts` is not true, and what to do. */
export const GRAPH_OFF = 'the graph is off: svc memory graph enable'

/** A JSON request to a model, as a client of `/v1` sends it. */
export interface ModelErrand {
  readonly to: AbilityName
  readonly body: Uint8Array
  /** No client waits for it. */
  readonly background: boolean
}

/** A request to an address outside. */
export interface WebErrand {
  readonly to: 'web'
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** What the thread asks the gateway for: each needs something that the thread does not have. */
export type Errand = ModelErrand | WebErrand

/** Whatever the status is. */
export interface ErrandAnswer {
  readonly status: number
  readonly body: Uint8Array
}

export type ToEngine =
  /** The next bytes of a request's body. */
  | { readonly kind: 'piece', readonly id: number, readonly bytes: Uint8Array }
  | RequestMessage
  /** The next piece of an answer's body. */
  | { readonly kind: 'more', readonly id: number }
  /** The client left. */
  | { readonly kind: 'abort', readonly id: number }
  | { readonly kind: 'abilities', readonly abilities: Abilities }
  | { readonly kind: 'errand-done', readonly id: number, readonly answer: ErrandAnswer }
  /** It could not be sent, or was not answered. */
  | { readonly kind: 'errand-failed', readonly id: number, readonly message: string }
  /** Finish what is being written, close the database, answer `closed`. */
  | { readonly kind: 'close' }

export type FromEngine =
  | { readonly kind: 'opened' }
  /** The database cannot be used. */
  | { readonly kind: 'broken', readonly message: string }
  | { readonly kind: 'answer', readonly id: number, readonly status: number, readonly headers: Readonly<Record<string, string>>, readonly body: Uint8Array }
  /** Its body lies in that slot. */
  | { readonly kind: 'answer-lent', readonly id: number, readonly status: number, readonly headers: Readonly<Record<string, string>>, readonly slot: number, readonly size: number }
  /** Its body comes piece by piece, each when it is asked for; null ends it. */
  | { readonly kind: 'answer-begins', readonly id: number, readonly status: number, readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'answer-piece', readonly id: number, readonly bytes: Uint8Array | null }
  | { readonly kind: 'answer-failed', readonly id: number, readonly message: string }
  /** The request was given up; nothing is answered. */
  | { readonly kind: 'dropped', readonly id: number }
  | { readonly kind: 'errand', readonly id: number, readonly errand: Errand }
  | { readonly kind: 'errand-off', readonly id: number }
  | { readonly kind: 'log', readonly level: 'info' | 'warn', readonly message: string, readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: 'closed' }
