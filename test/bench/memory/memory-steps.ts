import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Abilities } from '../../../plugins/services/memory-engine/messages.js'
import type { Bar } from '../lists.js'
import { conversationsOf, fill, hits, type Conversation, type Telling } from './locomo.js'
import { callsOf, configure, errandsTo, lookAtLinks, vectorsMade, type Call } from './memory-calls.js'
import { EMBED_MODEL, NO_ABILITIES, none, RERANK_MODEL, type Models } from './memory-models.js'

/** Share of the questions with a turn of the evidence among the first ten, and the same without one of the steps. */
export interface StepShares {
  readonly all: number
  /** What stands beside a find, or was kept beside it. */
  readonly without_links: number
  /** Whom a memory begins with. */
  readonly without_subjects: number
  /** That the newer one of equals wins. */
  readonly without_recency: number
}

export interface VectorShares extends StepShares {
  readonly without_vectors: number
  readonly without_words: number
  /** All of it, and a rerank besides; null where nothing reranks. */
  readonly with_rerank: number | null
}

/** What each step of the order adds, by how the conversations are told. */
export type MemorySteps = Readonly<Record<string, { readonly words: StepShares, readonly vectors: VectorShares | null }>>

/** How a conversation is told, and by how much less a step may find than nothing does. */
const tellings: Readonly<Record<string, { readonly telling: Telling, readonly costs: number }>> = {
  'sessions as documents': { telling: { isApart: false }, costs: 0 },
  'turns apart': { telling: { isApart: true }, costs: 0 },
  // what was kept beside a find tells nothing here, and is looked at all the same
  'turns in any order': { telling: { isApart: true, isShuffled: true }, costs: 0.01 }
}
/** Nobody is asked about who contradicts himself: what recency is for is tried by the tests of recall. */
const RECENCY_COSTS = 0.01
/** A word that no question has: no memory begins with whom it is about. Vectors are made without it. */
const PREFIX = 'Qqq '

interface Told {
  readonly call: Call
  /** Of the questions, where recalls run on these steps. */
  readonly share: (ranOn: string) => Promise<number>
  readonly reranks: (isOn: boolean) => void
}

export async function measureSteps (
  file: string, home: string, models: Models, say: (text: string) => void
): Promise<MemorySteps> {
  const conversations = conversationsOf(file)
  const ids = conversations.map(({ sample_id: id }) => id)
  const found: Record<string, MemorySteps[string]> = {}
  for (const [name, { telling }] of Object.entries(tellings)) {
    const runOn = <T>(url: string | null, how: Telling, work: (told: Told) => Promise<T>): Promise<T> =>
      told({ home, conversations, models: url }, how, work)
    const sharesOf = async (url: string | null): Promise<StepShares & { readonly told: Partial<VectorShares> }> => {
      const ranOn = url === null ? 'text' : 'text+vectors'
      const one = await runOn(url, telling, async ({ call, share, reranks }) => {
        const all = await share(ranOn)
        for (const id of ids) await lookAtLinks(call, id, false)
        const shares = { all, without_links: await share(ranOn) }
        if (url === null) return { shares, more: {} }
        for (const id of ids) await configure(call, id, { enable_graph_retrieval: true, enable_text_search: false })
        const wordless = await share('vectors')
        for (const id of ids) await configure(call, id, { enable_text_search: true })
        if (models.rerank !== null) return { shares, more: { without_words: wordless, with_rerank: null } }
        reranks(true)
        return { shares, more: { without_words: wordless, with_rerank: await share('text+vectors+rerank') } }
      })
      const again = (how: Telling): Promise<number> => runOn(url, { ...telling, ...how }, ({ share }) => share(ranOn))
      const without = {
        without_subjects: await again({ ...telling, prefix: PREFIX }),
        without_recency: await again({ ...telling, isAtOnce: true })
      }
      return { ...one.shares, ...without, told: one.more }
    }
    const { told: _, ...words } = await sharesOf(null)
    saySteps(say, `${name}, words`, words)
    found[name] = { words, vectors: null }
    if (models.vectors !== null) continue
    const { told: more, ...shares } = await sharesOf(models.url)
    const vectors = { ...shares, ...more, without_vectors: words.all } as VectorShares
    saySteps(say, `${name}, words and vectors`, vectors)
    found[name] = { words, vectors }
  }
  return found
}

function saySteps (say: (text: string) => void, what: string, shares: StepShares | VectorShares): void {
  const each = Object.entries({ ...shares } as Record<string, number | null>)
  say(`  ${what}: ${each.map(([step, share]) => `${step.replaceAll('_', ' ')} ${share?.toFixed(3) ?? '-'}`).join(', ')}`)
}

/** An engine that was told all conversations, while `work` runs. */
async function told<T> (
  { home, conversations, models }: {
    readonly home: string
    readonly conversations: readonly Conversation[]
    readonly models: string | null
  },
  telling: Telling, work: (told: Told) => Promise<T>
): Promise<T> {
  const path = join(await mkdtemp(join(home, 'steps-')), 'memory.db')
  let abilities: Abilities = { ...NO_ABILITIES, embed: models === null ? none : { model: EMBED_MODEL, why: null } }
  const send = models === null ? () => Promise.reject(new Error('no models')) : errandsTo(models)
  const engine = new EmbeddedEngine({
    path: () => path, abilities: () => abilities, log: () => {},
    run: (errand, signal) => send(errand.to === 'embed' ? { ...errand, body: unprefixed(errand.body) } : errand, signal)
  })
  try {
    const call = callsOf(engine)
    for (const conversation of conversations) await fill(call, conversation, telling)
    if (models !== null) for (const { sample_id: id } of conversations) await vectorsMade(call, id)
    return await work({
      call,
      share: async ranOn => {
        let [sum, all] = [0, 0]
        for (const conversation of conversations) {
          const { hits: hit, asked } = await hits(call, conversation, ranOn)
          sum += hit
          all += asked
        }
        return sum / all
      },
      reranks: isOn => {
        abilities = { ...abilities, rerank: isOn ? { model: RERANK_MODEL, why: null } : none }
        engine.abilitiesChanged()
      }
    })
  } finally {
    await engine.close()
  }
}

function unprefixed (body: Uint8Array): Buffer {
  const { input, ...rest } = JSON.parse(Buffer.from(body).toString('utf8')) as { readonly input: readonly string[] }
  const bare = input.map(text => text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text)
  return Buffer.from(JSON.stringify({ ...rest, input: bare }))
}

export function stepBars (steps: MemorySteps): readonly Bar[] {
  return Object.entries(steps).flatMap(([name, { words, vectors }]) => [
    ...barsOf(name, name, words), ...vectors === null ? [] : barsOf(name, `${name}, with vectors`, vectors)
  ])
}

function barsOf (telling: string, name: string, { all, ...others }: StepShares | VectorShares): readonly Bar[] {
  return Object.entries(others as Record<string, number | null>).flatMap(([step, share]) => {
    if (share === null) return []
    const isAdded = step.startsWith('with_')
    const value = isAdded ? share - all : all - share
    const least = -Math.max(tellings[telling]!.costs, step === 'without_recency' ? RECENCY_COSTS : 0)
    return { name: `LoCoMo, ${name}, gained by ${step.replace(/^with(?:out)?_/, '')}`, value, limit: `>= ${least}`, ok: value >= least }
  })
}
