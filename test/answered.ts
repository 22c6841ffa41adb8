import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

const CHANNEL = 'http.server.response.finish'

/** Resolves when this process has answered a request, named as `POST /api/x`, whatever its query. */
export function answered (call: string): Promise<void> {
  return new Promise(resolve => {
    const listener = (message: unknown): void => {
      const { request: { method = '', url = '' } } = message as { readonly request: IncomingMessage }
      if (`${method} ${url.split('?', 1)[0]!}` !== call) return
      unsubscribe(CHANNEL, listener)
      resolve()
    }
    subscribe(CHANNEL, listener)
  })
}
