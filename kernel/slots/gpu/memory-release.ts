import type { Clock } from '../../contract/index.js'
import type { GpuMemory } from '../../hardware/gpu-memory.js'
import { pause } from '../../async/waiting.js'

const LOOK_EVERY_MS = 100
const PATIENCE_MS = 5_000
/** Readings that must agree before the memory counts as settled. */
const STEADY = 3
/** Looks after which memory that did not fall at all is taken as never used by the engine. */
const ENOUGH = 10
/** A fall that is more than the noise of a desktop. */
const NOTICEABLE_BYTES = 32 * 1024 * 1024

export type GpuMemoryReader = () => Promise<GpuMemory | null>

/**
 * Takes a reading while an engine still runs and gives the wait for afterwards: until the GPU has taken the
 * engine's memory back. The driver frees it a little later than the process goes, and an engine that is started
 * into that gap finds too little. The wait is nothing where sysfs shows nothing, and five seconds at most.
 */
export async function watchRelease (read: GpuMemoryReader, clock: Clock): Promise<() => Promise<void>> {
  const before = await read()
  if (before === null) return () => Promise.resolve()
  return async () => {
    const end = clock.monotonic() + PATIENCE_MS
    const readings: number[] = []
    for (;;) {
      const memory = await read()
      if (memory === null) return
      readings.push(total(memory))
      if (hasSettled(total(before), readings) || clock.monotonic() >= end) return
      await pause(clock, LOOK_EVERY_MS)
    }
  }
}

/** Pure: the readings fell and fall no more, or never fell. Bytes. */
export function hasSettled (before: number, readings: readonly number[]): boolean {
  const last = readings.slice(-STEADY)
  if (last.length < STEADY || last.some(reading => reading < last[0]!)) return false
  return before - last[0]! >= NOTICEABLE_BYTES || readings.length >= ENOUGH
}

function total ({ vramUsed, gttUsed }: GpuMemory): number {
  return vramUsed + gttUsed
}
