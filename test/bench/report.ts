import type { Plain } from './plain.js'
import type { Streams } from './streams.js'
import type { ClientsResult } from './clients.js'
import type { Surfaces } from './surfaces.js'

/** Of the gateway, in bytes. */
export interface MemoryResult {
  readonly idleRss: number
  readonly rssAt1000: number
  readonly before: number
  readonly after: number
  readonly requests: number
  readonly errors: number
}

const num = (value: number, digits = 2): string => Number.isFinite(value) ? value.toFixed(digits) : '-'

/** What a run found, as tables. */
export function reportLines (plain: Plain, streams: Streams, surfaces: Surfaces, memory: MemoryResult): readonly string[] {
  const lines: string[] = []
  const up = plain.get('upstream alone')!
  lines.push('\nchat, not streaming                       requests/s at 32   added p50 / p99 ms at 1      p50 / p99 ms at 32   CPU us   errors')
  for (const [name, { one, many, cpuUs }] of plain) {
    const added = `${num(one.p50 - up.one.p50, 3)} / ${num(one.p99 - up.one.p99, 3)}`
    lines.push(`${name.padEnd(39)} ${num(many.requestsPerS, 0).padStart(19)} ${added.padStart(23)} ${`${num(many.p50)} / ${num(many.p99)}`.padStart(24)} ${num(cpuUs, 0).padStart(8)} ${String(one.errors + many.errors).padStart(8)}`)
  }
  lines.push('\nchat, streaming      streams   complete   identical   first token p50 / p99 ms   gap p50 / p99 ms   CPU us per event')
  for (const [name, results] of streams) {
    for (const result of results) {
      const ttft = `${num(result.ttftP50)} / ${num(result.ttftP99)}`
      const gap = `${num(result.gapP50)} / ${num(result.gapP99)}`
      lines.push(`${name.padEnd(20)} ${String(result.streams).padStart(7)} ${String(result.completed).padStart(10)} ${String(result.identical).padStart(11)} ${ttft.padStart(26)} ${gap.padStart(18)} ${num(result.cpuUsPerEvent, 0).padStart(18)}`)
    }
  }
  lines.push('\nother surfaces                     bare proxy/s   gateway/s   MiB/s   of the bare proxy   errors')
  for (const [name, by] of surfaces) {
    const [bare, svc] = ['bare node proxy', 'svc gateway'].map(target => by.get(target)!) as [ClientsResult, ClientsResult]
    lines.push(`${name.padEnd(32)} ${num(bare.requestsPerS, 1).padStart(14)} ${num(svc.requestsPerS, 1).padStart(11)} ${num(svc.mibPerS, 0).padStart(7)} ` +
      `${num(svc.requestsPerS / bare.requestsPerS).padStart(19)} ${String(bare.errors + svc.errors).padStart(8)}`)
  }
  const mb = (bytes: number): string => `${num(bytes / 1024 / 1024, 1)} MiB`
  lines.push(`\nresident memory of the gateway: ${mb(memory.idleRss)} idle, ${mb(memory.rssAt1000)} at 1,000 streams, ` +
    `${mb(memory.before)} before and ${mb(memory.after)} after ${memory.requests} requests (${memory.errors} errors)`)
  return lines
}
