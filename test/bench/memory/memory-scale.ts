import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Errand, ErrandAnswer } from '../../../plugins/services/memory-engine/messages.js'
import type { Bar } from '../lists.js'
import { TurnWatch } from '../thread-use.js'
import { callsOf, type Call } from './memory-calls.js'
import { none } from './memory-models.js'
import { createTexts, madeUpVector } from './memory-texts.js'

/** One large bank, in process: words and vectors as many as in a text of people, and made up. */
export interface MemoryScale {
  readonly memories: number
  readonly retain_batched_per_s: number
  readonly retain_single_per_s: number
  readonly recall_p50_ms: number
  readonly recall_p99_ms: number
  readonly first_recall_ms: number
  /** Of the process with the engine in it. */
  readonly rss_mib: number
  /** Longest time of the processor between two turns of the gateway's thread while memories were retained and recalled. */
  readonly loop_held_ms: number
}

const BATCH = 100
const SINGLES = 400
const RECALLS = 400
/** The process of the bench, and a third more than 100,000 memories took. */
const MOST_RESIDENT_MIB = 640

export async function measureScale (home: string, memories: number, say: (text: string) => void): Promise<MemoryScale> {
  const { sentence, item } = createTexts(1)
  const run = (errand: Errand): Promise<ErrandAnswer> => {
    const { input } = JSON.parse(Buffer.from((errand as { body: Uint8Array }).body).toString('utf8')) as { input: string[] }
    const data = input.map((text, index) => ({ index, embedding: madeUpVector(text) }))
    return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ data })) })
  }
  let embed: { readonly model: string, readonly why: null } | typeof none = none
  const engine = new EmbeddedEngine({
    path: () => join(home, 'scale.db'), abilities: () => ({ embed, rerank: none, chat: none }), run, log: () => {}
  })
  const call = callsOf(engine)
  const retain = (count: number): Promise<unknown> => call('POST', 'scale/memories', { items: Array.from({ length: count }, item) })
  const batched = await perSecond(memories, async () => {
    for (let made = 0; made < memories; made += BATCH) await retain(BATCH)
  })
  const single = await perSecond(SINGLES, async () => {
    for (let i = 0; i < SINGLES; i++) await retain(1)
  })
  say(`  retained: ${batched.toFixed(0)} a second in batches of ${BATCH}, ${single.toFixed(0)} one by one`)
  embed = { model: 'made-up', why: null }
  engine.abilitiesChanged()
  await allEmbedded(call)
  const first = await timed(() => recall(call, sentence(6)))
  const loop = monitorEventLoopDelay({ resolution: 1 })
  loop.enable()
  const turns = new TurnWatch()
  const times: number[] = []
  for (let i = 0; i < RECALLS; i++) times.push(await timed(() => recall(call, sentence(6))))
  for (let i = 0; i < SINGLES / 4; i++) await retain(1)
  loop.disable()
  turns.stop()
  times.sort((a, b) => a - b)
  const result = {
    memories, retain_batched_per_s: batched, retain_single_per_s: single, recall_p50_ms: times[RECALLS / 2]!,
    recall_p99_ms: times[Math.floor(RECALLS * 0.99)]!, first_recall_ms: first, rss_mib: process.memoryUsage().rss / 1024 / 1024,
    loop_held_ms: turns.take() ?? loop.max / 1e6
  }
  await engine.close()
  const [p50, p99, held] = [result.recall_p50_ms, result.recall_p99_ms, result.loop_held_ms].map(ms => `${ms.toFixed(1)} ms`)
  say(`  ${memories} memories: recall p50 ${p50}, p99 ${p99}, the first ${first.toFixed(0)} ms; ${result.rss_mib.toFixed(0)} MiB resident; loop held at most ${held}`)
  return result
}

async function recall (call: Call, query: string): Promise<void> {
  const { headers } = await call('POST', 'scale/memories/recall', { query })
  if (headers['x-svc-recall'] !== 'text+vectors') throw new Error(`recall ran as ${String(headers['x-svc-recall'])}`)
}

async function allEmbedded (call: Call): Promise<void> {
  for (;;) {
    const { body } = await call('GET', 'scale/embeddings')
    if (body.pending === 0) return
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

async function timed (work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

async function perSecond (count: number, work: () => Promise<void>): Promise<number> {
  return count / (await timed(work) / 1000)
}

export function scaleBars (scale: MemoryScale): readonly Bar[] {
  const below = (name: string, value: number, most: number): Bar => ({ name, value, limit: `< ${most}`, ok: value < most })
  const least = (name: string, value: number, bound: number): Bar => ({ name, value, limit: `>= ${bound}`, ok: value >= bound })
  return [
    below('memory: recall, p50 ms', scale.recall_p50_ms, 30), below('memory: recall, p99 ms', scale.recall_p99_ms, 100),
    least('memory: retained in batches, a second', scale.retain_batched_per_s, 1000),
    least('memory: retained one by one, a second', scale.retain_single_per_s, 200),
    below('memory: event loop held, ms', scale.loop_held_ms, 10), below('memory: resident with the bank, MiB', scale.rss_mib, MOST_RESIDENT_MIB)
  ]
}
