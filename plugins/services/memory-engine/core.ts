import type { Abilities, Errand, ErrandAnswer } from './messages.js'
import type { RetainRequest } from './retain/request.js'
import type { BankRow } from './store/bank-table.js'
import type { Store } from './store/store.js'

/** What the engine asks the gateway to do. */
export interface Outside {
  /** As last told; changes with the configuration. */
  readonly abilities: Abilities
  /** Calls back after each change of `abilities`, until unregistered. */
  onAbilities (listener: () => void): () => void
  /** Resolves with the answer, whatever its status. Rejects if there is none, or with the signal's reason. */
  run (errand: Errand, signal: AbortSignal): Promise<ErrandAnswer>
}

/** What retain made, told inside of its transaction. Numbers are `seq` of the rows. */
export interface Retained {
  readonly bank: number
  readonly bankId: string
  /** Documents that were written, and are whole now. */
  readonly documents: readonly number[]
  /** What happened to each document, those that go on included: null for one that a retain before began. */
  readonly kinds: ReadonlyMap<number, 'retain' | 'append' | null>
  /** Memories that are new. */
  readonly memories: readonly number[]
}

/** A request that was answered, for the records. */
export interface Answered {
  readonly method: string
  /** The route's pattern; null if none matched. */
  readonly route: string | null
  /** The bank by its own name. */
  readonly params: Readonly<Record<string, string>>
  readonly status: number
  readonly startedAt: number
  readonly durationMs: number
}

/** A retain that is answered before it is done. */
export interface LaterRetain {
  readonly bank: BankRow
  /** Read and checked. */
  readonly request: RetainRequest
  /** The id that the client wants for the operation; a repeat returns the same one. */
  readonly operationId: string | null
}

/** What other parts of the engine want to hear of. Listeners are called in the order in which they were added. */
export interface Hooks {
  /** Inside of the transaction: what they write stands or falls with it. They must not wait. */
  readonly retaining: Array<(retained: Retained) => void>
  /** After the commit. */
  readonly retained: Array<(retained: Retained) => void>
  readonly answered: Array<(answered: Answered) => void>
  /** Takes an asynchronous retain and returns the id of its operation; null where there is no queue. */
  retainLater: ((later: LaterRetain) => string) | null
}

/** What every part of the engine works with. */
export interface Core {
  readonly store: Store
  readonly outside: Outside
  readonly hooks: Hooks
  /** Milliseconds since 1970. */
  now (): number
  log (level: 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>): void
  /** Aborted when the engine closes. */
  readonly closing: AbortSignal
}

/** Work of a part that goes on beside requests. Started once, after the database is open. */
export type Background = (core: Core) => void
