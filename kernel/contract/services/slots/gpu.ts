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
 * What stands between slots and the GPU that they share. The slots ask it before every start and every request; a plugin
 * may ask as well, before it begins what a refusal would waste. It stands before any engine is adopted.
 */
export interface SlotGate {
  /** Whether the mode lets this slot run at all. */
  allows (slot: string): boolean
  /** Throws `gpu.image_mode`, or `slot.stopped` for an image slot whose turn is over, where `allows` says no. */
  assertAllows (slot: string): void
  /** Whether a slot that serves may be lent at this moment; `admit` tells the others what to wait for. */
  lends (slot: string): boolean
  /**
   * What stands between a slot and its start: null nothing, else a wait after which to ask again. An image slot's wait
   * enters image mode. Throws `gpu.image_mode`; the wait rejects with what kept the GPU from changing hands, or with the
   * signal's reason. Leaving does not stop the switch: others may wait for it.
   */
  admit (slot: string, signal: AbortSignal): Promise<void> | null
  /** An operator unloaded this slot: without an image engine there is nothing to keep the others down for. */
  released (slot: string): void
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
