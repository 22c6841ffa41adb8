import { redactLine, type Clock, type ConfigService, type SseEvent } from 'svc-gateway/plugin'
import { systemError } from './errors.js'
import { journalLines, type JournalEnd } from './journal-process.js'
import type { LogQuery } from './schemas.js'

export interface JournalServices {
  readonly clock: Clock
  readonly config: ConfigService
}

export interface JournalTail {
  readonly lines: readonly string[]
  readonly hint?: string
}

/** A journal on a slow disk may take long to be searched. */
const PATIENCE_MS = 15_000
/** What one answer holds; of more the newest lines count. */
const MOST_CHARACTERS = 8 * 1024 * 1024

/** Each reader is a process of its own. */
const MAX_READERS = 16

const MISSING = 'this host has no journalctl, so there is no journal to read; the gateway writes its log to standard error'

/** The journal of systemd, read by its own tool. Every line passes the filters for secrets. */
export class Journal {
  readonly #services: JournalServices
  readonly #command: string
  /** Ends every reader when the plugin stops. */
  readonly #closing = new AbortController()
  readonly #reading = new Set<Promise<unknown>>()
  #readers = 0

  constructor (services: JournalServices, command: string) {
    this.#services = services
    this.#command = command
  }

  /** Throws `system.logs_error` for a time that journalctl does not understand, `system.logs_busy` as below. */
  async tail (query: LogQuery, caller: AbortSignal): Promise<JournalTail> {
    this.requireRoom()
    this.#readers++
    try {
      return await this.#owned(this.#tail(query, caller))
    } finally {
      this.#readers--
    }
  }

  /** Throws `system.logs_busy` when as many read the journal as may. */
  requireRoom (): void {
    if (this.#readers < MAX_READERS) return
    throw systemError('system.logs_busy', `${MAX_READERS} readers already follow the journal; close one of them, or try again later`,
      { details: { retry_after_s: 5 } })
  }

  /** Lines as they are written. What keeps them away is told as an `error` event, and ends the stream. */
  async* follow (query: LogQuery, caller: AbortSignal): AsyncGenerator<SseEvent> {
    const signal = AbortSignal.any([caller, this.#closing.signal])
    this.requireRoom()
    this.#readers++
    const lines = journalLines(this.#command, query, true, signal, this.#started)
    try {
      for (let next = await lines.next(); ; next = await lines.next()) {
        if (next.done === true) {
          if (!signal.aborted) yield { event: 'error', data: { message: whyEnded(next.value) } }
          return
        }
        yield { data: this.#clean(next.value) }
      }
    } finally {
      this.#readers--
      await this.#owned(lines.return({ missing: false, code: null, complaint: '' }))
    }
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#reading)
  }

  async #tail (query: LogQuery, caller: AbortSignal): Promise<JournalTail> {
    const late = new AbortController()
    const timer = this.#services.clock.setTimer(PATIENCE_MS, () => late.abort())
    const lines: string[] = []
    let held = 0
    let cut = false
    try {
      const signal = AbortSignal.any([caller, late.signal, this.#closing.signal])
      const source = journalLines(this.#command, query, false, signal, this.#started)
      let next = await source.next()
      for (; next.done !== true; next = await source.next()) {
        const line = this.#clean(next.value)
        lines.push(line)
        for (held += line.length; held > MOST_CHARACTERS && lines.length > 1; cut = true) held -= lines.shift()!.length
      }
      if (late.signal.aborted) return { lines, hint: 'the journal took longer than 15 seconds; ask for less with `since` or `n`' }
      const hint = cut ? 'only the newest 8 MiB are shown' : hintOf(next.value, query.unit, lines.length)
      return { lines, ...(hint === null ? {} : { hint }) }
    } finally {
      timer.cancel()
    }
  }

  #clean (line: string): string {
    return redactLine(this.#services.config.withoutSecrets(line))
  }

  readonly #started = (exited: Promise<unknown>): void => { void this.#owned(exited) }

  async #owned<T> (work: Promise<T>): Promise<T> {
    this.#reading.add(work)
    try {
      return await work
    } finally {
      this.#reading.delete(work)
    }
  }
}

/** Null when there is nothing to tell. Throws `system.logs_error`. */
function hintOf ({ missing, code, complaint }: JournalEnd, unit: string, count: number): string | null {
  if (missing) return MISSING
  if (code !== 0 && /^Failed to parse timestamp/.test(complaint)) {
    throw systemError('system.logs_error', `since: ${complaint}; write it as 2026-01-31 12:00:00, -1h or yesterday`, { param: 'since' })
  }
  if (code !== 0) return `journalctl failed: ${complaint === '' ? 'no output' : complaint}`
  if (count > 0) return null
  return complaint === '' ? `the journal has no matching entries of unit '${unit}'` : complaint
}

function whyEnded ({ missing, code, complaint }: JournalEnd): string {
  if (missing) return MISSING
  return `journalctl ended${code === null ? '' : ` with ${code}`}${complaint === '' ? '' : `: ${complaint}`}`
}
