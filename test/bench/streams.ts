import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'
import type { Bar } from './lists.js'
import type { ChatCall } from './load.js'
import type { PlainTarget } from './plain.js'
import type { BenchServer } from './servers.js'

export interface StreamsResult {
  readonly streams: number
  readonly completed: number
  /** Streams whose bytes are the same as those of a stream read from the upstream itself. */
  readonly identical: number
  /** Milliseconds, medians and 99th percentiles over all streams. */
  readonly ttftP50: number
  readonly ttftP99: number
  readonly gapP50: number
  readonly gapP99: number
}

function bodyFor (model: string): string {
  return JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'stream' }] })
}

/** Opens `streams` streams, one every millisecond, and reads them to their ends. */
export async function runStreams (
  origin: string, streams: number, expected: string, onAllOpen: () => Promise<void> = async () => {},
  { model, headers }: ChatCall = { model: 'agent' }
): Promise<StreamsResult> {
  const agent = new Agent({ keepAlive: false, maxSockets: Infinity })
  const ttft: number[] = []
  const gaps: number[] = []
  const hashes: string[] = []
  let open = 0
  let allOpen: (() => void) = () => {}
  const opened = new Promise<void>(resolve => { allOpen = resolve })
  const one = async (i: number): Promise<void> => {
    await new Promise(resolve => { setTimeout(resolve, i) })
    const from = performance.now()
    let last = 0
    const hash = createHash('sha256')
    await new Promise<void>(resolve => {
      const req = request(`${origin}/v1/chat/completions`, { method: 'POST', agent, headers: { 'content-type': 'application/json', ...headers } }, res => {
        res.on('data', (chunk: Buffer) => {
          const now = performance.now()
          if (last === 0) {
            ttft.push(now - from)
            if (++open === streams) allOpen()
          } else {
            gaps.push(now - last)
          }
          last = now
          hash.update(chunk)
        })
        res.on('end', () => {
          if (res.complete) hashes.push(hash.digest('hex'))
          resolve()
        })
        res.on('error', () => resolve())
      })
      req.on('error', () => resolve())
      req.end(bodyFor(model))
    })
  }
  const running = Promise.all(Array.from({ length: streams }, (_, i) => one(i)))
  await Promise.race([opened, running])
  await onAllOpen()
  await running
  agent.destroy()
  return {
    streams,
    completed: hashes.length,
    identical: hashes.filter(hash => hash === expected).length,
    ttftP50: percentile(ttft, 50),
    ttftP99: percentile(ttft, 99),
    gapP50: percentile(gaps, 50),
    gapP99: percentile(gaps, 99)
  }
}

/** Events of a stream that the upstream of this bench sends. */
export const STREAM_EVENTS = 43

/** Hash of one stream read from the upstream itself. */
export async function expectedStream (origin: string): Promise<string> {
  const response = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', body: bodyFor('agent') })
  return createHash('sha256').update(Buffer.from(await response.arrayBuffer())).digest('hex')
}

export function percentile (values: readonly number[], p: number): number {
  if (values.length === 0) return NaN
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p / 100))]!
}

/** By target, for 1, 100 and 1,000 streams. */
export type Streams = ReadonlyMap<string, ReadonlyArray<StreamsResult & { readonly cpuUsPerEvent: number }>>

/** @param gateway whose memory is looked at while 1,000 streams are open */
export async function measureStreams (
  targets: ReadonlyMap<string, PlainTarget<ChatCall>>, gateway: BenchServer, upstream: string, say: (text: string) => void
): Promise<{ results: Streams, rssAt1000: number }> {
  const expected = await expectedStream(upstream)
  const results = new Map<string, Array<StreamsResult & { cpuUsPerEvent: number }>>()
  let rssAt1000 = 0
  for (const streams of [1, 100, 1000]) {
    for (const [name, { server, call }] of targets) {
      const watched = server === gateway && streams === 1000
      const before = await server.cpuMs()
      const result = await runStreams(server.origin, streams, expected, async () => {
        if (watched) rssAt1000 = Math.max(rssAt1000, await gateway.memory())
      }, call)
      const cpuUsPerEvent = (await server.cpuMs() - before) * 1000 / (streams * STREAM_EVENTS)
      results.set(name, [...results.get(name) ?? [], { ...result, cpuUsPerEvent }])
    }
    say(`${streams} streams done`)
  }
  return { results, rssAt1000 }
}

export function streamBars (streams: Streams): readonly Bar[] {
  const bare = streams.get('bare node proxy')!.at(-1)!
  return ['svc, slot', 'svc, upstream'].flatMap(name => {
    const { identical, cpuUsPerEvent, ttftP50 } = streams.get(name)!.at(-1)!
    const cpu = cpuUsPerEvent / bare.cpuUsPerEvent
    const first = ttftP50 / bare.ttftP50
    return [
      { name: `${name}: of 1,000 streams, complete and byte-identical`, value: identical, limit: '= 1000', ok: identical === 1000 },
      { name: `${name}: processor time per event at 1,000 streams, times the bare proxy's`, value: cpu, limit: '<= 1.15', ok: cpu <= 1.15 },
      { name: `${name}: first token p50 at 1,000 streams, times the bare proxy's`, value: first, limit: '<= 1.30', ok: first <= 1.3 }
    ]
  })
}
