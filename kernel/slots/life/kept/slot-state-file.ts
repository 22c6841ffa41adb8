import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { SerialQueue } from '../../../async/serial-queue.js'
import { messageOf, slotStateSchema, type Clock, type Logger, type Timer } from '../../../contract/index.js'
import { writeFileAtomic } from '../../../config/files/atomic-file.js'

/** `<state>/slots/<name>/state.json`. `updated_at` and `last_used_at` in epoch seconds. */
const slotStateFileSchema = z.looseObject({
  name: z.string(),
  state: slotStateSchema,
  model_id: z.string().nullable().default(null),
  port: z.number().nullable().default(null),
  ports: z.record(z.string(), z.number()).exactOptional(),
  updated_at: z.number(),
  last_used_at: z.number().nullable().default(null),
  generation: z.int().min(0).default(0),
  message: z.string().default(''),
  extra: z.record(z.string(), z.unknown()).default({})
})
export type SlotStateFile = z.output<typeof slotStateFileSchema>

const WRITE_EVERY_MS = 1_000

/**
 * Keeps the state of every slot on disk, at most once a second each: a crash loses the last second of a record
 * that informs. What runs is always read back from the container runtime; what was promised is `written` first.
 */
export class SlotStateFiles {
  readonly #root: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #pending = new Map<string, SlotStateFile>()
  readonly #timers = new Map<string, Timer>()
  readonly #writes = new SerialQueue()

  constructor (root: string, clock: Clock, log: Logger) {
    this.#root = root
    this.#clock = clock
    this.#log = log
  }

  /** Null when there is none, or none that can be read: the slot then starts as if new. */
  async read (name: string): Promise<SlotStateFile | null> {
    try {
      return slotStateFileSchema.parse(JSON.parse(await readFile(this.#path(name), 'utf8')))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#log.warn({ slot: name, error: messageOf(error) }, 'state file of slot is not readable and is ignored')
      }
      return null
    }
  }

  /** Notes the state; written soon, or by `flush`. */
  note (name: string, state: SlotStateFile): void {
    this.#pending.set(name, state)
    if (this.#timers.has(name)) return
    this.#timers.set(name, this.#clock.setTimer(WRITE_EVERY_MS, () => {
      this.#timers.delete(name)
      void this.#write(name)
    }))
  }

  /** Resolves when what was noted of a slot is on the disk, or could not be written, which is logged. */
  async written (name: string): Promise<void> {
    this.#timers.get(name)?.cancel()
    this.#timers.delete(name)
    await this.#write(name)
  }

  async remove (name: string): Promise<void> {
    this.#forget(name)
    await this.#writes.idle()
    await rm(join(this.#root, name), { recursive: true, force: true })
  }

  /** Writes what is still pending. */
  async flush (): Promise<void> {
    for (const name of [...this.#pending.keys()]) void this.written(name)
    await this.#writes.idle()
  }

  #write (name: string): Promise<void> {
    return this.#writes.run(async () => {
      const state = this.#pending.get(name)
      if (state === undefined) return
      this.#pending.delete(name)
      try {
        await writeFileAtomic(this.#path(name), `${JSON.stringify(state, null, 2)}\n`)
      } catch (error) {
        this.#log.warn({ slot: name, error: messageOf(error) }, 'state file of slot could not be written')
      }
    })
  }

  #forget (name: string): void {
    this.#timers.get(name)?.cancel()
    this.#timers.delete(name)
    this.#pending.delete(name)
  }

  #path (name: string): string {
    return join(this.#root, name, 'state.json')
  }
}
