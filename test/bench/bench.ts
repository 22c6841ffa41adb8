import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { coldStartBar, measureColdStart, type ColdStart } from './cold-start.js'
import { listBars, listLines, measureLists, type Bar, type ListsResult } from './lists.js'
import { oneTextEach, runSurface, surfaceLoads, type SurfaceResult } from './surfaces.js'
import { load, loadCount, loadTool, type LoadResult } from './load.js'
import { hasNginx, startNginx, startProgram, type BenchServer } from './servers.js'
import { expectedStream, percentile, runStreams, type StreamsResult } from './streams.js'

/**
 * Measures the gateway against the least a Node proxy can do, in one run on one machine; only ratios mean
 * anything. `npm run bench`, `npm run bench -- --quick`, `--json`, `--lists` for the list routes and `--cold` for the cold start
 * alone. Exit code 1 when a bar is
 * missed.
 */
const quick = process.argv.includes('--quick')
const json = process.argv.includes('--json')
const coldOnly = process.argv.includes('--cold')
const listsOnly = process.argv.includes('--lists')
const ROUNDS = quick ? 2 : 5
const SECONDS = quick ? 2 : 4
const MANY_REQUESTS = quick ? 20_000 : 100_000
const LIST_REQUESTS = quick ? 50 : 200

const say = (text: string): void => { if (!json) process.stdout.write(`${text}\n`) }
const num = (value: number, digits = 2): string => Number.isFinite(value) ? value.toFixed(digits) : '-'

const home = mkdtempSync(join(tmpdir(), 'svc-bench-'))
const servers: BenchServer[] = []
const start = async (server: Promise<BenchServer>): Promise<BenchServer> => {
  const started = await server
  servers.push(started)
  return started
}

try {
  const cold = listsOnly ? null : await measureColdStart(join(home, 'cold'), ROUNDS)
  if (coldOnly) finish({ coldStart: cold }, [coldStartBar(cold!)])
  else await measureRest(cold)
} finally {
  for (const server of servers.reverse()) await server.stop()
  rmSync(home, { recursive: true, force: true })
}

async function measureRest (cold: ColdStart | null): Promise<void> {
  const lists = await measureLists(home, LIST_REQUESTS)
  if (!json) listLines(lists).forEach(say)
  if (cold === null) finish({ lists: shownLists(lists) }, listBars(lists))
  else await measureAll(lists, cold)
}

async function measureAll (lists: ListsResult, coldStart: ColdStart): Promise<void> {
  const nginx = hasNginx()
  say(`load: ${loadTool}, upstream: ${nginx ? 'nginx' : 'node'}, ${ROUNDS} rounds of ${SECONDS} s`)
  const upstream = await start(nginx ? startNginx(null) : startProgram('upstream', []))
  const streamer = await start(startProgram('upstream', []))
  const gateway = await start(startProgram('bench-gateway', [String(upstream.port), join(home, 'plain')]))
  const targets = new Map<string, BenchServer>([
    ['upstream alone', upstream],
    ...(nginx ? [['nginx as proxy', await start(startNginx(upstream.origin))] as const] : []),
    ['bare node proxy', await start(startProgram('bare-proxy', [upstream.origin]))],
    ['svc gateway', gateway]
  ])
  const plain = await measurePlain(targets)
  const streaming = await start(startProgram('bench-gateway', [String(streamer.port), join(home, 'streaming')]))
  const idleRss = await streaming.memory()
  const { results, rssAt1000 } = await measureStreams(new Map<string, BenchServer>([
    ['upstream alone', streamer],
    ['bare node proxy', await start(startProgram('bare-proxy', [streamer.origin]))],
    ['svc gateway', streaming]
  ]), streaming, streamer.origin)
  const surfaces = await measureSurfaces(new Map<string, BenchServer>([
    ['bare node proxy', await start(startProgram('bare-proxy', [streamer.origin]))],
    ['svc gateway', streaming]
  ]))
  // a gateway that idled while the others were measured has given its young generation back; growth starts after that is refilled
  await loadCount(gateway.origin, 32, MANY_REQUESTS / 2)
  const before = await gateway.memory()
  const many = await loadCount(gateway.origin, 32, MANY_REQUESTS)
  const after = await gateway.memory()
  const memory = { idleRss, rssAt1000, before, after, requests: many.requests, errors: many.errors }
  const bySurface = [...surfaces].map(([name, by]) => [name, Object.fromEntries(by)] as const)
  const [surfaceRuns, plainRuns, streamRuns] = [bySurface, plain, results].map(entries => Object.fromEntries<unknown>(entries))
  if (!json) report(plain, results, surfaces, memory)
  const judged = judge(plain, results, surfaces, memory, gateway.ready.listeningMs as number)
  const bars = [...judged, ...listBars(lists), coldStartBar(coldStart)]
  finish({
    loadTool, coldStart, plain: plainRuns, streams: streamRuns, surfaces: surfaceRuns, memory, lists: shownLists(lists)
  }, bars)
}

function shownLists ({ routes, starts }: ListsResult): object {
  return { routes: Object.fromEntries(routes), starts }
}

function finish (result: object, bars: readonly Bar[]): void {
  if (json) process.stdout.write(`${JSON.stringify({ ...result, bars }, null, 2)}\n`)
  say('')
  for (const bar of bars) say(`${bar.ok ? 'met   ' : 'MISSED'}  ${bar.name}: ${num(bar.value)} (${bar.limit})`)
  process.exitCode = bars.every(bar => bar.ok) ? 0 : 1
}

type Plain = Map<string, { readonly one: LoadResult, readonly many: LoadResult }>

/** Rounds are interleaved, so that a noisy moment hits all alike; medians over the rounds. */
async function measurePlain (targets: ReadonlyMap<string, BenchServer>): Promise<Plain> {
  const runs = new Map([...targets.keys()].map(name => [name, { one: [] as LoadResult[], many: [] as LoadResult[] }]))
  for (const [, target] of targets) await load(target.origin, 32, 2)
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, { origin }] of targets) {
      runs.get(name)!.one.push(await load(origin, 1, SECONDS))
      runs.get(name)!.many.push(await load(origin, 32, SECONDS))
    }
    say(`round ${round + 1} of ${ROUNDS} done`)
  }
  return new Map([...runs].map(([name, { one, many }]) => [name, { one: median(one), many: median(many) }]))
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

async function measureStreams (
  targets: ReadonlyMap<string, BenchServer>, gateway: BenchServer, upstream: string
): Promise<{ results: Map<string, StreamsResult[]>, rssAt1000: number }> {
  const expected = await expectedStream(upstream)
  const results = new Map<string, StreamsResult[]>()
  let rssAt1000 = 0
  for (const streams of [1, 100, 1000]) {
    for (const [name, { origin }] of targets) {
      const watched = name === 'svc gateway' && streams === 1000
      const result = await runStreams(origin, streams, expected, async () => { if (watched) rssAt1000 = await gateway.memory() })
      results.set(name, [...results.get(name) ?? [], result])
    }
    say(`${streams} streams done`)
  }
  return { results, rssAt1000 }
}

type Surfaces = ReadonlyMap<string, ReadonlyMap<string, SurfaceResult>>

/** By kind of request, then by target; rounds are interleaved. */
async function measureSurfaces (targets: ReadonlyMap<string, BenchServer>): Promise<Surfaces> {
  const all = new Map<string, Map<string, SurfaceResult>>()
  for (const kind of surfaceLoads) {
    const runs = new Map([...targets.keys()].map(name => [name, [] as SurfaceResult[]]))
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, { origin }] of targets) runs.get(name)!.push(await runSurface(origin, kind, SECONDS / 2))
    }
    const middle = (list: SurfaceResult[]): SurfaceResult => {
      return list.sort((a, b) => a.requestsPerS - b.requestsPerS)[Math.floor(list.length / 2)]!
    }
    all.set(kind.name, new Map([...runs].map(([name, list]) => [name, middle(list)])))
    say(`${kind.name} done`)
  }
  return all
}

function judge (
  plain: Plain, streams: ReadonlyMap<string, StreamsResult[]>, surfaces: Surfaces,
  memory: { before: number, after: number }, listeningMs: number
): Bar[] {
  const [up, bare, svc] = ['upstream alone', 'bare node proxy', 'svc gateway'].map(name => plain.get(name)!)
  const throughput = svc!.many.requestsPerS / bare!.many.requestsPerS
  const added = (svc!.one.p50 - up!.one.p50) / (bare!.one.p50 - up!.one.p50)
  const thousand = streams.get('svc gateway')!.at(-1)!
  const growth = memory.after / memory.before
  const texts = surfaces.get(oneTextEach.name)!
  const joined = texts.get('svc gateway')!.requestsPerS / texts.get('bare node proxy')!.requestsPerS
  return [
    { name: 'throughput at 32 connections, of the bare proxy', value: throughput, limit: '>= 0.70', ok: throughput >= 0.7 },
    { name: 'added p50 at 1 connection, times the bare proxy\'s', value: added, limit: '<= 1.50', ok: added <= 1.5 },
    { name: 'of 1,000 streams, complete and byte-identical', value: thousand.identical, limit: '= 1000', ok: thousand.identical === 1000 },
    { name: 'embeddings of 64 clients, one text each, of the bare proxy', value: joined, limit: '>= 3.00', ok: joined >= 3 },
    { name: `memory after ${MANY_REQUESTS} requests, of before`, value: growth, limit: '<= 1.10', ok: growth <= 1.1 },
    { name: 'start to listening with all plugins, ms', value: listeningMs, limit: '< 1000', ok: listeningMs < 1000 }
  ]
}

function report (
  plain: Plain, streams: ReadonlyMap<string, StreamsResult[]>, surfaces: Surfaces,
  memory: { idleRss: number, rssAt1000: number, before: number, after: number, requests: number, errors: number }
): void {
  const up = plain.get('upstream alone')!
  say('\nchat, not streaming     requests/s at 32   added p50 / p99 ms at 1      p50 / p99 ms at 32   errors')
  for (const [name, { one, many }] of plain) {
    const added = `${num(one.p50 - up.one.p50, 3)} / ${num(one.p99 - up.one.p99, 3)}`
    say(`${name.padEnd(20)} ${num(many.requestsPerS, 0).padStart(19)} ${added.padStart(23)} ${`${num(many.p50)} / ${num(many.p99)}`.padStart(24)} ${String(one.errors + many.errors).padStart(8)}`)
  }
  say('\nchat, streaming      streams   complete   identical   first token p50 / p99 ms   gap p50 / p99 ms')
  for (const [name, results] of streams) {
    for (const result of results) {
      const ttft = `${num(result.ttftP50)} / ${num(result.ttftP99)}`
      const gap = `${num(result.gapP50)} / ${num(result.gapP99)}`
      say(`${name.padEnd(20)} ${String(result.streams).padStart(7)} ${String(result.completed).padStart(10)} ${String(result.identical).padStart(11)} ${ttft.padStart(26)} ${gap.padStart(18)}`)
    }
  }
  say('\nother surfaces                     bare proxy/s   gateway/s   MiB/s   of the bare proxy   errors')
  for (const [name, by] of surfaces) {
    const [bare, svc] = ['bare node proxy', 'svc gateway'].map(target => by.get(target)!) as [SurfaceResult, SurfaceResult]
    say(`${name.padEnd(32)} ${num(bare.requestsPerS, 1).padStart(14)} ${num(svc.requestsPerS, 1).padStart(11)} ${num(svc.mibPerS, 0).padStart(7)} ` +
      `${num(svc.requestsPerS / bare.requestsPerS).padStart(19)} ${String(bare.errors + svc.errors).padStart(8)}`)
  }
  const mb = (bytes: number): string => `${num(bytes / 1024 / 1024, 1)} MiB`
  say(`\nresident memory of the gateway: ${mb(memory.idleRss)} idle, ${mb(memory.rssAt1000)} at 1,000 streams, ` +
    `${mb(memory.before)} before and ${mb(memory.after)} after ${memory.requests} requests (${memory.errors} errors)`)
}
