import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { FakeHub } from '../plugins/services/hub/fake-hub.js'
import type { Caller } from './writers.js'

interface Snapshot { readonly state: string, readonly error_code: string | null, readonly error: string | null }

/** A disk that takes nothing ends a pull, and its client is told so. */
const excused = /disk is full|disk space|free|read-only|EROFS|ENOSPC/

/** Pulls that were taken on. Each must come to its end, however often the gateway is killed. */
export class Pulls {
  readonly #caller: Caller
  readonly #open = new Map<number, string>()
  readonly #store: string
  readonly #told: (problem: string) => void
  readonly counts = { taken: 0, completed: 0, full: 0 }

  constructor (caller: Caller, hub: FakeHub, store: string, file: Buffer, told: (problem: string) => void) {
    this.#caller = caller
    this.#store = store
    this.#told = told
    hub.add('org/tiny', { files: { 'tiny.gguf': file } })
  }

  /** Begins one, or looks after the one that a writer began. */
  async one (writer: number): Promise<void> {
    const id = this.#open.get(writer)
    if (id !== undefined) return await this.#look(writer, id)
    const next = `pulled-${writer}-${this.counts.taken}`
    const answer = await this.#caller.call('POST', `/api/models/${next}/pull`, { hf_repo: 'org/tiny' })
    if (answer?.status !== 202) return
    this.counts.taken++
    this.#open.set(writer, next)
  }

  /** Resolves when none is open, or rejects when they take too long. */
  async settled (withinMs: number): Promise<void> {
    const end = performance.now() + withinMs
    while (this.#open.size > 0) {
      for (const [writer, id] of this.#open) await this.#look(writer, id)
      if (performance.now() > end) throw new Error(`pulls that do not end: ${[...this.#open.values()].join(', ')}`)
      await new Promise(resolve => { setTimeout(resolve, 200) })
    }
  }

  async check (): Promise<void> {
    for (const [writer, id] of this.#open) await this.#look(writer, id)
  }

  async #look (writer: number, id: string): Promise<void> {
    const answer = await this.#caller.call('GET', `/api/models/${id}/pull/status`)
    if (answer === null) return
    const { state, error_code: code, error } = answer.json as Snapshot
    if (answer.status !== 200) this.#told(`pull ${id}: ${answer.status} ${answer.code}`)
    else if (state === 'failed' && excused.test(error ?? '')) this.counts.full++
    else if (state === 'failed') this.#told(`pull ${id} was taken on and failed: ${String(code)} ${String(error)}`)
    else if (state !== 'completed') return
    else {
      this.counts.completed++
      const model = await this.#caller.call('GET', `/api/models/${id}`)
      if (model !== null && model.status !== 200) this.#told(`pull ${id} is completed, and the model is ${model.status}`)
    }
    this.#open.delete(writer)
    await this.#caller.call('DELETE', `/api/models/${id}?force_cascade=true`)
    // the gateway leaves files to their owner
    try {
      rmSync(join(this.#store, id), { recursive: true, force: true })
    } catch {
      // it may not be written to at the moment
    }
  }
}
