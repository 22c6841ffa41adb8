import { messageOf, type Logger } from '../../contract/index.js'
import { modeOf, type GpuCore } from './gpu-arbiter-core.js'
import type { GpuState, GpuStateFile } from './gpu-arbiter-file.js'

export interface GpuRecordDeps {
  readonly file: GpuStateFile
  readonly log: Logger
}

/** What the next run learns of the GPU: writes the state machine as it is at that moment. */
export class GpuRecord {
  readonly #deps: GpuRecordDeps
  readonly #core: () => GpuCore
  readonly #activity: () => number | null
  /** What the file was last told. */
  #keptActivity: number | null = null

  /** @param activity when images were last made, in epoch milliseconds */
  constructor (deps: GpuRecordDeps, core: () => GpuCore, activity: () => number | null) {
    this.#deps = deps
    this.#core = core
    this.#activity = activity
  }

  /** What the last run left. */
  async open (): Promise<GpuState> {
    const state = await this.#deps.file.read()
    this.#keptActivity = state.last_img_activity
    return state
  }

  write (): Promise<void> {
    return this.#deps.file.write(this.#state())
  }

  /** The time of later images, which changes nothing else. Never rejects. */
  async keepActivity (): Promise<void> {
    const state = this.#state()
    if (this.#core().phase !== 'img' || state.last_img_activity === this.#keptActivity) return
    this.#keptActivity = state.last_img_activity
    await this.#deps.file.write(state).catch((error: unknown) => {
      this.#deps.log.warn({ error: messageOf(error) }, 'the time of the last image could not be saved; a restart may end image mode early')
    })
  }

  /** Resolves when what was to be written is on disk, or has failed. */
  written (): Promise<void> {
    return this.#deps.file.idle()
  }

  #state (): GpuState {
    const core = this.#core()
    const activity = this.#activity()
    return {
      mode: modeOf(core),
      pinned: core.pinned,
      saved_llm_slots: [...core.saved],
      last_img_activity: activity === null ? null : activity / 1000
    }
  }
}
