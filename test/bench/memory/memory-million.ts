import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Errand, ErrandAnswer } from '../../../plugins/services/memory-engine/messages.js'
import { codeOf, modelNumber, normalized } from '../../../plugins/services/memory-engine/recall/vector-table.js'
import { openStore } from '../../../plugins/services/memory-engine/store/open.js'
import type { Bar } from '../lists.js'
import { callsOf, type Call } from './memory-calls.js'
import { none } from './memory-models.js'
import { createTexts, madeUpVector } from './memory-texts.js'

/** A bank of a million memories: what of it is in the memory of the process. Mebibytes and milliseconds. */
export interface MemoryMillion {
  readonly memories: number
  /** Of the process, after the same calls in a bank of one memory. */
  readonly rss_before_mib: number
  readonly rss_first_recalls_mib: number
  readonly rss_end_mib: number
  /** At most, while it is listed, and while it is exported and downloaded. */
  readonly rss_lists_mib: number
  readonly rss_export_mib: number
  readonly recall_p50_ms: number
  readonly recall_p99_ms: number
  readonly disk_mib: number
}

const MODEL = 'made-up'
/** Texts that the bank is made of; each is there many times, with a number of its own. */
const TEXTS = 5_000
const SLICE = 50_000
const RECALLS = 100
const ROUNDS = 3
/** In each round. */
export const RETAINED = 500
/**
 * The signs of so many vectors are 52 MiB, and 128 MiB of the file may be mapped. What an export has packed is collected after
 * 32 MiB of it, in either thread, however large the bank is.
 */
const MOST_GROWN_MIB = 300
const MOST_GROWN_EXPORTING_MIB = 364

/** Writes the rows that as many retains would have made: a million of those take a quarter of an hour. */
export function fill (path: string, memories: number): void {
  const store = openStore(path)
  const { sentence } = createTexts(3)
  const bank = store.get<{ seq: number }>(`SELECT seq FROM banks WHERE bank_id = 'large'`)!.seq
  const model = modelNumber(store, MODEL, madeUpVector('x').length)
  store.exec('CREATE TEMP TABLE texts (seq INTEGER PRIMARY KEY, text TEXT, vector BLOB, code BLOB)')
  for (let i = 0; i < TEXTS; i++) {
    const text = sentence(14)
    const vector = normalized(madeUpVector(text))!
    store.run('INSERT INTO temp.texts (seq, text, vector, code) VALUES (?, ?, ?, ?)', [i, text, Buffer.from(vector.buffer), Buffer.from(codeOf(vector).buffer)])
  }
  const first = 1 + Math.max(...['memories', 'documents'].map(table => store.get<{ seq: number }>(`SELECT max(seq) AS seq FROM ${table}`)!.seq))
  for (let from = first; from < first + memories; from += SLICE) {
    const range = `WITH RECURSIVE n(seq) AS (SELECT ${from} UNION ALL SELECT seq + 1 FROM n WHERE seq < ${Math.min(from + SLICE, first + memories) - 1})`
    const joined = `FROM n JOIN temp.texts t ON t.seq = n.seq % ${TEXTS}`
    store.transaction(() => {
      store.exec(`${range} INSERT INTO documents (seq, bank, document_id, original_text, content_hash, text_length, created_at, updated_at)
        SELECT n.seq, ${bank}, 'd' || n.seq, t.text || ' n' || n.seq, printf('%064x', n.seq), length(t.text) + 8, ${Date.now()}, ${Date.now()} ${joined}`)
      store.exec(`${range} INSERT INTO memories (seq, document, id, bank, text, text_hash, fact_type, mentioned_at, vector_model, created_at, updated_at)
        SELECT n.seq, n.seq, '${randomUUID().slice(0, 24)}' || printf('%012x', n.seq), ${bank}, t.text || ' n' || n.seq, randomblob(16), 'world', ${Date.now()}, ${model}, ${Date.now()}, ${Date.now()} ${joined}`)
      store.exec(`${range} INSERT INTO text_${bank} (rowid, text, context, entities) SELECT n.seq, t.text || ' n' || n.seq, '', '' ${joined}`)
      store.exec(`${range} INSERT INTO vectors (memory, bank, model, vector) SELECT n.seq, ${bank}, ${model}, t.vector ${joined}`)
      store.exec(`${range} INSERT INTO vector_codes (bank, model, memory, code) SELECT ${bank}, ${model}, n.seq, t.code ${joined}`)
    })
  }
  store.close()
}

/** An engine whose vectors are made up, on the database at this path. */
export function openOn (path: string): EmbeddedEngine {
  const run = (errand: Errand): Promise<ErrandAnswer> => {
    const { input } = JSON.parse(Buffer.from((errand as { body: Uint8Array }).body).toString('utf8')) as { input: string[] }
    const data = input.map((text, index) => ({ index, embedding: madeUpVector(text) }))
    return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ data })) })
  }
  return new EmbeddedEngine({
    path: () => path, abilities: () => ({ embed: { model: MODEL, why: null }, rerank: none, chat: none }), run, log: () => {}
  })
}

/** A bank `small` and a bank `large`, of one memory each. */
export async function makeBanks (path: string): Promise<void> {
  const engine = openOn(path)
  for (const bank of ['small', 'large']) await callsOf(engine)('POST', `${bank}/memories`, { items: [{ content: 'A dog sleeps.' }] })
  await engine.close()
}

/** As `fill`, in a process of its own: what it needs is not to be counted. */
export function fillApart (path: string, memories: number): void {
  execFileSync(process.execPath, ['--input-type=module', '-e', `(await import(${JSON.stringify(import.meta.url)})).fill(${JSON.stringify(path)}, ${memories})`])
}

export async function measureMillion (home: string, memories: number, say: (text: string) => void): Promise<MemoryMillion> {
  const path = join(home, 'million.db')
  await makeBanks(path)
  fillApart(path, memories)
  const disk = statSync(path).size / 2 ** 20
  say(`  ${memories} memories are there, ${disk.toFixed(0)} MiB on disk`)
  const engine = openOn(path)
  const call = callsOf(engine)
  const { sentence, item } = createTexts(4)
  await recalls(call, 'small', sentence)
  const before = rss()
  let times = await recalls(call, 'large', sentence)
  const first = rss()
  say(`  ${before.toFixed(0)} MiB resident beside a bank of one memory, ${first.toFixed(0)} after ${RECALLS} recalls in the large one`)
  for (let round = 0; round < ROUNDS; round++) {
    await call('POST', 'large/memories', { items: Array.from({ length: RETAINED }, item) })
    await call('GET', 'large/memories/list?limit=100&offset=500000')
    times = await recalls(call, 'large', sentence)
  }
  const end = rss()
  const lists = await mostOf(() => listed(call))
  say(`  ${lists.toFixed(0)} MiB at most while it is listed`)
  const exports = await mostOf(() => exported(engine, call, say))
  say(`  ${exports.toFixed(0)} MiB at most while it is exported and downloaded`)
  await engine.close()
  const [p50, p99] = [times[RECALLS / 2]!, times[Math.floor(RECALLS * 0.99)]!]
  const further = `${ROUNDS * RETAINED} retains and ${ROUNDS * RECALLS} recalls more`
  say(`  ${end.toFixed(0)} MiB after ${further}; recall p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`)
  return {
    memories, rss_before_mib: before, rss_first_recalls_mib: first, rss_end_mib: end, rss_lists_mib: lists,
    rss_export_mib: exports,
    recall_p50_ms: p50, recall_p99_ms: p99, disk_mib: disk
  }
}

/** What they took, shortest first. */
export async function recalls (call: Call, bank: string, sentence: (words: number) => string): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < RECALLS; i++) {
    const start = performance.now()
    const { status } = await call('POST', `${bank}/memories/recall`, { query: sentence(6) })
    if (status !== 200) throw new Error(`a recall was answered ${status}`)
    times.push(performance.now() - start)
  }
  return times.sort((a, b) => a - b)
}

/** The most that is resident while something is done. */
export async function mostOf (work: () => Promise<void>): Promise<number> {
  let most = rss()
  const timer = setInterval(() => { most = Math.max(most, rss()) }, 20)
  await work()
  clearInterval(timer)
  return Math.max(most, rss())
}

const lists = [
  'memories/list?limit=1000', 'memories/list?limit=1000&offset=50000', 'documents?limit=1000&tags_match=any', 'tags', 'entities', 'graph?limit=1000',
  'observations/scopes', 'operations?limit=100', 'stats', 'knowledge-base/tree', 'knowledge-base/search?q=dog', 'knowledge-base/export', 'export'
]

export async function listed (call: Call): Promise<void> {
  for (const list of lists) {
    const { status } = await call('GET', `large/${list}`)
    if (status !== 200) throw new Error(`${list} was answered ${status}`)
  }
}

async function exported (engine: EmbeddedEngine, call: Call, say: (text: string) => void): Promise<void> {
  const start = performance.now()
  const { body: { operation_id: id } } = await call('POST', 'large/transfer/export')
  for (;;) {
    const { body: { status, error_message: error, result_metadata: result } } = await call('GET', `large/operations/${id}`)
    if (status === 'completed') {
      const signal = new AbortController().signal
      const { body } = await engine.request({ method: 'GET', path: result.download_url, query: '', headers: {}, body: null, signal })
      let size = 0
      for await (const piece of body as AsyncIterable<Buffer>) size += piece.length
      if (size !== result.byte_size) throw new Error(`${size} of ${result.byte_size} bytes came`)
      return say(`  an archive of ${(size / 2 ** 20).toFixed(0)} MiB in ${((performance.now() - start) / 1000).toFixed(0)} s`)
    }
    if (status === 'failed') throw new Error(error)
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}

export function rss (): number {
  return process.memoryUsage().rss / 2 ** 20
}

export function millionBars (million: MemoryMillion): readonly Bar[] {
  const bar = (name: string, most: number, limit: number): Bar => {
    const value = most - million.rss_before_mib
    return { name, value, limit: `<= ${limit}`, ok: value <= limit }
  }
  return [
    bar('memory: grown by a million memories, MiB', Math.max(million.rss_end_mib, million.rss_lists_mib), MOST_GROWN_MIB),
    bar('memory: the same while they are exported, MiB', million.rss_export_mib, MOST_GROWN_EXPORTING_MIB)
  ]
}
