import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { messageOf, type Clock, type Logger, type Timer } from 'svc-gateway/plugin'
import { failed } from './items.js'
import { KeptResponses } from './kept-responses.js'
import type { Keeping } from './settings.js'

const HOUR_MS = 3_600_000

/** The database, opened with the first request that needs it: a gateway that keeps nothing does not pay for one. */
export class KeptFile {
  readonly #path: string
  readonly #settings: Keeping
  readonly #clock: Clock
  readonly #log: Logger
  #opening: Promise<KeptResponses> | null = null
  #opened: KeptResponses | null = null
  #timer: Timer | null = null

  constructor (path: string, settings: Keeping, clock: Clock, log: Logger) {
    this.#path = path
    this.#settings = settings
    this.#clock = clock
    this.#log = log
  }

  /** Null until `open` has settled. */
  get opened (): KeptResponses | null { return this.#opened }

  /** Rejects with `responses.store_failed`; the next call tries again. */
  open (): Promise<KeptResponses> {
    return this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
  }

  /** Of an earlier run: what is too old goes, what it was making has failed; all of it goes where nothing is kept any more. */
  async start (): Promise<void> {
    if (!existsSync(this.#path)) return
    try {
      if (this.#settings.store) await this.open()
      else await Promise.all(['', '-wal', '-shm'].map(end => rm(this.#path + end, { force: true })))
    } catch (error) {
      this.#log.error({ error: messageOf(error) }, 'the kept responses cannot be opened')
    }
  }

  async close (): Promise<void> {
    await this.#opening?.catch(() => null)
    this.#timer?.cancel()
    this.#opened?.close()
    this.#opened = null
  }

  async #open (): Promise<KeptResponses> {
    const { keep_days: days, max_responses: responses, max_mb: mb } = this.#settings
    const store = await KeptResponses.open(this.#path, { days, responses, bytes: mb * 1024 * 1024 })
    this.#opened = store
    store.foldLogWith(this.#clock)
    this.#endOpen(store)
    this.#dropOld(store)
    return store
  }

  /** Where the disk takes nothing, what is kept can still be read. */
  #endOpen (store: KeptResponses): void {
    try {
      for (const response of store.open()) store.finish(String(response.id), failed(response, 'the gateway stopped while it was being generated'))
    } catch (error) {
      this.#log.error({ error: messageOf(error) }, 'responses of an earlier run could not be ended')
    }
  }

  #dropOld (store: KeptResponses): void {
    try {
      store.dropOld(this.#clock.now())
    } catch (error) {
      this.#log.error({ error: messageOf(error) }, 'old responses could not be deleted')
    }
    this.#timer = this.#clock.setTimer(HOUR_MS, () => this.#dropOld(store))
  }
}
