import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createGateway } from '../../../kernel/gateway.js'
import type { ReplicaTerms } from '../../../kernel/slots/replicas/replica-plan.js'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import textRoutes from '../../../plugins/v1/text/index.js'
import { fourHours, seeded } from '../../kernel/slots/replicas/seeded-loads.js'
import { replay, type Replayed } from '../../kernel/slots/replicas/replay.js'
import { reservePorts } from '../../ports.js'
import { runClients } from '../clients.js'
import type { Bar } from '../lists.js'
import { percentile } from '../streams.js'

const engine = fileURLToPath(new URL('./serial-engine.js', import.meta.url))
const CLIENTS = 16
const START_MS = 20_000
const WORKERS = 2
const MOST = 4

/** Medians of requests a second, with one replica and with four, in turn. */
export interface ReplicaThroughput {
  readonly one: number
  readonly four: number
  /** Median of the ratios of each round. */
  readonly ratio: number
}

/** Real child processes behind the gateway, each with 20 ms of work that it does alone. */
export async function measureReplicas (home: string, rounds: number, seconds: number): Promise<ReplicaThroughput> {
  await mkdir(join(home, 'etc/svc/slots'), { recursive: true })
  const { toml: ports } = await reservePorts()
  await writeFile(join(home, 'etc/svc/svc.toml'), `[slots]\nautostart = false\n${ports}[runtime]\ndriver = "process"\n[server]\nlog_level = "error"\n`)
  const slot = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nidle_timeout_s = 0\nworkers = 1\n'
  await writeFile(join(home, 'etc/svc/slots/one.toml'), slot)
  await writeFile(join(home, 'etc/svc/slots/four.toml'), `${slot}replicas = 4\n`)
  const provider = createFakeProviderPlugin({
    concurrency: () => 1, processSpec: ({ port }) => [{ command: 'node', args: [engine, String(port)], label: 'serial engine' }]
  })
  const gateway = createGateway({ builtins: [], plugins: [provider, textRoutes], home, port: 0 })
  const { baseUrl } = await gateway.start()
  try {
    for (const name of ['one', 'four']) await gateway.inference().slots.load(name)
    const ask = async (model: string): Promise<number> => {
      const body = Buffer.from(JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }))
      const call = { path: '/v1/chat/completions', contentType: 'application/json', body }
      const { requestsPerS, errors } = await runClients(baseUrl, call, CLIENTS, seconds)
      if (errors > 0) throw new Error(`${errors} requests to ${model} failed`)
      return requestsPerS
    }
    const [one, four]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      one.push(await ask('one'))
      four.push(await ask('four'))
    }
    return { one: percentile(one, 50), four: percentile(four, 50), ratio: percentile(four.map((rate, i) => rate / one[i]!), 50) }
  } finally {
    gateway.hurry()
    await gateway.stop()
  }
}

/** Four hours of a seeded load in simulated time, scaled and with fixed numbers. */
export interface SeededHours {
  readonly scaled: Replayed
  readonly fixed: ReadonlyMap<number, Replayed>
}

export function playSeededHours (): SeededHours {
  const load = seeded(9, fourHours)
  const terms: ReplicaTerms = {
    min: 0, normal: 1, max: MOST, workers: WORKERS, upAfterMs: 2_000, downAfterMs: 300_000, idleMs: 900_000, awake: true
  }
  const fixed = [1, 2, MOST].map(count => [
    count, replay(load, { startMs: START_MS, terms: { ...terms, normal: count, max: count, idleMs: null } })
  ] as const)
  return { scaled: replay(load, { startMs: START_MS, terms }), fixed: new Map(fixed) }
}

/** Requests a minute and replicas that are up, five minutes a column, and what each number of replicas waits and costs. */
export function replicaLines ({ one, four, ratio }: ReplicaThroughput, { scaled, fixed }: SeededHours): string[] {
  const columns = Array.from({ length: fourHours.length / 5 }, (_, i) => i)
  const upAt = (minute: number): number => scaled.ups.findLast(({ at }) => at <= minute * 60_000)?.up ?? 0
  const most = columns.map(column => Math.max(...[0, 1, 2, 3, 4].map(more => upAt(5 * column + more + 0.99))))
  const load = columns.map(column => Math.max(...fourHours.slice(5 * column, 5 * column + 5)))
  const picture = Array.from({ length: MOST }, (_, i) => MOST - i)
    .map(level => `  ${level} |${most.map(up => up >= level ? '#' : ' ').join('')}`)
  const bars = ' .:-=+*%@'
  const row = (name: string, { waitsMs, engineMs, starts }: Replayed): string => [
    name.padEnd(14), ...[50, 95, 99].map(p => (percentile([...waitsMs], p) / 1000).toFixed(1).padStart(8)),
    (engineMs / 3_600_000).toFixed(1).padStart(14), String(starts).padStart(8)
  ].join('')
  return [
    `${CLIENTS} clients, 20 ms of exclusive work: one replica ${one.toFixed(1)} requests/s, four ${four.toFixed(1)}: ${ratio.toFixed(2)} times`,
    '', 'four hours of a seeded load (simulated), up to 4 replicas of 2 workers that start in 20 s; replicas that are up, five minutes a column:',
    ...picture, `    +${'-'.repeat(columns.length)}`,
    `     ${load.map(rate => bars[Math.min(bars.length - 1, Math.ceil(rate / 7.5))]).join('')}  requests a minute, blank 0 to @ 60`,
    '', 'replicas       wait p50 s     p95     p99  engine hours  starts'.replace('wait p50 s', ' p50 s'),
    row('scaled, 1 to 4', scaled), ...[...fixed].map(([count, played]) => row(`always ${count}`, played))
  ]
}

export function replicaBars ({ ratio }: ReplicaThroughput, { scaled, fixed }: SeededHours): Bar[] {
  const share = scaled.engineMs / fixed.get(MOST)!.engineMs
  return [
    { name: 'four replicas with 20 ms of exclusive work, of one', value: ratio, limit: '>= 3.8', ok: ratio >= 3.8 },
    { name: 'time of engines over four hours of a seeded load, of four replicas all the time', value: share, limit: '<= 0.60', ok: share <= 0.6 }
  ]
}
