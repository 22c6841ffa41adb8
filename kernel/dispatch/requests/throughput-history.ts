import type { Clock, SlotMetrics, ThroughputHistory, ThroughputQuery, ThroughputService } from '../../contract/index.js'
import type { Throughput } from '../../slots/life/engine/throughput.js'

export interface ThroughputSources {
  readonly clock: Clock
  /** Counters by name. */
  readonly slots: () => ReadonlyMap<string, Throughput>
  readonly upstreams: () => ReadonlyMap<string, Throughput>
}

export function createThroughputService ({ clock, slots, upstreams }: ThroughputSources): ThroughputService {
  return {
    history: query => throughputHistory(query, slots(), upstreams(), clock),
    upstreams: () => Object.fromEntries([...upstreams()].map(([name, meter]): [string, SlotMetrics] => [name, meter.read()]))
  }
}

/** Counters know whole seconds, so pieces are whole seconds; the last one ends with the second that runs. */
export function throughputHistory (
  { windowS, buckets }: ThroughputQuery, slots: ReadonlyMap<string, Throughput>, upstreams: ReadonlyMap<string, Throughput>,
  clock: Clock
): ThroughputHistory {
  const bucketS = Math.ceil(windowS / buckets)
  const monotonic = clock.monotonic() / 1000
  const end = Math.floor(monotonic) + 1
  const epoch = clock.now() / 1000 - monotonic
  const edges = Array.from({ length: Math.ceil(windowS / bucketS) }, (_, i) => end - i * bucketS).reverse()
  const series = (meters: ReadonlyMap<string, Throughput>): ReadonlyArray<readonly [string, readonly number[]]> =>
    [...meters].map(([name, meter]) => [name, edges.map(edge => meter.tokensBetween(edge - bucketS, edge) / bucketS)] as const)
      .filter(([, rates]) => rates.some(rate => rate > 0))
  const bySlot = series(slots)
  const byUpstream = series(upstreams)
  const all = [...bySlot, ...byUpstream].map(([, rates]) => rates)
  const kept = edges.map((_, i) => i).filter(i => all.some(rates => rates[i]! > 0))
  const shown = (rows: typeof bySlot): Record<string, number[]> =>
    Object.fromEntries(rows.map(([name, rates]) => [name, kept.map(i => rounded(rates[i]!))]))
  return {
    window_s: windowS,
    bucket_s: bucketS,
    samples: kept.map(i => ({
      ts: rounded(epoch + edges[i]!),
      total_tps: rounded(all.reduce((sum, rates) => sum + rates[i]!, 0)),
      serving_slots: bySlot.filter(([, rates]) => rates[i]! > 0).length
    })),
    per_slot: shown(bySlot),
    per_upstream: shown(byUpstream)
  }
}

function rounded (value: number): number {
  return Math.round(value * 1000) / 1000
}
