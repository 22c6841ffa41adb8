import { Worker } from 'node:worker_threads'
import type { HashOrder, HashReply } from './hash-worker.js'

export interface FileHash {
  /** The file holds that many bytes by now: as many may be hashed. */
  advance (to: number): void
  /** Of everything up to the last `advance`. */
  digest (): Promise<string>
  /** Gives it up. Idempotent. */
  close (): void
}

interface Pending {
  readonly resolve: (hex: string) => void
  readonly reject: (error: Error) => void
}

/**
 * Hashes files as they lie on the disk, behind their writers, in one thread of their own: a fast download or a large file
 * of an earlier run never holds up the requests of the gateway. The thread lives while there is something to hash.
 */
export class FileHashes {
  #worker: Worker | null = null
  #count = 0
  readonly #open = new Map<number, Pending & { readonly digest: Promise<string> }>()

  /** What the hub knows a file by: the SHA-256 of its content, or git's id of it. */
  follow (path: string, expected: { readonly sha256: string | null, readonly size: number }): FileHash {
    const id = ++this.#count
    let settle: Pending | null = null
    const digest = new Promise<string>((resolve, reject) => { settle = { resolve, reject } })
    digest.catch(() => {})
    this.#open.set(id, { ...settle!, digest })
    const isGit = expected.sha256 === null
    this.#send({ kind: 'open', id, path, algorithm: isGit ? 'sha1' : 'sha256', prefix: isGit ? `blob ${expected.size}\0` : '' })
    return {
      advance: to => { if (this.#open.has(id)) this.#send({ kind: 'advance', id, to }) },
      digest: () => {
        if (this.#open.has(id)) this.#send({ kind: 'finish', id })
        return digest
      },
      close: () => {
        if (!this.#open.has(id)) return
        this.#send({ kind: 'close', id })
        this.#settle(id, pending => pending.reject(new Error('given up')))
      }
    }
  }

  async close (): Promise<void> {
    for (const id of [...this.#open.keys()]) this.#settle(id, pending => pending.reject(new Error('the gateway is stopping')))
    await this.#end()
  }

  #send (order: HashOrder): void {
    this.#worker ??= this.#start()
    this.#worker.postMessage(order)
  }

  #start (): Worker {
    const worker = new Worker(new URL('./hash-worker.js', import.meta.url), { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 128 } })
    worker.unref()
    worker.on('message', (reply: HashReply) => this.#settle(reply.id, pending => {
      if ('hex' in reply) pending.resolve(reply.hex)
      else pending.reject(Object.assign(new Error(reply.problem), reply.code === null ? {} : { code: reply.code }))
    }))
    const died = (error: Error): void => {
      if (this.#worker !== worker) return
      this.#worker = null
      for (const id of [...this.#open.keys()]) this.#settle(id, pending => pending.reject(error))
    }
    worker.on('error', died)
    worker.on('exit', () => died(new Error('the thread that hashes files ended')))
    return worker
  }

  #settle (id: number, settle: (pending: Pending) => void): void {
    const pending = this.#open.get(id)
    if (pending === undefined) return
    this.#open.delete(id)
    settle(pending)
    if (this.#open.size === 0) void this.#end()
  }

  async #end (): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    await worker?.terminate()
  }
}
