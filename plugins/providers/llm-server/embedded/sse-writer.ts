import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/**
 * Writes server-sent events as fast as the client reads them and no faster: `send` resolves when the socket
 * takes more, so a slow reader slows the generation down instead of filling memory.
 */
export class SseWriter {
  readonly #response: ServerResponse
  readonly #signal: AbortSignal

  /** @param signal aborts when the client is gone; a `send` that waits then rejects. */
  constructor (response: ServerResponse, signal: AbortSignal) {
    this.#response = response
    this.#signal = signal
  }

  /** Sends one event; the first one sends the headers. */
  async send (data: object): Promise<void> {
    this.#signal.throwIfAborted()
    this.#begin()
    if (!this.#response.write(`data: ${JSON.stringify(data)}\n\n`)) await once(this.#response, 'drain', { signal: this.#signal })
  }

  /** Ends a complete stream. */
  done (): void {
    this.#begin()
    this.#response.end('data: [DONE]\n\n')
  }

  #begin (): void {
    if (this.#response.headersSent) return
    this.#response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
  }
}
