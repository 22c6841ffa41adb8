import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { request } from 'undici'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Bar } from '../lists.js'
import { createRandom } from './memory-texts.js'
import type { Abilities, Errand, ErrandAnswer } from '../../../plugins/services/memory-engine/messages.js'

export interface Shares {
  readonly text: number
  readonly text_and_rerank: number | null
  readonly vectors: number | null
  /** With vectors, where a bank looks at no links. */
  readonly vectors_without_links: number | null
  readonly rerank: number | null
}

/** Share of the questions with a turn of the evidence among the first ten; null where no engine serves the step. */
export interface MemoryQuality {
  readonly questions: number
  readonly hit_at_10: Shares
  /** As above, with each turn in a document of its own, which has no neighbours. */
  readonly hit_at_10_apart: Shares
  /** By how much a reranker that is bad in this way takes the share below that of vectors alone, at worst. */
  readonly bad_rerankers: Readonly<Record<string, number>>
  /** By conversation. */
  readonly by_conversation: Readonly<Record<string, Readonly<Record<string, number>>>>
}

interface Turn { readonly dia_id: string, readonly speaker: string, readonly text: string }
export interface Conversation {
  readonly sample_id: string
  readonly conversation: Readonly<Record<string, unknown>>
  readonly qa: readonly { readonly question: string, readonly evidence?: readonly string[], readonly category: number }[]
}

/** Questions that a conversation does not answer. */
const UNANSWERABLE = 5
const FIRST = 10
const BATCH = 64
/** The order is measured here, and not how fast models are. */
const PATIENCE_MS = 120_000

export interface WireAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
  readonly body: any
}
/** A path below `/v1/default/banks/`. */
export type Call = (method: string, path: string, body?: unknown) => Promise<WireAnswer>

export function callsOf (engine: EmbeddedEngine): Call {
  return async (method, target, body) => {
    const [path = '', query = ''] = `/v1/default/banks/${target}`.split('?')
    const sent = body === undefined ? null : Buffer.from(JSON.stringify(body))
    const headers = { 'content-type': 'application/json' }
    const answer = await engine.request({ method, path, query, headers, body: sent, signal: new AbortController().signal })
    return { status: answer.status, headers: answer.headers, body: JSON.parse((Buffer.isBuffer(answer.body) ? answer.body : await buffer(answer.body)).toString('utf8')) }
  }
}

/** Sends errands to an OpenAI-compatible address. */
export function errandsTo (base: string): (errand: Errand, signal: AbortSignal) => Promise<ErrandAnswer> {
  const paths = { embed: '/embeddings', rerank: '/rerank', chat: '/chat/completions', web: '' }
  return async (errand, signal) => {
    const { statusCode, body } = await request(`${base}${paths[errand.to]}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: Buffer.from(errand.body), signal
    })
    return { status: statusCode, body: Buffer.from(await body.arrayBuffer()) }
  }
}

const none = { model: null, why: 'not in this run' } as const

/** How a conversation is told. */
export interface Telling {
  /** Each turn by itself; else its sessions as documents with a memory for each turn. */
  readonly isApart: boolean
  /** In any order; else in its own. */
  readonly isShuffled?: boolean
  /** Stands before each turn. */
  readonly prefix?: string
  /** All of it at one time; else when it was said. */
  readonly isAtOnce?: boolean
}

/** The bank of a conversation. Returns the ids of its turns by their texts. */
export async function fill (
  call: Call, { sample_id: id, conversation }: Conversation, { isApart, isShuffled = false, prefix = '', isAtOnce = false }: Telling
): Promise<Map<string, string>> {
  const turns = new Map<string, string>()
  const all: object[] = []
  for (let session = 1; Array.isArray(conversation[`session_${session}`]); session++) {
    const start = Date.parse(`${String(conversation[`session_${isAtOnce ? 1 : session}_date_time`]).replace(/^(.*) on (.*)$/, '$2 $1')} UTC`)
    const items = (conversation[`session_${session}`] as Turn[]).map((turn, i) => {
      const content = `${prefix}${turn.speaker}: ${turn.text}`.trim()
      turns.set(content, turn.dia_id)
      return {
        content, timestamp: new Date(isAtOnce ? start : start + i * 1000).toISOString(), document_id: isApart ? turn.dia_id : `session ${session}`,
        update_mode: 'append'
      }
    })
    all.push(...items)
  }
  const told = isShuffled ? shuffled(all) : all
  for (let from = 0; from < told.length; from += BATCH) await call('POST', `${id}/memories`, { items: told.slice(from, from + BATCH) })
  return turns
}

/** The same order each time. */
function shuffled<T> (all: readonly T[]): T[] {
  const random = createRandom(1)
  return all.map(each => [random(), each] as const).sort(([a], [b]) => a - b).map(([, each]) => each)
}

/** Whether recalls of a bank look at what stands beside a find, or was kept beside it. */
export async function lookAtLinks (call: Call, id: string, isOn: boolean): Promise<void> {
  await configure(call, id, { enable_graph_retrieval: isOn })
}

export async function configure (call: Call, id: string, updates: Readonly<Record<string, boolean>>): Promise<void> {
  await call('PATCH', `${id}/config`, { updates })
}

/** Resolves when every memory of the bank has its vector. */
export async function vectorsMade (call: Call, id: string): Promise<void> {
  for (;;) {
    const { body } = await call('GET', `${id}/embeddings`)
    if (body.pending === 0) return
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}

export interface Hits { readonly hits: number, readonly asked: number }

/** How many questions have a turn of their evidence among the first ten. Rejects where a recall ran on other steps. */
export async function hits (
  call: Call, conversation: Conversation, turns: ReadonlyMap<string, string>, wanted: string
): Promise<Hits> {
  const asked = conversation.qa.filter(({ evidence, category }) => (evidence?.length ?? 0) > 0 && category !== UNANSWERABLE)
  let found = 0
  for (const { question, evidence } of asked) {
    const { headers, body } = await call('POST', `${conversation.sample_id}/memories/recall`, {
      query: question, max_tokens: 100_000, include: { entities: null }, trace: true
    })
    const isWanted = headers['x-svc-recall'] === wanted || /do not count/.test(String(body.trace.steps.rerank))
    if (!isWanted && body.results.length > 1) throw new Error(`recall ran as ${String(headers['x-svc-recall'])} and not as ${wanted}`)
    const ids = new Set((body.results as { text: string }[]).slice(0, FIRST).map(({ text }) => turns.get(text)))
    if (evidence!.flatMap(each => each.split(/[;,\s]+/)).some(id => ids.has(id))) found++
  }
  return { hits: found, asked: asked.length }
}

/** `models`: base URL of an OpenAI-compatible server that embeds and reranks; null for none. */
export async function measureMemory (
  file: string, home: string, models: string | null, say: (text: string) => void
): Promise<MemoryQuality> {
  const conversations = JSON.parse(readFileSync(file, 'utf8')) as Conversation[]
  const by: Record<string, Record<string, number>> = {}
  const bad: Record<string, number> = {}
  let questions = 0
  const run = async (isApart: boolean): Promise<Shares> => {
    const patience = { embedMs: PATIENCE_MS, rerankMs: PATIENCE_MS }
    let abilities: Abilities = { embed: none, rerank: none, chat: none, patience }
    const engine = new EmbeddedEngine({
      path: () => join(home, isApart ? 'apart.db' : 'together.db'), abilities: () => abilities, log: () => {},
      run: models === null ? () => Promise.reject(new Error('no models')) : withBadRerankers(errandsTo(models))
    })
    const call = callsOf(engine)
    const turns = new Map<string, Map<string, string>>()
    for (const conversation of conversations) turns.set(conversation.sample_id, await fill(call, conversation, { isApart }))
    const share = async (name: string, wanted: string): Promise<number> => {
      let [sum, all] = [0, 0]
      for (const conversation of conversations) {
        const { hits: found, asked } = await hits(call, conversation, turns.get(conversation.sample_id)!, wanted)
        by[conversation.sample_id] = { ...by[conversation.sample_id], [`${name}${isApart ? ' apart' : ''}`]: found / asked }
        sum += found
        all += asked
      }
      questions = all
      say(`  ${isApart ? 'turns apart' : 'sessions as documents'}, ${name}: ${(sum / all).toFixed(3)} of ${all}`)
      return sum / all
    }
    const text = await share('text', 'text')
    if (models === null) {
      await engine.close()
      return { text, text_and_rerank: null, vectors: null, vectors_without_links: null, rerank: null }
    }
    abilities = { ...abilities, rerank: { model: 'rerank', why: null } }
    engine.abilitiesChanged()
    const reranked = await share('text and rerank', 'text+rerank')
    abilities = { ...abilities, rerank: none, embed: { model: 'minilm', why: null } }
    engine.abilitiesChanged()
    for (const { sample_id: id } of conversations) await vectorsMade(call, id)
    const vectors = await share('vectors', 'text+vectors')
    for (const { sample_id: id } of conversations) await lookAtLinks(call, id, false)
    const unlinked = await share('vectors, without links', 'text+vectors')
    for (const { sample_id: id } of conversations) await lookAtLinks(call, id, true)
    abilities = { ...abilities, rerank: { model: 'rerank', why: null } }
    engine.abilitiesChanged()
    const rerank = await share('rerank', 'text+vectors+rerank')
    for (const name of Object.keys(badRerankers)) {
      abilities = { ...abilities, rerank: { model: name, why: null } }
      engine.abilitiesChanged()
      bad[name] = Math.min(bad[name] ?? 1, await share(`${name} rerank`, 'text+vectors+rerank') - vectors)
    }
    await engine.close()
    return { text, text_and_rerank: reranked, vectors, vectors_without_links: unlinked, rerank }
  }
  const together = await run(false)
  const apart = await run(true)
  return { questions, hit_at_10: together, hit_at_10_apart: apart, bad_rerankers: bad, by_conversation: by }
}

/** What they say of documents that come in the order of words and vectors, the best first. */
const badRerankers: Readonly<Record<string, (random: () => number, index: number) => number>> = {
  ...Object.fromEntries(['random', 'random too', 'random as well', 'random again', 'random at last'].map(name => [name, (random: () => number) => random()])),
  'reversed': (_, index) => index,
  'half reversed': (random, index) => index + random() * 100
}

function withBadRerankers (run: ReturnType<typeof errandsTo>): ReturnType<typeof errandsTo> {
  const randoms = Object.fromEntries(Object.keys(badRerankers).map((name, seed) => [name, createRandom(seed)]))
  return async (errand, signal) => {
    if (errand.to !== 'rerank') return await run(errand, signal)
    const { model, documents } = JSON.parse(Buffer.from(errand.body).toString('utf8')) as { model: string, documents: string[] }
    const score = badRerankers[model]
    if (score === undefined) return await run(errand, signal)
    const results = documents.map((_, index) => ({ index, relevance_score: score(randoms[model]!, index) }))
    return { status: 200, body: Buffer.from(JSON.stringify({ results })) }
  }
}

export function memoryBars ({ hit_at_10: together, hit_at_10_apart: apart, bad_rerankers: bad }: MemoryQuality): readonly Bar[] {
  const bar = (name: string, value: number | null, least: number): Bar[] =>
    value === null ? [] : [{ name: `LoCoMo, ${name}`, value, limit: `>= ${least.toFixed(2)}`, ok: value >= least }]
  const bars = (shape: string, its: Shares, least: number): Bar[] => [
    ...bar(`${shape}text alone`, its.text, least), ...bar(`${shape}with text and rerank`, its.text_and_rerank, its.text),
    ...bar(`${shape}with vectors`, its.vectors, Math.max(0.74, its.text, its.vectors_without_links ?? 0)),
    ...bar(`${shape}with vectors and rerank`, its.rerank, its.vectors ?? 0)
  ]
  return [...bars('', together, 0.68), ...bars('each turn by itself, ', apart, 0.69),
    ...Object.entries(bad).map(([name, value]) => ({ name: `LoCoMo, what a ${name} reranker adds`, value, limit: '>= 0', ok: value >= 0 }))]
}
