import type { SlotLease, Surface } from '../../contract/index.js'
import type { Throughput } from '../../slots/life/throughput.js'
import type { AskedFor } from '../answer/event-edits.js'
import type { TokenCount } from '../requests/active-requests.js'

export interface SlotCallInput {
  readonly lease: SlotLease
  readonly surface: Surface
  readonly asked: AskedFor
  readonly body: Buffer
  readonly requestId: string
  readonly contentType: string
  readonly headers: string[]
  readonly throughput: Throughput
  readonly counter: TokenCount
  readonly firstTokenMs: number
  readonly silenceMs: number
}
