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
const messages = [{ role: 'user', content: 'stream' }]
const dialects: readonly Dialect[] = [
  { name: PASSED, path: '/v1/chat/completions', body: { model: 'agent', messages } },
  { name: 'responses over chat', path: '/v1/responses', body: { model: 'agent', input: 'stream', store: false } },
  { name: KEPT, path: '/v1/responses', body: { model: 'agent', input: 'stream' } },
  { name: 'messages over chat', path: '/v1/messages', body: { model: 'agent', max_tokens: 100, messages } }
]

export interface DialectCost {
  /** Processor time of the gateway, in microseconds: for an event of a stream, and for a whole answer. */
  readonly perEventUs: number
  readonly perAnswerUs: number
}

const BETWEEN_MS = 5

/** One answer, read to its end. */
function ask (origin: string, agent: Agent, path: string, body: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const req = request(`${origin}${path}`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, res => {
      res.resume()
      res.on('end', () => {
        if (res.statusCode === 200) resolve()
        else reject(new Error(`${path} answered ${res.statusCode}`))
      })
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(JSON.stringify(body))
  })
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
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const { name, path, body } of dialects) {
        const forStreams = await cpuOf(gateway, () => Promise.all(Array.from({ length: streams }, async (_, i) => {
          await new Promise(resolve => { setTimeout(resolve, i * BETWEEN_MS) })
          await ask(gateway.origin, agent, path, { ...body, stream: true })
        })))
        const forAnswers = await cpuOf(gateway, async () => {
          for (let i = 0; i < answers; i++) await ask(gateway.origin, agent, path, body)
        })
        // the first round is for the compiler
        if (round === 0) continue
        events.set(name, [...events.get(name) ?? [], forStreams / (streams * STREAM_EVENTS)])
        whole.set(name, [...whole.get(name) ?? [], forAnswers / answers])
      }
      say(round === 0 ? 'warm' : `round ${round} of ${rounds} done`)
    }
  } finally {
    agent.destroy()
    await gateway.stop()
    await upstream.stop()
  }
  return new Map(dialects.map(({ name }) => [name, {
    perEventUs: percentile(events.get(name)!, 50), perAnswerUs: percentile(whole.get(name)!, 50)
  }]))
}

export function dialectLines (costs: ReadonlyMap<string, DialectCost>): readonly string[] {
  const passed = costs.get(PASSED)!
  return ['', 'dialects over chat: processor time of the gateway in us', ...[...costs].map(([name, { perEventUs, perAnswerUs }]) =>
    `  ${name.padEnd(28)} ${perEventUs.toFixed(1).padStart(8)} per event (${(perEventUs / passed.perEventUs).toFixed(2)})` +
    ` ${perAnswerUs.toFixed(0).padStart(8)} per whole answer`)]
}

/** A whole answer holds all that comes before the first token of a stream, but for what is kept: that is written at its end. */
export function dialectBars (costs: ReadonlyMap<string, DialectCost>): readonly Bar[] {
  const passed = costs.get(PASSED)!
  return [...costs].filter(([name]) => name !== PASSED).flatMap(([name, { perEventUs, perAnswerUs }]) => {
    const [times, more] = [perEventUs / passed.perEventUs, (perAnswerUs - passed.perAnswerUs) / 1000]
    const first = {
      name: `${name}: processor time per request more than passing, ms`, value: more, limit: '<= 0.30', ok: more <= 0.3
    }
    return [
      { name: `${name}: processor time per event, times passing`, value: times, limit: '<= 1.20', ok: times <= 1.2 },
      ...name === KEPT ? [] : [first]
    ]
  })
}
