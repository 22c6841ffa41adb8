import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ChatCall } from '../load.js'
import { peersHere, programOf, type Peer } from './peer-programs.js'
import { answers, startPeer } from './peer-server.js'
import { shipped, shippedSlot } from './shipped.js'
import { measurePlain, type PlainResult, type PlainTarget } from '../plain.js'
import { nginxEngine, startNginx, startProgram, upstreamEngine, type BenchServer } from '../servers.js'
import { expectedStream, percentile, runStreams, STREAM_EVENTS, type StreamsResult } from '../streams.js'

/** One line of the table. Times in milliseconds, memory in bytes; null where a peer has no such thing. */
export interface PeerRow extends PlainResult {
  readonly streams: StreamsResult & { readonly cpuUsPerEvent: number }
  readonly rss: number
  readonly startMs: number | null
  readonly coldMs: number | null
}

export interface PeersOptions {
  readonly rounds: number
  readonly seconds: number
  readonly streams: number
  readonly say: (text: string) => void
}

interface Runner extends PlainTarget<ChatCall> {
  readonly startMs: number | null
}

/** @param engine words of a command that starts another one of what `upstream` is, `{port}` where its port goes */
type Starter = (upstream: BenchServer, engine: readonly string[]) => Promise<Runner>
type Starters = ReadonlyMap<string, Starter>

/** All gateways that are here, in front of the same upstream in the same run. */
export async function measurePeers (home: string, options: PeersOptions): Promise<ReadonlyMap<string, PeerRow>> {
  const { rounds, seconds, say } = options
  const nginx = programOf('nginx')
  const here = peersHere()
  const folder = join(home, 'engine')
  mkdirSync(folder, { recursive: true })
  say(`peers: ${['nginx', ...here.map(({ peer }) => peer.name)].filter(name => name !== 'nginx' || nginx !== null).join(', ')}`)
  const starters = new Map<string, Starter>()
  if (nginx !== null) starters.set('nginx', async up => ({ server: await startNginx(up.origin, nginx), startMs: null }))
  starters.set('bare node proxy', async up => ({ server: await startProgram('peers/bare-proxy', [up.origin]), startMs: null }))
  starters.set('svc, slot', (up, engine) => startPeer(shippedSlot(engine), process.execPath, home, up.origin))
  starters.set('svc, remote upstream', up => startPeer(shipped, process.execPath, home, up.origin))
  for (const { peer, path } of here) starters.set(peer.name, up => startPeer(peer, path, home, up.origin))
  const [upstream, engine] = nginx === null ? [startProgram('upstream', []), upstreamEngine()] : [startNginx(null, nginx), nginxEngine(folder, nginx)]
  const plain = await withAll(starters, upstream, engine, async runners => {
    const results = await measurePlain(runners, rounds, seconds, say)
    const rss = new Map<string, number>()
    for (const [name, { server }] of runners) rss.set(name, await server.memory())
    return { results, rss, starts: new Map([...runners].map(([name, { startMs }]) => [name, startMs])) }
  })
  const streams = await withAll(starters, startProgram('upstream', []), upstreamEngine(), (runners, upstream) => streamAll(runners, upstream, options))
  const cold = await coldStarts(home, here, rounds)
  return new Map([...plain.results].map(([name, result]) => [name, {
    ...result,
    streams: streams.get(name)!,
    rss: plain.rss.get(name)!,
    startMs: plain.starts.get(name)!,
    coldMs: cold.get(name) ?? null
  }]))
}

/** Starts all, works, and stops whatever was started. */
async function withAll<T> (
  starters: Starters, starting: Promise<BenchServer>, engine: readonly string[],
  work: (runners: ReadonlyMap<string, Runner>, upstream: BenchServer) => Promise<T>
): Promise<T> {
  const upstream = await starting
  const runners = new Map<string, Runner>()
  try {
    for (const [name, start] of starters) runners.set(name, await start(upstream, engine))
    return await work(runners, upstream)
  } finally {
    for (const { server } of runners.values()) await server.stop()
    await upstream.stop()
  }
}

async function streamAll (
  runners: ReadonlyMap<string, Runner>, upstream: BenchServer, { streams, say }: PeersOptions
): Promise<ReadonlyMap<string, PeerRow['streams']>> {
  const expected = await expectedStream(upstream.origin)
  const results = new Map<string, PeerRow['streams']>()
  for (const [name, { server, call }] of runners) {
    await runStreams(server.origin, 20, expected, undefined, call)
    const before = await server.cpuMs()
    const result = await runStreams(server.origin, streams, expected, undefined, call)
    const cpuUsPerEvent = (await server.cpuMs() - before) * 1000 / (streams * STREAM_EVENTS)
    results.set(name, { ...result, cpuUsPerEvent })
    say(`${streams} streams of ${name} done`)
  }
  return results
}

/** The same stand-in engine, which needs a second, behind each gateway that starts engines. */
async function coldStarts (
  home: string, here: ReadonlyArray<{ readonly peer: Peer, readonly path: string }>, rounds: number
): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>()
  for (const { peer, path } of [{ peer: shippedSlot([]), path: process.execPath }, ...here]) {
    if (peer.coldLaunch === undefined) continue
    const took: number[] = []
    for (let round = 0; round < rounds; round++) {
      const { server, call } = await startPeer(peer, path, home, '', true)
      const begun = performance.now()
      if (await answers(server.origin, call)) took.push(performance.now() - begun)
      await server.stop()
    }
    times.set(peer.name, percentile(took, 50))
  }
  return times
}

/** The table as Markdown. */
export function peerLines (rows: ReadonlyMap<string, PeerRow>): readonly string[] {
  const num = (value: number | null, digits: number, unit: string): string => value === null || !Number.isFinite(value) ? '-' : `${value.toFixed(digits)}${unit}`
  const cells = [...rows].map(([name, { one, many, cpuUs, streams, rss, startMs, coldMs }]) => [
    name,
    num(one.requestsPerS, 0, ''), num(many.requestsPerS, 0, ''),
    `${num(one.p50, 2, '')} / ${num(one.p99, 2, '')} ms`, `${num(many.p50, 2, '')} / ${num(many.p99, 2, '')} ms`,
    num(cpuUs, 0, ' us'), num(streams.cpuUsPerEvent, 0, ' us'), num(streams.ttftP50, 0, ' ms'), `${streams.identical} of ${streams.streams}`,
    num(rss / 1024 / 1024, 0, ' MiB'), num(startMs === null ? null : startMs / 1000, 2, ' s'), num(coldMs === null ? null : coldMs / 1000, 2, ' s'),
    String(one.errors + many.errors)
  ])
  const head = [
    '', 'req/s at 1', 'req/s at 32', 'p50 / p99 at 1', 'p50 / p99 at 32', 'CPU per request', 'CPU per streamed event', 'first token p50',
    'streams unchanged', 'resident', 'start', 'cold start', 'errors'
  ]
  return [head, head.map(() => '---'), ...cells].map(row => `| ${row.join(' | ')} |`)
}
