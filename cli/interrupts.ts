import { Interrupted } from './failure.js'

export type SignalHandler = (signal: NodeJS.Signals) => void

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Under npm every Ctrl-C comes twice: from the terminal, and at once again from npm, which passes on what it gets. */
const ECHO_MS = 50

/** The part of `process` that is used here. */
export interface SignalSource {
  readonly env: Readonly<Record<string, string | undefined>>
  on (event: NodeJS.Signals, listener: SignalHandler): unknown
  off (event: NodeJS.Signals, listener: SignalHandler): unknown
  exit (code: number): void
  /** Milliseconds of a clock that only goes forward; default is the system's. */
  readonly now?: () => number
}

/**
 * Ctrl-C and SIGTERM of this process. The first aborts `signal`, so that requests are cancelled on the wire and
 * children are stopped; the second exits at once. A command that does otherwise takes the signals over.
 */
export class Interrupts {
  readonly #source: SignalSource
  readonly #controller = new AbortController()
  readonly #listener: SignalHandler = signal => this.#receive(signal)
  #owner: SignalHandler | null = null
  #last: { readonly signal: NodeJS.Signals, readonly at: number } | null = null

  constructor (source: SignalSource) {
    this.#source = source
    for (const signal of SIGNALS) source.on(signal, this.#listener)
  }

  get signal (): AbortSignal { return this.#controller.signal }

  /** Returns the way back. */
  takeOver (owner: SignalHandler): () => void {
    this.#owner = owner
    return () => { this.#owner = null }
  }

  /** Ends the command as a signal would. */
  abort (reason: Error): void {
    this.#controller.abort(reason)
  }

  exitNow (signal: NodeJS.Signals): void {
    this.#source.exit(new Interrupted(signal).exitCode)
  }

  close (): void {
    for (const signal of SIGNALS) this.#source.off(signal, this.#listener)
  }

  #receive (signal: NodeJS.Signals): void {
    if (this.#isEcho(signal)) return
    if (this.#owner !== null) this.#owner(signal)
    else if (this.signal.aborted) this.exitNow(signal)
    else this.abort(new Interrupted(signal))
  }

  #isEcho (signal: NodeJS.Signals): boolean {
    const at = this.#source.now?.() ?? performance.now()
    const last = this.#last
    this.#last = { signal, at }
    return this.#source.env.npm_lifecycle_event !== undefined && last?.signal === signal && at - last.at < ECHO_MS
  }
}
