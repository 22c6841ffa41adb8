import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { coldStartBar, measureColdStart, type ColdStart } from './cold-start.js'
import { dialectBars, dialectLines, measureDialects } from './dialects.js'
import { idleBars, measureIdle } from './idle.js'
import { listBars, listLines, measureLists, type Bar, type ListsResult } from './lists.js'
import { loadCount, loadTool } from './load.js'
import { helpText, readOptions } from './options.js'
import { besideBars, measureBeside } from './memory/memory-beside.js'
import { measureMemory, memoryBars } from './memory/memory.js'
import { measureFinds, qualityLines, withFinds } from './memory/memory-finds.js'
import { modelsAt } from './memory/memory-models.js'
import { measureSteps, stepBars } from './memory/memory-steps.js'
import { loopBars, measureLoop } from './memory/memory-loop.js'
import { measureMillion, millionBars } from './memory/memory-million.js'
import { measureScale, scaleBars } from './memory/memory-scale.js'
import { measurePeers, peerLines } from './peers/peers.js'
import { measurePlain, plainBars, type PlainTarget } from './plain.js'
import { againstBars, againstLines, measureAgainst } from './replicas/against.js'
import { measureReplicas, playSeededHours, replicaBars, replicaLines } from './replicas/replicas.js'
import { reportLines, type MemoryResult } from './report.js'
import { hasNginx, startNginx, startProgram, type BenchServer } from './servers.js'
import { measureStarts, startBars, startLines } from './start.js'
import { measureStreams, streamBars } from './streams.js'
import { measureSurfaces, surfaceBars } from './surfaces.js'
import { measureTools, toolBars, toolLines, type ToolsResult } from './tools.js'

const options = readOptions(process.argv.slice(2))
const { quick, json } = options
const ROUNDS = quick ? 2 : 5
const SECONDS = quick ? 2 : 4
const MANY_REQUESTS = quick ? 20_000 : 100_000
const LIST_REQUESTS = quick ? 50 : 200

const say = (text: string): void => { if (!json) process.stdout.write(`${text}\n`) }

if (options.help) process.stdout.write(helpText)
else await run()

async function run (): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const servers: BenchServer[] = []
  try {
    if (options.peers) await comparePeers(home)
    else if (options.million) await measureMillionOnly(home)
    else if (options.memory !== undefined) await measureMemoryOnly(home, options.memory)
    else await measureGateway(home, servers)
  } finally {
    for (const server of servers.reverse()) await server.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

async function measureMemoryOnly (home: string, file: string): Promise<void> {
  const models = await modelsAt(process.env.SVC_BENCH_MODELS)
  const measured = await measureMemory(file, home, models, say)
  const finds = await measureFinds(file, home)
  const quality = withFinds(measured, models, finds)
  qualityLines(quality).forEach(say)
  if (options.quality) return finish({ memory: quality }, memoryBars(measured))
  const steps = await measureSteps(file, home, models, say)
  const scale = await measureScale(home, quick ? 10_000 : 100_000, say)
  const loop = await measureLoop(home, quick ? 10_000 : 100_000, say)
  const beside = await measureBeside(file, join(home, 'beside'), say)
  finish({ memory: { ...quality, steps, scale, loop, beside } }, [
    ...memoryBars(measured), ...stepBars(steps), ...scaleBars(scale), ...loopBars(loop), ...besideBars(beside)
  ])
}

async function measureMillionOnly (home: string): Promise<void> {
  const million = await measureMillion(home, quick ? 100_000 : 1_000_000, say)
  finish({ million }, millionBars(million))
}

async function comparePeers (home: string): Promise<void> {
  const rows = await measurePeers(home, { rounds: ROUNDS, seconds: SECONDS, streams: quick ? 100 : 1_000, say })
  if (json) process.stdout.write(`${JSON.stringify({ loadTool, peers: Object.fromEntries(rows) }, null, 2)}\n`)
  say(`\n${peerLines(rows).join('\n')}`)
}

async function measureGateway (home: string, servers: BenchServer[]): Promise<void> {
  if (options.start) {
    const starts = await measureStarts(join(home, 'start'), ROUNDS)
    startLines(starts).forEach(say)
    const idle = await measureIdle(join(home, 'idle'), SECONDS * 15_000)
    return finish({ starts, idle }, [...startBars(starts), ...idleBars(idle)])
  }
  if (options.replicas) {
    const { against: dist } = options
    // as many rounds as it takes to tell three per cent from the noise of a machine
    const against = dist === undefined ? null : await measureAgainst(dist, join(home, 'against'), ROUNDS * 3, SECONDS)
    if (against !== null) againstLines(against).forEach(say)
    const [throughput, hours] = [await measureReplicas(join(home, 'replicas'), ROUNDS, SECONDS), playSeededHours()]
    replicaLines(throughput, hours).forEach(say)
    const bars = [...against === null ? [] : againstBars(against), ...replicaBars(throughput, hours)]
    return finish({ against, replicas: throughput }, bars)
  }
  if (options.dialects) {
    const costs = await measureDialects(home, { rounds: quick ? 40 : 120, answers: quick ? 20 : 50 }, say)
    dialectLines(costs).forEach(say)
    return finish({ dialects: Object.fromEntries(costs) }, dialectBars(costs))
  }
  if (options.tools) {
    const tools = await measureToolCalls(home)
    return finish({ loadTool, tools: shownTools(tools) }, toolBars(tools))
  }
  const cold = options.lists ? null : await measureColdStart(join(home, 'cold'), ROUNDS)
  if (options.cold) return finish({ coldStart: cold }, [coldStartBar(cold!)])
  const lists = await measureLists(home, LIST_REQUESTS)
  if (!json) listLines(lists).forEach(say)
  if (cold === null) finish({ lists: shownLists(lists) }, listBars(lists))
  else await measureAll(home, servers, lists, cold)
}

async function measureAll (home: string, servers: BenchServer[], lists: ListsResult, coldStart: ColdStart): Promise<void> {
  const start = async (server: Promise<BenchServer>): Promise<BenchServer> => {
    const started = await server
    servers.push(started)
    return started
  }
  const nginx = hasNginx()
  say(`load: ${loadTool}, upstream: ${nginx ? 'nginx' : 'node'}, ${ROUNDS} rounds of ${SECONDS} s`)
  const upstream = await start(nginx ? startNginx(null) : startProgram('upstream', []))
  const streamer = await start(startProgram('upstream', []))
  const gateway = await start(startProgram('bench-gateway', [String(upstream.port), join(home, 'plain')]))
  const plain = await measurePlain(new Map<string, PlainTarget>([
    ['upstream alone', { server: upstream }],
    ...(nginx ? [['nginx as proxy', { server: await start(startNginx(upstream.origin)) }] as const] : []),
    ['bare node proxy', { server: await start(startProgram('peers/bare-proxy', [upstream.origin])) }],
    ['light node proxy', { server: await start(startProgram('peers/light-proxy', [upstream.origin])) }],
    ['svc, slot', { server: gateway }],
    ['svc, upstream', { server: gateway, call: { model: 'remote/bench' } }],
    ['svc, upstream with retries and fallback', { server: gateway, call: { model: 'chained/bench' } }]
  ]), ROUNDS, SECONDS, say)
  const streaming = await start(startProgram('bench-gateway', [String(streamer.port), join(home, 'streaming')]))
  const idleRss = await streaming.memory()
  const proxy = await start(startProgram('peers/bare-proxy', [streamer.origin]))
  const { results: streams, rssAt1000 } = await measureStreams(new Map([
    ['upstream alone', { server: streamer }],
    ['bare node proxy', { server: proxy }],
    ['svc, slot', { server: streaming }],
    ['svc, upstream', { server: streaming, call: { model: 'remote/bench' } }]
  ]), streaming, streamer.origin, say)
  const tools = await measureToolCalls(home)
  const surfaces = await measureSurfaces(new Map([['bare node proxy', proxy], ['svc gateway', streaming]]), ROUNDS, SECONDS / 2, say)
  // a gateway that idled while the others were measured has given its young generation back; growth starts after that is refilled
  await loadCount(gateway.origin, 32, MANY_REQUESTS / 2)
  const before = await gateway.memory()
  const many = await loadCount(gateway.origin, 32, MANY_REQUESTS)
  const after = await gateway.memory()
  const memory: MemoryResult = { idleRss, rssAt1000, before, after, requests: many.requests, errors: many.errors }
  reportLines(plain, streams, surfaces, memory).forEach(say)
  const listeningMs = gateway.ready.listeningMs as number
  const growth = after / before
  const bySurface = new Map([...surfaces].map(([name, by]) => [name, Object.fromEntries(by)]))
  const [surfaceRuns, plainRuns, streamRuns] = [bySurface, plain, streams].map(entries => Object.fromEntries<unknown>(entries))
  const runs = {
    plain: plainRuns, streams: streamRuns, surfaces: surfaceRuns, tools: shownTools(tools), lists: shownLists(lists)
  }
  finish({ loadTool, coldStart, memory, ...runs }, [
    ...plainBars(plain),
    ...streamBars(streams),
    ...surfaceBars(surfaces),
    ...toolBars(tools),
    { name: `memory after ${MANY_REQUESTS} requests, of before`, value: growth, limit: '<= 1.10', ok: growth <= 1.1 },
    { name: 'start to listening with all plugins, ms', value: listeningMs, limit: '< 1000', ok: listeningMs < 1000 },
    ...listBars(lists),
    coldStartBar(coldStart)
  ])
}

async function measureToolCalls (home: string): Promise<ToolsResult> {
  const tools = await measureTools(home, ROUNDS, SECONDS, say)
  toolLines(tools).forEach(say)
  return tools
}

function shownTools ({ calls, lists }: ToolsResult): object {
  return { calls: Object.fromEntries(calls), lists: Object.fromEntries(lists) }
}

function shownLists ({ routes, starts }: ListsResult): object {
  return { routes: Object.fromEntries(routes), starts }
}

function finish (result: object, bars: readonly Bar[]): void {
  if (json) process.stdout.write(`${JSON.stringify({ ...result, bars }, null, 2)}\n`)
  say('')
  for (const bar of bars) say(`${bar.ok ? 'met   ' : 'MISSED'}  ${bar.name}: ${Number.isFinite(bar.value) ? bar.value.toFixed(2) : '-'} (${bar.limit})`)
  process.exitCode = bars.every(bar => bar.ok) ? 0 : 1
}
