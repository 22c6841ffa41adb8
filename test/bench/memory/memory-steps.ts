import { readFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Bar } from '../lists.js'
import { callsOf, fill, hits, lookAtLinks, type Call, type Conversation, type Telling } from './memory.js'

/** Share of the questions with a turn of the evidence among the first ten, by words, and the same without one of the steps. */
export interface StepShares {
  readonly all: number
  /** What stands beside a find, or was kept beside it. */
  readonly without_links: number
  /** Whom a memory begins with. */
  readonly without_subjects: number
  /** That the newer one of equals wins. */
  readonly without_recency: number
}

const none = { model: null, why: 'not in this run' } as const
const abilities = { embed: none, rerank: none, chat: none }

/** How a conversation is told, and by how much less a step may find than nothing does. */
const tellings: Readonly<Record<string, { readonly telling: Telling, readonly costs: number }>> = {
  'sessions as documents': { telling: { isApart: false }, costs: 0 },
  'turns apart': { telling: { isApart: true }, costs: 0 },
  // what was kept beside a find tells nothing here, and is looked at all the same
  'turns in any order': { telling: { isApart: true, isShuffled: true }, costs: 0.01 }
}
/** Nobody is asked about who contradicts himself: what recency is for is tried by the tests of recall. */
const RECENCY_COSTS = 0.01
/** A word that no question has: no memory begins with whom it is about. */
const PREFIX = 'Qqq '

/** What each step of the order adds, by how the conversations are told. */
export type MemorySteps = Readonly<Record<string, StepShares>>

export async function measureSteps (file: string, home: string, say: (text: string) => void): Promise<MemorySteps> {
  const conversations = JSON.parse(readFileSync(file, 'utf8')) as Conversation[]
  const found: Record<string, StepShares> = {}
  for (const [name, { telling }] of Object.entries(tellings)) {
    const shares: Record<keyof StepShares, number> = { all: 0, without_links: 0, without_subjects: 0, without_recency: 0 }
    await told(home, conversations, telling, async (call, share) => {
      shares.all = await share()
      for (const { sample_id: id } of conversations) await lookAtLinks(call, id, false)
      shares.without_links = await share()
    })
    await told(home, conversations, { ...telling, prefix: PREFIX }, async (_, share) => {
      shares.without_subjects = await share()
    })
    await told(home, conversations, { ...telling, isAtOnce: true }, async (_, share) => {
      shares.without_recency = await share()
    })
    found[name] = shares
    say(`  ${name}, words: ${Object.entries(shares).map(([step, share]) => `${step.replaceAll('_', ' ')} ${share.toFixed(3)}`).join(', ')}`)
  }
  return found
}

/** An engine that was told all conversations, while `work` runs. */
async function told (
  home: string, conversations: readonly Conversation[], telling: Telling,
  work: (call: Call, share: () => Promise<number>) => Promise<void>
): Promise<void> {
  const path = join(await mkdtemp(join(home, 'steps-')), 'memory.db')
  const engine = new EmbeddedEngine({
    path: () => path, abilities: () => abilities, log: () => {}, run: () => Promise.reject(new Error('no models'))
  })
  try {
    const call = callsOf(engine)
    const turns = new Map<string, ReadonlyMap<string, string>>()
    for (const conversation of conversations) turns.set(conversation.sample_id, await fill(call, conversation, telling))
    await work(call, async () => {
      let [sum, all] = [0, 0]
      for (const conversation of conversations) {
        const { hits: hit, asked } = await hits(call, conversation, turns.get(conversation.sample_id)!, 'text')
        sum += hit
        all += asked
      }
      return sum / all
    })
  } finally {
    await engine.close()
  }
}

export function stepBars (steps: MemorySteps): readonly Bar[] {
  return Object.entries(steps).flatMap(([name, { all, ...without }]) => Object.entries(without).map(([step, share]) => {
    const least = -Math.max(tellings[name]!.costs, step === 'without_recency' ? RECENCY_COSTS : 0)
    return { name: `LoCoMo, ${name}, gained by ${step.slice('without_'.length)}`, value: all - share, limit: `>= ${least}`, ok: all - share >= least }
  }))
}
