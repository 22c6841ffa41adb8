import { load, type ChatCall, type LoadResult, type PostCall } from './load.js'
import type { Bar } from './lists.js'
import type { BenchServer } from './servers.js'
import { percentile } from './streams.js'

export interface PlainTarget<C = ChatCall | PostCall> {
  readonly server: BenchServer
  readonly call?: C
}

/** One target: at 1 and at 32 connections, and what a request costs in microseconds of the processor at 32; NaN if unknown. */
export interface PlainResult {
  readonly one: LoadResult
  readonly many: LoadResult
  readonly cpuUs: number
}

export type Plain = ReadonlyMap<string, PlainResult>

/** Rounds are interleaved, so that a noisy moment hits all alike; medians over the rounds. */
export async function measurePlain (
  targets: ReadonlyMap<string, PlainTarget>, rounds: number, seconds: number, say: (text: string) => void
): Promise<Plain> {
  const runs = new Map<string, { readonly one: LoadResult[], readonly many: LoadResult[], readonly cpu: number[] }>()
  for (const name of targets.keys()) runs.set(name, { one: [], many: [], cpu: [] })
  for (const [, { server, call }] of targets) await load(server.origin, 32, 2, call)
  for (let round = 0; round < rounds; round++) {
    for (const [name, { server, call }] of targets) {
      const { one, many, cpu } = runs.get(name)!
      one.push(await load(server.origin, 1, seconds, call))
      const before = await server.cpuMs()
      const result = await load(server.origin, 32, seconds, call)
      many.push(result)
      const used = await server.cpuMs() - before
      cpu.push(used === 0 ? NaN : used * 1000 / result.requests)
    }
    say(`round ${round + 1} of ${rounds} done`)
  }
  return new Map([...runs].map(([name, { one, many, cpu }]) => {
    return [name, { one: median(one), many: median(many), cpuUs: percentile(cpu, 50) }]
  }))
}

function median (runs: readonly LoadResult[]): LoadResult {
  const of = (key: keyof LoadResult): number => percentile(runs.map(run => run[key]), 50)
  return {
    requestsPerS: of('requestsPerS'),
    p50: of('p50'),
    p99: of('p99'),
    requests: runs.reduce((sum, run) => sum + run.requests, 0),
    errors: runs.reduce((sum, run) => sum + run.errors, 0)
  }
}

export function plainBars (plain: Plain): readonly Bar[] {
  const [up, bare, light] = ['upstream alone', 'bare node proxy', 'light node proxy'].map(name => plain.get(name)!)
  const added = (plain.get('svc, slot')!.one.p50 - up!.one.p50) / (bare!.one.p50 - up!.one.p50)
  const bars = ['svc, slot', 'svc, upstream', 'svc, upstream with retries and fallback'].flatMap(name => {
    const { requestsPerS } = plain.get(name)!.many
    return [
      atLeast(`${name}: throughput at 32 connections, of the bare proxy`, requestsPerS / bare!.many.requestsPerS, 0.8),
      atLeast(`${name}: throughput at 32 connections, of the light proxy`, requestsPerS / light!.many.requestsPerS, 0.65)
    ]
  })
  const [once, chained] = ['svc, upstream', 'svc, upstream with retries and fallback'].map(name => plain.get(name)!.many.requestsPerS)
  // nothing fails here: what could be tried again or elsewhere costs next to nothing
  bars.push(atLeast('svc, upstream with retries and fallback: throughput at 32 connections, of one without', chained! / once!, 0.97))
  return [...bars, { name: 'svc, slot: added p50 at 1 connection, times the bare proxy\'s', value: added, limit: '<= 1.50', ok: added <= 1.5 }]
}

export function atLeast (name: string, value: number, least: number): Bar {
  return { name, value, limit: `>= ${least.toFixed(2)}`, ok: value >= least }
}
