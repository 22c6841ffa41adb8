import { responsesError } from '../errors.js'
import type { ForgettingFile } from './forgetting-file.js'

export const THREADS_FORM = `
CREATE TABLE threads (
  thread INTEGER PRIMARY KEY AUTOINCREMENT, used INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, responses INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX threads_used ON threads (used);
`

const DAY_MS = 86_400_000

export interface KeptLimits {
  readonly days: number
  readonly responses: number
  readonly bytes: number
}

/** A response by its place in the database. */
export interface Place {
  readonly seq: number
  readonly thread: number
}

/**
 * What threads of responses take up, and which of them go for it: a thread goes as a whole, the one that was used least
 * recently first. All but `assertRoom` and `dropOld` are parts of a transaction of their caller; times in epoch milliseconds.
 */
export class Threads {
  readonly #file: ForgettingFile
  readonly #limits: KeptLimits
  /** Of all threads: to count them again with every response would take the longer the more there are. */
  #total = { bytes: 0, responses: 0 }

  constructor (file: ForgettingFile, limits: KeptLimits) {
    this.#file = file
    this.#limits = limits
    this.count()
  }

  /** Counts again: what was added may have been rolled back. */
  count (): void {
    this.#total = this.#file.get<{ bytes: number, responses: number }>(
      'SELECT COALESCE(SUM(bytes), 0) AS bytes, COALESCE(SUM(responses), 0) AS responses FROM threads'
    )!
  }

  /** Takes in another response of so many bytes. @param thread null begins one. @returns its thread */
  add (thread: number | null, bytes: number, now: number): number {
    this.#add(bytes, 1)
    if (thread === null) return this.#file.run('INSERT INTO threads (used, bytes, responses) VALUES (?, ?, 1)', [now, bytes]).rowid
    this.#file.run('UPDATE threads SET used = ?, bytes = bytes + ?, responses = responses + 1 WHERE thread = ?', [now, bytes, thread])
    return thread
  }

  /** A response has so many bytes more. */
  grown ({ seq, thread }: Place, bytes: number): void {
    this.#file.run('UPDATE responses SET bytes = bytes + ? WHERE seq = ?', [bytes, seq])
    this.#file.run('UPDATE threads SET bytes = bytes + ? WHERE thread = ?', [bytes, thread])
    this.#add(bytes, 0)
  }

  /** A response of so many bytes was deleted. */
  shrunk (thread: number, bytes: number): void {
    this.#file.run('UPDATE threads SET bytes = bytes - ?, responses = responses - 1 WHERE thread = ?', [bytes, thread])
    this.#file.run('DELETE FROM threads WHERE thread = ? AND responses = 0', [thread])
    this.#add(-bytes, -1)
  }

  use (thread: number, now: number): void {
    this.#file.run('UPDATE threads SET used = MAX(used, ?) WHERE thread = ?', [now, thread])
  }

  /** When it was used last. */
  used (thread: number): number {
    return this.#file.get<{ used: number }>('SELECT used FROM threads WHERE thread = ?', [thread])!.used
  }

  /** Never takes the thread that was written just now. */
  makeRoom (thread: number): void {
    while (this.#total.bytes > this.#limits.bytes || this.#total.responses > this.#limits.responses) {
      const oldest = this.#file.get<{ thread: number, bytes: number, responses: number }>(
        'SELECT thread, bytes, responses FROM threads WHERE thread <> ? ORDER BY used, thread LIMIT 1', [thread]
      )
      if (oldest === undefined) return
      this.#file.evict('DELETE FROM threads WHERE thread = ?', [oldest.thread])
      this.#add(-oldest.bytes, -oldest.responses)
    }
  }

  /** Whether a request of so many bytes may go on from a response. Throws `responses.too_long`. */
  assertRoom (id: string, bytes: number): void {
    const thread = this.#file.get<{ bytes: number, responses: number }>(
      'SELECT threads.bytes, threads.responses FROM threads JOIN responses USING (thread) WHERE id = ?', [id]
    )
    const { bytes: most, responses } = this.#limits
    if (thread === undefined || (thread.bytes + bytes < most / 2 && thread.responses < responses)) return
    throw responsesError('responses.too_long', `the conversation of '${id}' has ${thread.responses} responses and ${thread.bytes} bytes; ` +
      'start a new one, or raise max_mb and max_responses of [plugins.config.v1-responses]')
  }

  dropOld (now: number): void {
    this.#file.run('DELETE FROM threads WHERE used < ?', [now - this.#limits.days * DAY_MS])
    this.count()
  }

  #add (bytes: number, responses: number): void {
    this.#total = { bytes: this.#total.bytes + bytes, responses: this.#total.responses + responses }
  }
}
