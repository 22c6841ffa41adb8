import { Agent, request } from 'node:http'
import { join } from 'node:path'
import type { Bar } from './lists.js'
import { startProgram, type BenchServer } from './servers.js'
import { percentile, STREAM_EVENTS } from './streams.js'

interface Dialect {
  readonly name: string
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
}

const PASSED = 'chat, passed'
const KEPT = 'responses over chat, kept'
const dialectsFor = (text: string): readonly Dialect[] => {
  const messages = [{ role: 'user', content: text }]
  return [
    { name: PASSED, path: '/v1/chat/completions', body: { model: 'agent', messages } },
    { name: 'responses over chat', path: '/v1/responses', body: { model: 'agent', input: text, store: false } },
    { name: KEPT, path: '/v1/responses', body: { model: 'agent', input: text } },
    { name: 'messages over chat', path: '/v1/messages', body: { model: 'agent', max_tokens: 100, messages } }
  ]
}
const dialects = dialectsFor('stream')
/** For the time to the first token: the upstream sends all of its stream with its head. */
const quickDialects = dialectsFor('all at once')

export interface DialectCost {
  /** Processor time of the gateway in microseconds, for an event of a stream: without its share of the request, and with it. */
  readonly perEventUs: number
  readonly withRequestUs: number
  /** For a whole answer. */
  readonly perAnswerUs: number
  /** Median time to the bytes of the first token, in milliseconds. */
  readonly firstTokenMs: number
}

const BETWEEN_MS = 5
/** Code is compiled in its first rounds, which cost twice as much; a gateway has the most of its life behind them. */
const WARM_ROUNDS = 4

/** One answer, read to its end. Resolves with the milliseconds to the first token. */
function ask (origin: string, agent: Agent, path: string, body: object): Promise<number> {
  return new Promise((resolve, reject) => {
    const from = performance.now()
    let first: number | null = null
    const req = request(`${origin}${path}`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, res => {
      res.on('data', (chunk: Buffer) => {
        if (first === null && chunk.includes('token0')) first = performance.now() - from
      })
      res.on('end', () => {
        if (res.statusCode === 200) resolve(first ?? NaN)
        else reject(new Error(`${path} answered ${res.statusCode}`))
      })
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(JSON.stringify(body))
  })
}

function times (of: Map<string, number[]>, name: string): number[] {
  const known = of.get(name) ?? []
  of.set(name, known)
  return known
}

async function cpuOf (gateway: BenchServer, work: () => Promise<unknown>): Promise<number> {
  const before = await gateway.cpuMs()
  await work()
  return (await gateway.cpuMs() - before) * 1000
}

/** What each dialect costs where an engine speaks chat alone; in turns, so that a busy machine is as busy for all. */
export async function measureDialects (
  home: string, { rounds, streams, answers }: Readonly<Record<'rounds' | 'streams' | 'answers', number>>, say: (text: string) => void
): Promise<ReadonlyMap<string, DialectCost>> {
  const upstream = await startProgram('upstream', [])
  const gateway = await startProgram('bench-gateway', [String(upstream.port), join(home, 'dialects')])
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
  const events = new Map<string, number[]>()
  const whole = new Map<string, number[]>()
  const first = new Map<string, number[]>()
  try {
    for (let round = 1 - WARM_ROUNDS; round <= rounds; round++) {
      for (const { name, path, body } of dialects) {
        const forStreams = await cpuOf(gateway, () => Promise.all(Array.from({ length: streams }, async (_, i) => {
          await new Promise(resolve => { setTimeout(resolve, i * BETWEEN_MS) })
          await ask(gateway.origin, agent, path, { ...body, stream: true })
        })))
        const forAnswers = await cpuOf(gateway, async () => {
          for (let i = 0; i < answers; i++) await ask(gateway.origin, agent, path, body)
        })
        if (round < 1) continue
        times(events, name).push(forStreams / (streams * STREAM_EVENTS))
        times(whole, name).push(forAnswers / answers)
      }
      // one after the other, so that what the machine does besides hits all alike
      for (let i = 0; i < answers; i++) {
        for (const { name, path, body } of quickDialects) {
          const ms = await ask(gateway.origin, agent, path, { ...body, stream: true })
          if (round >= 1) times(first, name).push(ms)
        }
      }
      say(round < 1 ? `warmer: ${1 - round} more` : `round ${round} of ${rounds} done`)
    }
  } finally {
    agent.destroy()
    await gateway.stop()
    await upstream.stop()
  }
  return new Map(dialects.map(({ name }) => [name, {
    perEventUs: percentile(events.get(name)!, 50) - percentile(whole.get(name)!, 50) / STREAM_EVENTS,
    withRequestUs: percentile(events.get(name)!, 50),
    perAnswerUs: percentile(whole.get(name)!, 50),
    firstTokenMs: percentile(first.get(name)!, 50)
  }]))
}

export function dialectLines (costs: ReadonlyMap<string, DialectCost>): readonly string[] {
  const passed = costs.get(PASSED)!
  return ['', 'dialects over chat: processor time of the gateway in us', ...[...costs].map(([name, { perEventUs, withRequestUs, perAnswerUs, firstTokenMs }]) =>
    `  ${name.padEnd(28)} ${perEventUs.toFixed(1).padStart(8)} per event (${(perEventUs / passed.perEventUs).toFixed(2)}),` +
    ` with its request ${withRequestUs.toFixed(1).padStart(8)} (${(withRequestUs / passed.withRequestUs).toFixed(2)}),` +
    ` ${perAnswerUs.toFixed(0).padStart(8)} per whole answer ${firstTokenMs.toFixed(2).padStart(8)} ms to the first token`)]
}

export function dialectBars (costs: ReadonlyMap<string, DialectCost>): readonly Bar[] {
  const passed = costs.get(PASSED)!
  return [...costs].filter(([name]) => name !== PASSED).flatMap(([name, { perEventUs, firstTokenMs }]) => {
    const [times, later] = [perEventUs / passed.perEventUs, firstTokenMs - passed.firstTokenMs]
    return [
      { name: `${name}: processor time per event, times passing`, value: times, limit: '<= 1.20', ok: times <= 1.2 },
      { name: `${name}: first token later than passing, median ms`, value: later, limit: '<= 0.30', ok: later <= 0.3 }
    ]
  })
}
