import { Agent, request } from 'node:http'
import { join } from 'node:path'
import type { Bar } from './lists.js'
import { PacedStreams, pacedText } from './paced-streams.js'
import { startProgram, type BenchServer } from './servers.js'
import { percentile } from './streams.js'

interface Dialect {
  readonly name: string
  /** Of its streams. */
  readonly group: string
  readonly path: string
  /** Of its whole answers, where that is another one. */
  readonly wholePath?: string
  readonly body: (text: string) => Readonly<Record<string, unknown>>
  /** What it costs is told beside that, where it goes to an upstream. */
  readonly beside?: string
}

const PASSED = 'chat, passed'
const PASSED_UPSTREAM = 'chat, passed to an upstream'
const messagesOf = (text: string): object => ({ messages: [{ role: 'user', content: text }] })
const dialects: readonly Dialect[] = [
  { name: PASSED, group: 'chat', path: '/v1/chat/completions', body: text => ({ model: 'agent', ...messagesOf(text) }) },
  { name: 'responses over chat', group: 'responses', path: '/v1/responses', body: input => ({ model: 'agent', input, store: false }) },
  { name: 'responses over chat, kept', group: 'kept', path: '/v1/responses', body: input => ({ model: 'agent', input }) },
  { name: 'messages over chat', group: 'messages', path: '/v1/messages', body: text => ({ model: 'agent', max_tokens: 100, ...messagesOf(text) }) },
  // it streams unless it is told not to
  { name: 'ollama over chat', group: 'ollama', path: '/api/chat', body: text => ({ model: 'agent', stream: false, ...messagesOf(text) }) },
  {
    name: 'gemini over chat', group: 'gemini', path: '/v1beta/models/agent:streamGenerateContent?alt=sse', wholePath: '/v1beta/models/agent:generateContent',
    body: text => ({ contents: [{ role: 'user', parts: [{ text }] }] })
  },
  { name: 'responses over padded chat', group: 'padded', path: '/v1/responses', body: text => ({ model: 'agent', input: `with padding, ${text}`, store: false }) },
  { name: PASSED_UPSTREAM, group: 'remote', path: '/v1/chat/completions', body: text => ({ model: 'remote/bench', ...messagesOf(text) }) },
  { name: 'chat over messages', group: 'claude', path: '/v1/chat/completions', body: text => ({ model: 'claude/bench', ...messagesOf(text) }), beside: PASSED_UPSTREAM }
]
const passing: ReadonlySet<string> = new Set([PASSED, PASSED_UPSTREAM])
/** For the time to the first token: the upstream sends all of its stream with its head. */
const AT_ONCE = 'all at once'

export interface DialectCost {
  /** Processor time of the gateway in microseconds, for an event of a stream that is open. */
  readonly perEventUs: number
  /** That time beside what passing takes, over all rounds, and the least and the most of it in a quarter of them. */
  readonly times: number
  readonly quarters: readonly [number, number]
  /** For a whole answer. */
  readonly perAnswerUs: number
  /** Median time to the bytes of the first token, in milliseconds. */
  readonly firstTokenMs: number
}

const STREAMS = 50
/** As many as fifty streams of forty tokens a second have in a fifth of a second. */
const TURN_EVENTS = 400
const EVENTS_PER_MS = 2
/** Code is compiled in its first rounds, which cost twice as much; a gateway has the most of its life behind them. */
const WARM_ROUNDS = 10
/** The code of one dialect alone runs once in nine requests. */
const WARM_ASKS = 1000

/** Steps that have no factor in common with the number of dialects. */
const STEPS = [1, 2, 4, 5, 7, 8].filter(step => dialects.length % step !== 0 || step === 1)

/** All of them, in another order each time: what a request leaves to be done behind its answer is paid by the next one. */
function mixed (n: number): readonly Dialect[] {
  const step = STEPS[n % STEPS.length]!
  return dialects.map((_, i) => dialects[(n + i * step) % dialects.length]!)
}

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

/** The mean of the middle half: what else the machine does, and a full collection of garbage, is not in it. */
function middle (values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.slice(Math.floor(sorted.length / 4), Math.ceil(sorted.length * 3 / 4))
  return half.reduce((sum, value) => sum + value, 0) / half.length
}

/** What each dialect costs where an engine speaks chat alone; in short turns, so that a busy machine is as busy for all. */
export async function measureDialects (
  home: string, { rounds, answers }: Readonly<Record<'rounds' | 'answers', number>>, say: (text: string) => void
): Promise<ReadonlyMap<string, DialectCost>> {
  const upstream = await startProgram('upstream', [])
  const gateway = await startProgram('bench-gateway', [String(upstream.port), join(home, 'dialects')])
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
  const streams = dialects.map(({ group }) => new PacedStreams(upstream, group))
  const events = new Map<string, number[]>()
  const whole = new Map<string, number[]>()
  const first = new Map<string, number[]>()
  const round = async (from: number): Promise<void> => {
    // each goes first in its turn: what a turn leaves behind is paid by the next one
    for (const i of dialects.map((_, i) => (from + i) % dialects.length)) {
      const { name, path, wholePath = path, body } = dialects[i]!
      times(events, name).push(await cpuOf(gateway, () => streams[i]!.turn(TURN_EVENTS, EVENTS_PER_MS)) / TURN_EVENTS)
      const forAnswers = await cpuOf(gateway, async () => {
        for (let n = 0; n < answers; n++) await ask(gateway.origin, agent, wholePath, body('whole'))
      })
      times(whole, name).push(forAnswers / answers)
    }
    // one after the other, so that what the machine does besides hits all alike, and each behind each other one
    for (let n = 0; n < answers; n++) {
      for (const { name, path, body } of mixed(n)) {
        times(first, name).push(await ask(gateway.origin, agent, path, { ...body(AT_ONCE), stream: true }))
      }
    }
  }
  try {
    for (const [i, { group, path, body }] of dialects.entries()) {
      await streams[i]!.open(STREAMS, `${gateway.origin}${path}`, agent, { ...body(pacedText(group)), stream: true })
    }
    say(`${WARM_ASKS} requests each and ${WARM_ROUNDS} rounds to become warm`)
    for (let n = 0; n < WARM_ASKS; n++) {
      for (const { path, body } of mixed(n)) await ask(gateway.origin, agent, path, { ...body(AT_ONCE), stream: true })
    }
    for (let done = 0; done < WARM_ROUNDS; done++) await round(done)
    for (const of of [events, whole, first]) of.clear()
    for (let done = 0; done < rounds; done++) {
      await round(done)
      if ((done + 1) % 10 === 0) say(`round ${done + 1} of ${rounds} done`)
    }
  } finally {
    agent.destroy()
    await gateway.stop()
    await upstream.stop()
  }
  return new Map(dialects.map(({ name, beside = PASSED }) => {
    const passed = events.get(beside)!
    const own = events.get(name)!
    const quarters = [0, 1, 2, 3].map(part => {
      const [from, to] = [part * rounds / 4, (part + 1) * rounds / 4]
      return middle(own.slice(from, to)) / middle(passed.slice(from, to))
    })
    return [name, {
      perEventUs: middle(own),
      times: middle(own) / middle(passed),
      quarters: [Math.min(...quarters), Math.max(...quarters)],
      perAnswerUs: percentile(whole.get(name)!, 50),
      firstTokenMs: percentile(first.get(name)!, 50)
    }]
  }))
}

export function dialectLines (costs: ReadonlyMap<string, DialectCost>): readonly string[] {
  const rows = [...costs].map(([name, { perEventUs, times, quarters, perAnswerUs, firstTokenMs }]) => {
    const [least, most] = quarters.map(part => part.toFixed(2))
    return `  ${name.padEnd(28)} ${perEventUs.toFixed(1).padStart(8)} per event (${times.toFixed(2)}; in quarters of the run ${least} to ${most}),` +
      ` ${perAnswerUs.toFixed(0).padStart(6)} per whole answer ${firstTokenMs.toFixed(2).padStart(8)} ms to the first token`
  })
  return ['', 'dialects over chat: processor time of the gateway in us', ...rows]
}

export function dialectBars (costs: ReadonlyMap<string, DialectCost>): readonly Bar[] {
  return [...costs].filter(([name]) => !passing.has(name)).flatMap(([name, { times, firstTokenMs }]) => {
    const passed = costs.get(dialects.find(dialect => dialect.name === name)?.beside ?? PASSED)!
    const later = firstTokenMs - passed.firstTokenMs
    return [
      { name: `${name}: processor time per event, times passing`, value: times, limit: '<= 1.20', ok: times <= 1.2 },
      { name: `${name}: first token later than passing, median ms`, value: later, limit: '<= 0.30', ok: later <= 0.3 }
    ]
  })
}
