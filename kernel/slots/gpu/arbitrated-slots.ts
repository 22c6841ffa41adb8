import type { Device, NamedSlotConfig } from '../../contract/index.js'
import type { PlacedSlot } from './gpu-groups.js'

/** What the arbiter asks of the slots. */
export interface GpuSlots {
  device (slot: NamedSlotConfig): Device
  /** Its engine runs on another machine: it has no part in a GPU of this one. */
  isElsewhere (slot: NamedSlotConfig): boolean
  /** What the slot was when its engine was started, whatever its file says by now; null without an engine. */
  launchedAs (name: string): PlacedSlot | null
  /** As started: slots whose engine is left running because a file of theirs cannot be read. */
  held (): readonly PlacedSlot[]
  /** Whether a slot has an engine, or is about to get one. */
  isUp (name: string): boolean
  isBusy (name: string): boolean
  /** On the monotonic clock. */
  lastUsedAt (name: string): number | null
  /** Refuses those who wait for the slot; requests in flight go on. */
  turnAway (name: string): void
  /** Resolves when the engine is gone and its memory is free; rejects when it cannot be stopped. */
  stop (name: string, force: boolean, drainMs: number): Promise<void>
  /** Resolves when slots that were deleted have let go of their engines. */
  departed (): Promise<void>
  start (name: string, signal: AbortSignal): Promise<void>
  /** Whether the engine itself says that it works, perhaps for a client that bypasses the gateway. Never rejects. */
  engineBusy (name: string, signal: AbortSignal): Promise<boolean>
}
