import { Random } from '../random.js'
import type { Arrival } from './replay.js'

/** Requests per minute, minute by minute, with answers of a length that varies as those of a chat do (2 to 20 s). */
export function seeded (seed: number, perMinute: readonly number[]): readonly Arrival[] {
  const random = new Random(seed)
  const arrivals = perMinute.flatMap((rate, minute) => Array.from({ length: Math.floor(rate + random.next()) }, () => ({
    at: Math.floor((minute + random.next()) * 60_000), workMs: Math.floor(2_000 + 18_000 * random.next() ** 2)
  })))
  return arrivals.toSorted((a, b) => a.at - b.at)
}

const minutes = (count: number, rate: number): number[] => Array.from({ length: count }, () => rate)

/** Four hours: quiet, a morning that rises, three bursts of a few minutes, a lull without requests, a steady afternoon. */
export const fourHours: readonly number[] = [
  ...minutes(20, 1), ...Array.from({ length: 40 }, (_, i) => 1 + i / 4), ...minutes(5, 40), ...minutes(25, 8), ...minutes(3, 60),
  ...minutes(27, 6), ...minutes(30, 0), ...minutes(50, 14), ...minutes(4, 45), ...minutes(36, 4)
]

/** A load at the edge of what two replicas serve, for an hour. */
export const edge: readonly number[] = minutes(60, 15)

/** A burst of two minutes every ten, for two hours. */
export const pulses: readonly number[] = Array.from({ length: 120 }, (_, i) => i % 10 < 2 ? 40 : 3)
