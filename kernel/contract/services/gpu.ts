/** Whom the shared GPU belongs to: language models and the like, or the image engine. */
export const gpuModes = ['llm', 'img'] as const
export type GpuMode = typeof gpuModes[number]

/** The GPU at one moment. Times in epoch milliseconds. */
export interface GpuStatus {
  /** The mode in force, or the one that is being entered: from its first moment on, slots of the other mode are refused. */
  readonly mode: GpuMode
  /** The mode is still being entered: engines are stopped, or brought back. */
  readonly switching: boolean
  /** Why the last switch failed; null when it did not. */
  readonly error: string | null
  /** Image mode stays until it is forced out. */
  readonly pinned: boolean
  /** Enabled image slots on a GPU, and the slots that share one with them: they are never up together. */
  readonly image_slots: readonly string[]
  readonly llm_slots: readonly string[]
  /** Slots that were stopped for image mode and come back with the other. */
  readonly saved_llm_slots: readonly string[]
  readonly last_img_activity: number | null
  /** Quiet minutes after which image mode ends by itself; 0 is never. */
  readonly idle_restore_minutes: number
  readonly idle_restore_at: number | null
}

/**
 * Decides who has the GPU. Loading or using an image slot
 * through `SlotService` enters image mode by itself; this is for those who want the mode and not the slot.
 */
export interface GpuArbiter {
  status (): GpuStatus
  /**
   * Begins to enter a mode and returns at once: false when it is in force or on its way already. Into image mode, the
   * first image slot is loaded as well. `force` ends image mode although it is pinned, and its running jobs.
   * `pin` sets the pin along with image mode. Throws `gpu.img_slot_missing`, `gpu.pinned`.
   */
  switchTo (mode: GpuMode, options?: { readonly force?: boolean, readonly pin?: boolean }): boolean
  /** Resolves when no switch is under way. */
  settled (signal: AbortSignal): Promise<void>
  /** Written down when it resolves; rejects with `config.write_failed` when that cannot be done. */
  pin (pinned: boolean): Promise<void>
}
