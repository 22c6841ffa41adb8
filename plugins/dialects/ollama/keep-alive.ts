import { malformed } from '../../v1/over-chat/ref.js'

const unitMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const DURATION = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/
const PIECE = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g

/**
 * How long a model stays after a request, in milliseconds: a number of seconds, or a duration as Go writes it (`5m`,
 * `1h30m`); what is below zero is for ever. Null: nothing is said. Throws `validation.invalid`. Pure.
 */
export function keepAliveMs (value: unknown): number | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? Infinity : value * 1_000
  if (typeof value === 'string' && value.length <= 64) {
    if (/^-?\d+$/.test(value)) return keepAliveMs(Number(value))
    const [, sign] = DURATION.exec(value) ?? []
    if (sign === '-') return Infinity
    if (sign !== undefined) {
      return [...value.matchAll(PIECE)].reduce((sum, [, amount, unit]) => sum + Number(amount) * unitMs[unit!]!, 0)
    }
  }
  throw malformed('keep_alive', 'must be a number of seconds or a duration such as "5m"; 0 unloads at once, -1 keeps')
}
