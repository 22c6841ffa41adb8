import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import type { Bar } from '../lists.js'
import { startProgram, startShipped, type BenchProgram } from '../servers.js'
import { percentile } from '../streams.js'
import { chatBeside, COMPUTING, computingBeside, onTheClock, worse, type Chat, type OnTheClock } from './memory-clock.js'
import { createTexts } from './memory-texts.js'
import type { Held } from './memory-watch.js'

/** A whole gateway beside its memory: what held its event loop, and a chat stream through it. Milliseconds. */
export interface MemoryLoop {
  readonly memories: number
  readonly steps: Readonly<Record<string, LoopStep>>
  /** Over all steps but the idle one. */
  readonly at_work: OnTheClock
  /** The same while the memory rests and others compute, the worse of before the steps and behind them. */
  readonly beside_computing: OnTheClock
  /** Of a recall in another bank while an archive is brought into one that is there. */
  readonly recall_beside_import: { readonly count: number, readonly p50: number, readonly most: number }
  /** Of the gateway's process with its memory in it, at the end. */
  readonly rss_mib: number
}

export interface LoopStep extends Held {
  /** Longest pause between two pieces of a chat stream, which come every 5 ms, as a thread of its own reads it. */
  readonly gap: number
  readonly seconds: number
}

const BATCH = 100
const LARGE_BATCH = 5000
const LARGE_BATCHES = 4
const RECALLS = 300
const AT_ONCE = 4
const COMPUTE_MS = 15_000

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

class Client {
  readonly #origin: string
  readonly #agent = new Agent({ connections: 32, headersTimeout: 600_000, bodyTimeout: 600_000 })

  constructor (origin: string) {
    this.#origin = origin
  }

  async send (method: 'GET' | 'POST' | 'PUT', path: string, body?: unknown, type = 'application/json'): Promise<Answer> {
    const sent = body === undefined ? null : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
    const answer = await request(`${this.#origin}/api/memory/hindsight${path}`, {
      method, dispatcher: this.#agent, headers: sent === null ? {} : { 'content-type': type }, body: sent
    })
    const bytes = Buffer.from(await answer.body.arrayBuffer())
    if (answer.statusCode > 299) throw new Error(`${method} ${path}: ${answer.statusCode} ${bytes.toString('utf8', 0, 300)}`)
    return { status: answer.statusCode, headers: answer.headers, bytes }
  }

  async json (method: 'GET' | 'POST' | 'PUT', bankPath: string, body?: unknown): Promise<Record<string, never>> {
    return JSON.parse((await this.send(method, `/v1/default/banks/${bankPath}`, body)).bytes.toString('utf8')) as Record<string, never>
  }

  /** Resolves when the operation is over; with its result. */
  async done (bank: string, operation: string): Promise<Record<string, string>> {
    for (;;) {
      const { status, result_metadata: result, error_message: error } = await this.json('GET', `${bank}/operations/${operation}`) as Record<string, unknown>
      if (status === 'completed') return result as Record<string, string>
      if (status === 'failed') throw new Error(String(error))
      await pause(50)
    }
  }

  close (): Promise<void> { return this.#agent.destroy() }
}

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** As it ships, with its memory on; chats and vectors are those of an upstream. */
async function startGateway (home: string, upstream: string): Promise<BenchProgram> {
  await mkdir(join(home, 'etc/svc'), { recursive: true })
  await writeFile(join(home, 'etc/svc/svc.toml'), '[memory]\nenabled = true\n[memory.embedding]\nmodel = "models/embed"\n[server]\nlog_level = "warn"\n')
  await writeFile(join(home, 'etc/svc/upstreams.toml'), `[[upstream]]\nname = "models"\nurl = "${upstream}/v1"\nauth_style = "none"\n`)
  return startShipped(home, new URL('memory-watch.js', import.meta.url))
}

export async function measureLoop (home: string, memories: number, say: (text: string) => void): Promise<MemoryLoop> {
  const upstream = await startProgram('memory/memory-upstream', [])
  // the first one of a build keeps what V8 compiled
  await (await startGateway(join(home, 'loop'), upstream.origin)).stop()
  const gateway = await startGateway(join(home, 'loop'), upstream.origin)
  const client = new Client(gateway.origin)
  const chat = await chatBeside(gateway.origin)
  try {
    return await measured(gateway, client, chat, memories, say)
  } finally {
    await chat.leave()
    await client.close()
    await gateway.stop()
    await upstream.stop()
  }
}

async function measured (
  gateway: BenchProgram, client: Client, chat: Chat, memories: number, say: (text: string) => void
): Promise<MemoryLoop> {
  const { sentence, item } = createTexts(2)
  const steps: Record<string, LoopStep> = {}
  let gaps: number[] = []
  const beside = async (): Promise<OnTheClock> => {
    let found: OnTheClock | null = null
    await computingBeside(async () => {
      await chat.gaps()
      await gateway.ask<Held>('held in all')
      await pause(COMPUTE_MS)
      found = onTheClock(await gateway.ask<Held>('held in all'), await chat.gaps())
    })
    return found!
  }
  const step = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    await chat.gaps()
    await gateway.ask<Held>('held')
    const from = performance.now()
    await work()
    const seconds = (performance.now() - from) / 1000
    const { most, p999, used } = await gateway.ask<Held>('held')
    const paused = await chat.gaps()
    gaps = [...gaps, ...paused]
    const gap = percentile(paused, 100)
    steps[name] = { most, p999, used, gap, seconds }
    say(`  ${name}: ${seconds.toFixed(1)} s; loop held at most ${most.toFixed(1)} ms, p99.9 ${p999.toFixed(1)}, of the processor ${used?.toFixed(1) ?? 'unknown'}; stream paused at most ${gap.toFixed(1)} ms`)
  }
  const retain = (bank: string, count: number): Promise<unknown> => client.json('POST', `${bank}/memories`, { items: Array.from({ length: count }, item) })
  const vectors = async (bank: string): Promise<void> => {
    while ((await client.json('GET', `${bank}/embeddings`) as Record<string, number>).pending! > 0) await pause(200)
  }
  // The first of each is code that has not run before, and the start of a slot; they are not what this is about.
  await retain('first', 1)
  await vectors('first')
  await client.json('POST', 'first/memories/recall', { query: sentence(6) })
  await step('idle', () => pause(3000))
  const before = await beside()
  gaps = []
  await step(`retained in batches of ${BATCH}`, async () => { for (let made = 0; made < memories; made += BATCH) await retain('loop', BATCH) })
  await step('vectors made', () => vectors('loop'))
  await step(`recalled, ${AT_ONCE} at once`, () => Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let i = 0; i < RECALLS / AT_ONCE; i++) await client.json('POST', 'loop/memories/recall', { query: sentence(6) })
  })))
  await step(`retained in batches of ${LARGE_BATCH}`, async () => { for (let i = 0; i < LARGE_BATCHES; i++) await retain('large', LARGE_BATCH) })
  let archive: Buffer = Buffer.alloc(0)
  await step('exported', async () => {
    const { operation_id: id } = await client.json('POST', 'large/document-transfer/export') as Record<string, string>
    archive = (await client.send('GET', (await client.done('large', id!)).download_url!)).bytes
  })
  const recalled: number[] = []
  await step('imported', async () => {
    await client.json('PUT', 'other', {})
    const { type, body } = form(archive)
    let isOver = false
    const imported = (async () => {
      const { bytes } = await client.send('POST', '/v1/default/banks/other/document-transfer', body, type)
      await client.done('other', (JSON.parse(bytes.toString('utf8')) as Record<string, string>).operation_id!)
    })().finally(() => { isOver = true })
    while (!isOver) {
      const from = performance.now()
      await client.json('POST', 'loop/memories/recall', { query: sentence(6) })
      recalled.push(performance.now() - from)
    }
    await imported
  })
  const atWork = onTheClock(await gateway.ask<Held>('held in all'), gaps)
  // what others take of the cores changes meanwhile
  const computing = worse(before, await beside())
  for (const [name, { loop_p999: loop, loop_most: most, gap_p999: gap, gap_most: longest }] of Object.entries({ 'the memory at work': atWork, [`${COMPUTING} threads that compute`]: computing })) {
    say(`  on the clock, with ${name}: loop held p99.9 ${loop.toFixed(1)} ms, at most ${most.toFixed(1)}; stream paused p99.9 ${gap.toFixed(1)}, at most ${longest.toFixed(1)}`)
  }
  const recalls = { count: recalled.length, p50: percentile(recalled, 50), most: percentile(recalled, 100) }
  say(`  recall beside the import of ${LARGE_BATCH * LARGE_BATCHES}: ${recalls.count}, p50 ${recalls.p50.toFixed(0)} ms, at most ${recalls.most.toFixed(0)} ms`)
  const rss = await gateway.memory() / 1024 / 1024
  say(`  ${rss.toFixed(0)} MiB resident`)
  return { memories, steps, at_work: atWork, beside_computing: computing, recall_beside_import: recalls, rss_mib: rss }
}

function form (archive: Buffer): { readonly type: string, readonly body: Buffer } {
  const mark = 'bench-of-the-memory'
  const head = `--${mark}\r\ncontent-disposition: form-data; name="file"; filename="a.zip"\r\ncontent-type: application/zip\r\n\r\n`
  return { type: `multipart/form-data; boundary=${mark}`, body: Buffer.concat([Buffer.from(head), archive, Buffer.from(`\r\n--${mark}--\r\n`)]) }
}

const MOST_MS = 10
/** What it takes on the clock beside others that compute. */
const MOST_TIMES = 1.5

/**
 * The longest hold in what the thread itself used, where that is known: on a busy machine others take more than it does. On the
 * clock the same gateway beside others that compute says what the cores give it: the longest of many is chance, p99.9 is not.
 */
export function loopBars ({ steps, at_work: work, beside_computing: computing }: MemoryLoop): readonly Bar[] {
  const value = Math.max(...Object.values(steps).map(({ used, most }) => used ?? most))
  const onTheClock = (name: string, value: number, other: number): Bar => {
    const limit = Math.max(MOST_MS, MOST_TIMES * other)
    return { name: `memory: ${name} on the clock, p99.9 ms`, value, limit: `<= ${limit.toFixed(1)}`, ok: value <= limit }
  }
  return [
    { name: 'memory: event loop of the gateway held, ms', value, limit: `< ${MOST_MS}`, ok: value < MOST_MS },
    onTheClock('event loop held', work.loop_p999, computing.loop_p999),
    onTheClock('chat stream paused', work.gap_p999, computing.gap_p999)
  ]
}
