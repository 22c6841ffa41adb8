import type { ServedSocket } from 'svc-gateway/plugin'

/** What may wait here for a client that reads slowly, in characters, before the makers of more of it wait too. */
const ENOUGH = 256 * 1024

/** What goes to the client, in order and at its pace. */
export class Outbox {
  readonly #socket: ServedSocket
  #waiting: string[] = []
  #length = 0
  #isSending = false
  #wake: Array<() => void> = []

  constructor (socket: ServedSocket) {
    this.#socket = socket
  }

  push (message: string): void {
    if (this.#socket.signal.aborted) return
    this.#waiting.push(message)
    this.#length += message.length
    if (!this.#isSending) void this.#send()
  }

  /** Resolves when there is room again, or the socket is closed. */
  async room (): Promise<void> {
    while (this.#length > ENOUGH && !this.#socket.signal.aborted) await new Promise<void>(resolve => { this.#wake.push(resolve) })
  }

  /** Resolves when everything is sent, or the socket is closed. */
  async empty (): Promise<void> {
    while (this.#length > 0 && !this.#socket.signal.aborted) await new Promise<void>(resolve => { this.#wake.push(resolve) })
  }

  async #send (): Promise<void> {
    this.#isSending = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      for (const message of batch) {
        await this.#socket.send(message)
        this.#length -= message.length
        for (const wake of this.#wake.splice(0)) wake()
      }
    }
    this.#isSending = false
  }
}
