import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { SerialQueue } from '../../async/serial-queue.js'
import { writeFileAtomic } from '../../config/files/atomic-file.js'
import { gpuModes, messageOf, type Logger } from '../../contract/index.js'

/** `<state>/gpu_arbiter.json`. `last_img_activity` in epoch seconds. */
const gpuStateSchema = z.looseObject({
  mode: z.enum(gpuModes),
  pinned: z.boolean().default(false),
  saved_llm_slots: z.array(z.string()).default([]),
  last_img_activity: z.number().nullable().default(null)
})
export type GpuState = z.output<typeof gpuStateSchema>

const NEW: GpuState = { mode: 'llm', pinned: false, saved_llm_slots: [], last_img_activity: null }

/** Which mode the GPU is being moved towards, across restarts. Writes follow each other, the newest last. */
export class GpuStateFile {
  readonly #path: string
  readonly #log: Logger
  readonly #writes = new SerialQueue()

  constructor (path: string, log: Logger) {
    this.#path = path
    this.#log = log
  }

  /** LLM mode when there is no file, or none that can be read. */
  async read (): Promise<GpuState> {
    try {
      return gpuStateSchema.parse(JSON.parse(await readFile(this.#path, 'utf8')))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#log.warn({ file: this.#path, error: messageOf(error) }, 'the state of the GPU is not readable; assuming LLM mode')
      }
      return NEW
    }
  }

  /** On disk, whole, when it resolves. */
  write (state: GpuState): Promise<void> {
    return this.#writes.run(() => writeFileAtomic(this.#path, `${JSON.stringify(state, null, 2)}\n`))
  }

  idle (): Promise<void> {
    return this.#writes.idle()
  }
}
