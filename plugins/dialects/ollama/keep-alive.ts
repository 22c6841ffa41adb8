import type { SlotService } from 'svc-gateway/plugin'
import { malformed } from '../../v1/over-chat/ref.js'

/** The longest duration there is in Go; clients take it for ever. */
export const LONGEST_MS = 292 * 365.25 * 86_400_000

const unitMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const DURATION = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/
const PIECE = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g

/**
 * How long a model stays after a request, in milliseconds: a number of seconds, or a duration as Go writes it (`5m`,
 * `1h30m`); what is below zero, or longer than Go
 * can say, is for ever. Null: nothing is said. Throws `validation.invalid`. Pure.
 */
export function keepAliveMs (value: unknown): number | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? Infinity : bounded(value * 1_000)
  if (typeof value === 'string' && value.length <= 64) {
    if (/^-?\d+$/.test(value)) return keepAliveMs(Number(value))
    const [, sign] = DURATION.exec(value) ?? []
    if (sign === '-') return Infinity
    if (sign !== undefined) {
      return bounded([...value.matchAll(PIECE)].reduce((sum, [, amount, unit]) => sum + Number(amount) * unitMs[unit!]!, 0))
    }
  }
  throw malformed('keep_alive', 'must be a number of seconds or a duration such as "5m"; 0 unloads at once, -1 keeps')
}

function bounded (ms: number): number {
  return ms > LONGEST_MS ? Infinity : ms
}

/** The engine that has answered stays as long as its client said. One of a slot that is gone by now has ended. */
export function keep (slots: Pick<SlotService, 'keep' | 'names'>, slot: string | null, ms: number | null): void {
  if (slot !== null && ms !== null && slots.names().includes(slot)) slots.keep(slot, ms)
}
