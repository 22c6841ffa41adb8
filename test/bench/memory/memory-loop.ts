import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import type { Bar } from '../lists.js'
import { startProgram, startShipped, type BenchProgram } from '../servers.js'
import { createTexts } from './memory-texts.js'
import type { Held } from './memory-watch.js'

/** A whole gateway beside its memory: what held its event loop, and a chat stream through it. Milliseconds. */
export interface MemoryLoop {
  readonly memories: number
  readonly steps: Readonly<Record<string, LoopStep>>
  /** Of a recall in another bank while an archive is brought into one that is there. */
  readonly recall_beside_import: { readonly count: number, readonly p50: number, readonly most: number }
  /** Of the gateway's process with its memory in it, at the end. */
  readonly rss_mib: number
}

export interface LoopStep extends Held {
  /** Longest pause between two pieces of a chat stream, which come every 5 ms. */
  readonly gap: number
  readonly seconds: number
}

const BATCH = 100
const LARGE_BATCH = 5000
const LARGE_BATCHES = 4
const RECALLS = 300
const AT_ONCE = 4

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

/** A chat that goes on until it is left; tells the longest pause since it was last asked. */
async function chatBeside (origin: string): Promise<{ gap (): number, leave (): void }> {
  const { body } = await request(`${origin}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, bodyTimeout: 0,
    body: JSON.stringify({ model: 'models/agent', stream: true, messages: [{ role: 'user', content: 'go on' }] })
  })
  let [last, gap] = [performance.now(), 0]
  body.on('data', () => {
    const now = performance.now()
    gap = Math.max(gap, now - last)
    last = now
  }).on('error', () => {})
  return {
    gap () {
      const most = gap
      gap = 0
      return most
    },
    leave: () => { body.destroy() }
  }
}

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
    chat.leave()
    await client.close()
    await gateway.stop()
    await upstream.stop()
  }
}

async function measured (
  gateway: BenchProgram, client: Client, chat: { gap (): number }, memories: number, say: (text: string) => void
): Promise<MemoryLoop> {
  const { sentence, item } = createTexts(2)
  const steps: Record<string, LoopStep> = {}
  const step = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    chat.gap()
    await gateway.ask<Held>('held')
    const from = performance.now()
    await work()
    const seconds = (performance.now() - from) / 1000
    const { most, p999, used } = await gateway.ask<Held>('held')
    const gap = chat.gap()
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
  const beside: number[] = []
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
      beside.push(performance.now() - from)
    }
    await imported
  })
  beside.sort((a, b) => a - b)
  const recalls = { count: beside.length, p50: beside[beside.length >> 1]!, most: beside.at(-1)! }
  say(`  recall beside the import of ${LARGE_BATCH * LARGE_BATCHES}: ${recalls.count}, p50 ${recalls.p50.toFixed(0)} ms, at most ${recalls.most.toFixed(0)} ms`)
  const rss = await gateway.memory() / 1024 / 1024
  say(`  ${rss.toFixed(0)} MiB resident`)
  return { memories, steps, recall_beside_import: recalls, rss_mib: rss }
}

function form (archive: Buffer): { readonly type: string, readonly body: Buffer } {
  const mark = 'bench-of-the-memory'
  const head = `--${mark}\r\ncontent-disposition: form-data; name="file"; filename="a.zip"\r\ncontent-type: application/zip\r\n\r\n`
  return { type: `multipart/form-data; boundary=${mark}`, body: Buffer.concat([Buffer.from(head), archive, Buffer.from(`\r\n--${mark}--\r\n`)]) }
}

/** What the thread itself used, where that is known: on a busy machine others take more than it does. */
export function loopBars ({ steps }: MemoryLoop): readonly Bar[] {
  const value = Math.max(...Object.values(steps).map(({ used, most }) => used ?? most))
  return [{ name: 'memory: event loop of the gateway held, ms', value, limit: '< 10', ok: value < 10 }]
}
