import { join } from 'node:path'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Abilities } from '../../../plugins/services/memory-engine/messages.js'
import type { Bar } from '../lists.js'
import { conversationsOf, fill, hits } from './locomo.js'
import { callsOf, errandsTo, lookAtLinks, vectorsMade } from './memory-calls.js'
import { EMBED_MODEL, NO_ABILITIES, none, RERANK_MODEL, type Models } from './memory-models.js'
import { createRandom } from './memory-texts.js'

export interface Shares {
  readonly text: number
  readonly text_and_rerank: number | null
  readonly vectors: number | null
  /** With vectors, where a bank looks at no links. */
  readonly vectors_without_links: number | null
  /** With a rerank, and with vectors where there are any. */
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

/** What the memory finds again of all conversations in the file. */
export async function measureMemory (
  file: string, home: string, models: Models, say: (text: string) => void
): Promise<MemoryQuality> {
  const conversations = conversationsOf(file)
  const by: Record<string, Record<string, number>> = {}
  const bad: Record<string, number> = {}
  let questions = 0
  const run = async (isApart: boolean): Promise<Shares> => {
    let abilities = NO_ABILITIES
    const engine = new EmbeddedEngine({
      path: () => join(home, isApart ? 'apart.db' : 'together.db'), abilities: () => abilities, log: () => {},
      run: models.url === null ? () => Promise.reject(new Error('no models')) : withBadRerankers(errandsTo(models.url))
    })
    const use = (changed: Partial<Abilities>): void => {
      abilities = { ...abilities, ...changed }
      engine.abilitiesChanged()
    }
    const call = callsOf(engine)
    const share = async (name: string, wanted: string): Promise<number> => {
      let [sum, all] = [0, 0]
      for (const conversation of conversations) {
        const { hits: found, asked } = await hits(call, conversation, wanted)
        by[conversation.sample_id] = { ...by[conversation.sample_id], [`${name}${isApart ? ' apart' : ''}`]: found / asked }
        sum += found
        all += asked
      }
      questions = all
      say(`  ${isApart ? 'turns apart' : 'sessions as documents'}, ${name}: ${(sum / all).toFixed(3)} of ${all}`)
      return sum / all
    }
    const ranked = async (name: string, wanted: string): Promise<number | null> => {
      if (models.rerank !== null) return null
      use({ rerank: { model: RERANK_MODEL, why: null } })
      return await share(name, wanted)
    }
    try {
      for (const conversation of conversations) await fill(call, conversation, { isApart })
      const text = await share('text', 'text')
      const reranked = await ranked('text and rerank', 'text+rerank')
      if (models.vectors !== null) {
        return { text, text_and_rerank: reranked, vectors: null, vectors_without_links: null, rerank: reranked }
      }
      use({ rerank: none, embed: { model: EMBED_MODEL, why: null } })
      for (const { sample_id: id } of conversations) await vectorsMade(call, id)
      const vectors = await share('vectors', 'text+vectors')
      for (const { sample_id: id } of conversations) await lookAtLinks(call, id, false)
      const unlinked = await share('vectors, without links', 'text+vectors')
      for (const { sample_id: id } of conversations) await lookAtLinks(call, id, true)
      const rerank = await ranked('rerank', 'text+vectors+rerank')
      for (const name of Object.keys(badRerankers)) {
        use({ rerank: { model: name, why: null } })
        bad[name] = Math.min(bad[name] ?? 1, await share(`${name} rerank`, 'text+vectors+rerank') - vectors)
      }
      return { text, text_and_rerank: reranked, vectors, vectors_without_links: unlinked, rerank }
    } finally {
      await engine.close()
    }
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
    ...bar(`${shape}with vectors and rerank`, its.vectors === null ? null : its.rerank, its.vectors ?? 0)
  ]
  return [...bars('', together, 0.68), ...bars('each turn by itself, ', apart, 0.69),
    ...Object.entries(bad).map(([name, value]) => ({ name: `LoCoMo, what a ${name} reranker adds`, value, limit: '>= 0', ok: value >= 0 }))]
}
