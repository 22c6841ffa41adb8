import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { SlotLease, Surface } from '../../contract/index.js'
import type { Throughput } from '../../slots/life/engine/throughput.js'
import type { AskedFor } from '../answer/event-edits.js'
import type { TokenCount } from '../requests/active-requests.js'

/** What a provider says of a surface, as far as a call needs it. */
export type CalledSurface = Pick<Surface, 'path' | 'port' | 'adapt' | 'events' | 'refusal' | 'refusalFrom'>

export interface SlotCallInput {
  readonly lease: SlotLease
  readonly surface: CalledSurface
  readonly asked: AskedFor
  /** A stream is read at the engine's pace, sent once, and destroyed with the call. */
  readonly body: Buffer | Readable | null
  /** Absent is POST. */
  readonly method?: Dispatcher.HttpMethod
  readonly requestId: string
  readonly contentType: string
  /** Flat list of names and values. */
  readonly headers: string[]
  readonly throughput: Throughput
  readonly counter: TokenCount
}
