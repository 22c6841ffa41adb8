import { Worker } from 'node:worker_threads'
import type { Clock, Timer } from '../contract/index.js'
import type { GgufHeader } from './gguf-header.js'
import type { HeaderReply, HeaderRequest } from './gguf-worker.js'

/** Longest a header may take; a real one takes about a second. */
const READ_MS = 30_000
/** How long a worker without work is kept: the next file of a scan comes at once. */
const IDLE_MS = 10_000
/** What a header's lists may take in the worker before it is ended, in MiB. */
const MEMORY_MB = 1024

interface Pending {
  readonly path: string
  readonly signal: AbortSignal | undefined
  readonly resolve: (header: GgufHeader) => void
  readonly reject: (error: Error) => void
}

/**
 * Reads headers one after the other in a thread of their own, which is started when there is something to read. A file
 * that takes too long or too much memory costs the thread and no more. Rejects with an `Error` whose `code` is the file
 * system's, or with the signal's reason.
 */
export class HeaderReader {
  readonly #clock: Clock
  readonly #readMs: number
  readonly #queue: Pending[] = []
  #current: Pending | null = null
  #worker: Worker | null = null
  #timer: Timer | null = null
  #count = 0
  #closed = false

  constructor (clock: Clock, readMs = READ_MS) {
    this.#clock = clock
    this.#readMs = readMs
  }

  read (path: string, signal?: AbortSignal): Promise<GgufHeader> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new Error('the gateway is shutting down'))
      const leave = (): void => reject(signal!.reason as Error)
      const settled = <T>(settle: (value: T) => void) => (value: T): void => {
        signal?.removeEventListener('abort', leave)
        settle(value)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#queue.push({ path, signal, resolve: settled(resolve), reject: settled(reject) })
      this.#next()
    })
  }

  /** Readings that run are rejected. */
  async close (): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#queue.splice(0)) reject(new Error('the gateway is shutting down'))
    await this.#end(new Error('the gateway is shutting down'))
  }

  #next (): void {
    if (this.#current !== null) return
    const pending = this.#queue.shift()
    if (pending === undefined) return this.#rest()
    if (pending.signal?.aborted === true) {
      pending.reject(pending.signal.reason as Error)
      return this.#next()
    }
    this.#current = pending
    this.#arm(this.#readMs, () => { void this.#end(new Error(`its header takes longer than ${this.#readMs / 1000} s to read`)) })
    const request: HeaderRequest = { id: ++this.#count, path: pending.path }
    const worker = this.#worker ??= this.#start()
    worker.postMessage(request)
  }

  #start (): Worker {
    const worker = new Worker(new URL('./gguf-worker.js', import.meta.url), {
      execArgv: [], resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB }, stderr: true, stdout: true
    })
    worker.unref()
    const isOurs = (): boolean => this.#worker === worker
    worker.on('message', (reply: HeaderReply) => { if (isOurs() && reply.id === this.#count) this.#settle(reply) })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      if (isOurs()) void this.#end(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new Error('its header takes too much memory') : error)
    })
    worker.on('exit', () => { if (isOurs()) void this.#end(new Error('its reader ended')) })
    return worker
  }

  #settle (reply: HeaderReply): void {
    const current = this.#current
    this.#current = null
    if ('header' in reply) current?.resolve(reply.header)
    else current?.reject(Object.assign(new Error(reply.problem), reply.code === null ? {} : { code: reply.code }))
    this.#next()
  }

  #rest (): void {
    if (this.#worker === null) return this.#timer?.cancel()
    this.#arm(IDLE_MS, () => { void this.#end(new Error('idle')) })
  }

  #arm (ms: number, fn: () => void): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.setTimer(ms, fn)
  }

  /** Gives the thread up; what waits goes on in a new one. */
  async #end (reason: Error): Promise<void> {
    this.#timer?.cancel()
    const worker = this.#worker
    const current = this.#current
    this.#worker = null
    this.#current = null
    current?.reject(reason)
    const ended = worker?.terminate()
    this.#next()
    await ended
  }
}
