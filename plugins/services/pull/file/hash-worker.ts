import { createHash, type Hash } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'
import { parentPort } from 'node:worker_threads'

export type HashOrder =
  /** `prefix` goes into the hash before the file's bytes. */
  | { readonly kind: 'open', readonly id: number, readonly path: string, readonly algorithm: 'sha256' | 'sha1', readonly prefix: string }
  /** The file holds that many bytes by now. */
  | { readonly kind: 'advance', readonly id: number, readonly to: number }
  | { readonly kind: 'finish', readonly id: number }
  | { readonly kind: 'close', readonly id: number }

export type HashReply =
  | { readonly id: number, readonly hex: string }
  | { readonly id: number, readonly problem: string, readonly code: string | null }

const CHUNK = 1024 * 1024

/** One file that is hashed behind its writer. */
class Follower {
  readonly #id: number
  readonly #path: string
  readonly #hash: Hash
  #file: FileHandle | null = null
  #at = 0
  #to = 0
  #finishing = false
  #running = false
  #closed = false

  constructor ({ id, path, algorithm, prefix }: Extract<HashOrder, { kind: 'open' }>) {
    this.#id = id
    this.#path = path
    this.#hash = createHash(algorithm).update(prefix)
  }

  take (order: Exclude<HashOrder, { kind: 'open' }>): void {
    if (order.kind === 'advance') this.#to = Math.max(this.#to, order.to)
    else if (order.kind === 'finish') this.#finishing = true
    else this.#closed = true
    if (!this.#running) void this.#run()
  }

  async #run (): Promise<void> {
    this.#running = true
    try {
      const buffer = Buffer.allocUnsafe(CHUNK)
      while (!this.#closed && this.#at < this.#to) {
        this.#file ??= await open(this.#path, 'r')
        const { bytesRead } = await this.#file.read(buffer, 0, Math.min(CHUNK, this.#to - this.#at), this.#at)
        if (bytesRead === 0) throw new Error('the file is shorter than what was written')
        this.#hash.update(buffer.subarray(0, bytesRead))
        this.#at += bytesRead
      }
      if (this.#finishing && !this.#closed) reply({ id: this.#id, hex: this.#hash.digest('hex') })
    } catch (error) {
      reply({ id: this.#id, problem: (error as Error).message, code: (error as NodeJS.ErrnoException).code ?? null })
      this.#closed = true
    }
    if (this.#finishing || this.#closed) {
      followers.delete(this.#id)
      await this.#file?.close().catch(() => undefined)
    }
    this.#running = false
  }
}

const followers = new Map<number, Follower>()

function reply (message: HashReply): void {
  parentPort!.postMessage(message)
}

parentPort!.on('message', (order: HashOrder) => {
  if (order.kind === 'open') followers.set(order.id, new Follower(order))
  else followers.get(order.id)?.take(order)
})
