import { shownLine, type CleanText, type Clock } from 'svc-gateway/plugin'
import type { ServerLogEntry } from './ref.js'

const MAX_ENTRIES = 1_000
const MAX_TEXT = 2_000

/** The last thousand things that a tool server wrote and that happened to it. */
export class ServerLog {
  readonly #clock: Clock
  readonly #clean: CleanText
  #entries: ServerLogEntry[] = []
  #words: string | null = null

  constructor (clock: Clock, clean: CleanText) {
    this.#clock = clock
    this.#clean = clean
  }

  add (kind: ServerLogEntry['kind'], message: string): void {
    if (this.#entries.length >= MAX_ENTRIES) this.#entries.splice(0, MAX_ENTRIES / 10)
    const shown = shownLine(message, this.#clean, MAX_TEXT)
    if (kind !== 'state') this.#words = shown
    this.#entries.push({ ts: new Date(this.#clock.now()).toISOString(), kind, message: shown })
  }

  last (count: number): readonly ServerLogEntry[] {
    return this.#entries.slice(-count)
  }

  /** A new start: what was written before is nothing that its end could be told by. */
  begin (): void {
    this.#words = null
  }

  /** The last line that the program wrote since its start, for messages about its end. */
  lastWords (): string {
    return this.#words === null ? '' : `; it last wrote: ${this.#words}`
  }
}
