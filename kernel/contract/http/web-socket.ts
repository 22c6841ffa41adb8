import { hasBrand, WEB_SOCKET_BRAND } from '../brand.js'
import { defineRoute, type AnyRoute, type CallOf, type RouteDefinition, type RouteSchema } from './route.js'

/** What a WebSocket route allows; every bound has a default. */
export interface WebSocketBounds {
  /** Largest message that a client may send, in bytes; a larger one closes the socket with 1009. Default 64 KiB. */
  readonly maxMessageBytes?: number
  /**
   * What may wait for a client that reads slowly, in bytes. One that has more than this still to read when the next
   * message is sent is closed with 1013. Default 1 MiB.
   */
  readonly maxUnsentBytes?: number
  /** Sockets of this route at a time; more are refused with 503 `gateway.sockets_full`. Default 128. */
  readonly maxSockets?: number
}

/** An open WebSocket, on the side of the gateway. Nothing that it has ever rejects or throws. */
export interface ServedSocket {
  /** Aborts when the socket has closed or is about to: the client left, the plugin goes, the gateway stops. */
  readonly signal: AbortSignal
  /**
   * What the client sends, in order: text as a string, binary as bytes. Ends with the socket. To be iterated once. A
   * client that sends faster than this is read is made to wait; where it is never read, one that sends more than the
   * bound of a message is closed with 1008.
   */
  readonly messages: AsyncIterable<string | Buffer>
  /**
   * Sends a message. Resolves when the system has taken it, or when the socket is closed; waiting for it keeps the
   * sender at the client's pace.
   */
  send (message: string | Uint8Array): Promise<void>
  /** Closes with a code (RFC 6455, section 7.4) and a reason, which is cut at 123 bytes. Default 1000. */
  close (code?: number, reason?: string): void
}

/** Serves one socket. It closes with 1000 when this resolves, with 1011 when it rejects. */
export type ServeSocket = (socket: ServedSocket) => Promise<void>

export type WebSocketDefinition<S extends RouteSchema> =
  Pick<RouteDefinition<S>, 'url' | 'alsoAt' | 'summary' | 'description' | 'tag' | 'queryError'> & WebSocketBounds & {
    readonly schema?: S
    /**
     * Runs before the socket is opened, with the validated query and path: throw a `SvcError` to refuse, or return what
     * serves the socket. Acquire nothing that has to be given back before that runs: the client may have left. The
     * signal of the call ends with the handshake; use the socket's.
     */
    readonly handler: (call: CallOf<S, 'none'>) => ServeSocket | Promise<ServeSocket>
  }

/**
 * A WebSocket as a route, for `ctx.addRoute`. It passes whatever a `GET` passes: the checks of host and origin, the
 * validation, the gate of its plugin; a request that asks for no WebSocket is 426 `request.upgrade_required`. The host
 * pings every 30 s and drops a client that is silent for as long again, closes with 1001 when the gateway stops and
 * with 1012 when the plugin is replaced or removed.
 */
export function defineWebSocket<const S extends RouteSchema> (definition: WebSocketDefinition<S>): AnyRoute {
  const { handler, maxMessageBytes = 64 * 1024, maxUnsentBytes = 1024 * 1024, maxSockets = 128, ...route } = definition
  return defineRoute({
    ...route,
    method: 'GET',
    status: 101,
    webSocket: { maxMessageBytes, maxUnsentBytes, maxSockets },
    handler: async call => ({ serve: await handler(call as never), [WEB_SOCKET_BRAND]: true })
  })
}

export interface WebSocketReply {
  readonly serve: ServeSocket
}

export function isWebSocket (value: unknown): value is WebSocketReply {
  return hasBrand(value, WEB_SOCKET_BRAND)
}
