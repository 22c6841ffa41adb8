import type { ToolServerInfo, ToolWire } from 'svc-gateway/plugin'
import type { Identity } from './identity.js'
import type { Params } from './rpc.js'

/** A request of a client, whatever revision of the protocol it speaks. */
export interface Ask {
  readonly server: ToolServerInfo
  readonly identity: Identity
  readonly signal: AbortSignal
  readonly requestId: string
  /** Sends the client a notification that belongs to this request; null where it can take none. */
  readonly notify: ((method: string, params: Params) => void) | null
  readonly wire?: Omit<ToolWire, 'notify'>
  /** Where the client reaches the gateway: `http://host:port`. Null if unknown. */
  readonly origin: string | null
}
