/**
 * How one request ended for its client. `answered`: in full. `refused`: an error envelope. `stream-error`: a stream
 * that ended with an error event. `broken`: the connection broke inside a plain body, the only way to tell. `left`:
 * the client went away itself. Everything else breaks a promise.
 */
export type Outcome = 'answered' | 'refused' | 'stream-error' | 'broken' | 'left'

export interface LedgerReport {
  readonly requests: number
  readonly open: readonly string[]
  readonly outcomes: Readonly<Record<string, number>>
  /** Error codes that clients were told, with how often. */
  readonly codes: Readonly<Record<string, number>>
  readonly violations: readonly string[]
}

/** Every request of a chaos run and what became of it: exactly one outcome each. */
export class Ledger {
  readonly #open = new Map<number, string>()
  readonly #outcomes: Record<string, number> = {}
  readonly #codes: Record<string, number> = {}
  readonly #violations: string[] = []
  #count = 0

  get open (): number { return this.#open.size }

  /** Returns the function that closes the entry. */
  enter (what: string): (outcome: Outcome, code?: string) => void {
    const id = ++this.#count
    this.#open.set(id, `#${id} ${what}`)
    return (outcome, code) => {
      if (!this.#open.delete(id)) this.violation(`${what}: a second outcome, ${outcome}`)
      const key = `${what}: ${outcome}`
      this.#outcomes[key] = (this.#outcomes[key] ?? 0) + 1
      if (code !== undefined) this.#codes[code] = (this.#codes[code] ?? 0) + 1
    }
  }

  violation (text: string): void {
    if (this.#violations.length < 50) this.#violations.push(text)
  }

  report (): LedgerReport {
    return {
      requests: this.#count,
      open: [...this.#open.values()],
      outcomes: Object.fromEntries(Object.entries(this.#outcomes).sort()),
      codes: Object.fromEntries(Object.entries(this.#codes).sort()),
      violations: this.#violations
    }
  }
}
