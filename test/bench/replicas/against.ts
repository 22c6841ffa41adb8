import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { load } from '../load.js'
import type { Bar } from '../lists.js'
import { startProgram, startProgramOf, type BenchServer } from '../servers.js'
import { percentile } from '../streams.js'

const CLIENTS = 32
const WARM_UP_S = 3
/** What one engine may cost more than in the other build, for the sake of slots that have several. */
const MORE = 1.03

/** One slot with one engine. Processor time in microseconds a request. */
export interface OneReplica {
  readonly requestsPerS: number
  readonly cpuUs: number
}

/** Medians of each build, and of the ratios of each round: this one divided by the other. */
export interface AgainstResult {
  readonly now: OneReplica
  readonly other: OneReplica
  readonly requestsRatio: number
  readonly cpuRatio: number
  readonly rounds: number
}

/**
 * Another build of the gateway beside this one, in turn and in changing order, in front of the same upstream.
 * @param dist the folder that the other was built into
 */
export async function measureAgainst (dist: string, home: string, rounds: number, seconds: number): Promise<AgainstResult> {
  const folder = resolve(dist, 'test/bench')
  if (!existsSync(join(folder, 'bench-gateway.js'))) throw new Error(`${dist} is no built checkout: it has no test/bench/bench-gateway.js`)
  const servers: BenchServer[] = []
  const start = async (server: Promise<BenchServer>): Promise<BenchServer> => {
    const started = await server
    servers.push(started)
    return started
  }
  try {
    const { port } = await start(startProgram('upstream', []))
    const now = await start(startProgram('bench-gateway', [String(port), join(home, 'now')]))
    const other = await start(startProgramOf(folder, 'bench-gateway', [String(port), join(home, 'other')]))
    for (const { origin } of [now, other]) await load(origin, CLIENTS, WARM_UP_S)
    const pairs: Array<Record<'now' | 'other', OneReplica>> = []
    for (let round = 0; round < rounds; round++) {
      const runs: Partial<Record<'now' | 'other', OneReplica>> = {}
      for (const name of round % 2 === 0 ? ['other', 'now'] as const : ['now', 'other'] as const) {
        runs[name] = await once(name === 'now' ? now : other, seconds)
      }
      pairs.push({ now: runs.now!, other: runs.other! })
    }
    const median = (of: (pair: Record<'now' | 'other', OneReplica>) => number): number => percentile(pairs.map(of), 50)
    const each = (name: 'now' | 'other'): OneReplica =>
      ({ requestsPerS: median(pair => pair[name].requestsPerS), cpuUs: median(pair => pair[name].cpuUs) })
    return {
      now: each('now'),
      other: each('other'),
      requestsRatio: median(pair => pair.now.requestsPerS / pair.other.requestsPerS),
      cpuRatio: median(pair => pair.now.cpuUs / pair.other.cpuUs),
      rounds
    }
  } finally {
    for (const server of servers.reverse()) await server.stop()
  }
}

async function once (server: BenchServer, seconds: number): Promise<OneReplica> {
  const before = await server.cpuMs()
  const { requests, requestsPerS, errors } = await load(server.origin, CLIENTS, seconds)
  if (errors > 0) throw new Error(`${errors} of ${requests} requests failed`)
  return { requestsPerS, cpuUs: (await server.cpuMs() - before) * 1000 / requests }
}

export function againstLines ({ now, other, requestsRatio, cpuRatio, rounds }: AgainstResult): string[] {
  const row = (name: string, { requestsPerS, cpuUs }: OneReplica): string =>
    `${name.padEnd(18)}${requestsPerS.toFixed(0).padStart(12)}${cpuUs.toFixed(1).padStart(22)}`
  return [
    `a slot with one engine, ${CLIENTS} clients, ${rounds} rounds of each build in turn`,
    `${' '.repeat(18)}${'requests/s'.padStart(12)}${'us of processor each'.padStart(22)}`,
    row('the other build', other), row('this build', now),
    `${'median of ratios'.padEnd(18)}${requestsRatio.toFixed(3).padStart(12)}${cpuRatio.toFixed(3).padStart(22)}`
  ]
}

/** By the processor's time alone: how many go through in a second is what the machine's other work leaves. */
export function againstBars ({ cpuRatio }: AgainstResult): Bar[] {
  return [{
    name: 'processor time of a request to a slot with one engine, of the other build', value: cpuRatio, limit: `<= ${MORE}`, ok: cpuRatio <= MORE
  }]
}
