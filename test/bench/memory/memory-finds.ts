import { join } from 'node:path'
import { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import { conversationsOf, hits, sessionsOf, type Conversation, type Hits } from './locomo.js'
import type { MemoryQuality, Shares } from './memory.js'
import { callsOf, configure, errandsTo, vectorsMade, type Call } from './memory-calls.js'
import { EMBED_MODEL, modelsAt, NO_ABILITIES, RERANK_MODEL, type Models } from './memory-models.js'
import { besideHindsight, callsAt } from './memory-servers.js'

/** Share of the questions with a turn of the evidence among the first ten, of both with the same models. */
export interface FoundBeside {
  readonly conversations: readonly string[]
  readonly questions: number
  readonly svc: number
  readonly hindsight: number
}

export interface QualityBeside extends Omit<MemoryQuality, 'hit_at_10'> {
  /** `hindsight`: of the conversations of `beside_hindsight` alone; null where there is none. */
  readonly hit_at_10: Shares & { readonly hindsight: number | null }
  readonly beside_hindsight: FoundBeside | null
  /** Why a share is null, by its name. */
  readonly missing: Readonly<Partial<Record<'vectors' | 'rerank' | 'hindsight', string>>>
}

/** The first ones of the file: a retain of Hindsight's takes a tenth of a second for each turn, and a recall as long. */
const CONVERSATIONS = 2

/**
 * What the memory and a Hindsight server find again of the first conversations, each turn a memory as it was said. Why
 * that cannot be told, as a text.
 */
export async function measureFinds (file: string, home: string): Promise<FoundBeside | string> {
  try {
    const conversations = conversationsOf(file).slice(0, CONVERSATIONS)
    return await besideHindsight(true, async server => {
      const ours = await findsOfOurs(conversations, join(home, 'finds.db'), await modelsAt(server.models))
      const theirs = await finds(callsAt(server), conversations, null)
      const share = ({ hits: found, asked }: Hits): number => found / asked
      const ids = conversations.map(({ sample_id: id }) => id)
      return { conversations: ids, questions: ours.asked, svc: share(ours), hindsight: share(theirs) }
    })
  } catch (error) {
    return (error as Error).message
  }
}

async function findsOfOurs (conversations: readonly Conversation[], path: string, { url, rerank }: Models): Promise<Hits> {
  const embed = { model: EMBED_MODEL, why: null }
  const abilities = { ...NO_ABILITIES, embed, ...rerank === null && { rerank: { model: RERANK_MODEL, why: null } } }
  const engine = new EmbeddedEngine({ path: () => path, abilities: () => abilities, log: () => {}, run: errandsTo(url!) })
  const call = callsOf(engine)
  try {
    return await finds(call, conversations, `text+vectors${rerank === null ? '+rerank' : ''}`, id => vectorsMade(call, id))
  } finally {
    await engine.close()
  }
}

/** The banks have names of their own, and are gone in the end: the server may be one that is in use. */
async function finds (
  call: Call, conversations: readonly Conversation[], ranOn: string | null,
  told: (bank: string) => Promise<void> = () => Promise.resolve()
): Promise<Hits> {
  const banks = conversations.map(each => ({ ...each, sample_id: `bench-${process.pid}-${each.sample_id}` }))
  try {
    for (const bank of banks) await tell(call, bank)
    for (const { sample_id: id } of banks) await told(id)
    let [found, all] = [0, 0]
    for (const bank of banks) {
      const { hits: hit, asked } = await hits(call, bank, ranOn)
      found += hit
      all += asked
    }
    return { hits: found, asked: all }
  } finally {
    // why it could not be measured says more than that a bank is left
    await Promise.allSettled(banks.map(({ sample_id: id }) => call('DELETE', id)))
  }
}

/** A session at a time: what is appended to a document has Hindsight cut all of it anew, across turns. */
async function tell (call: Call, conversation: Conversation): Promise<void> {
  const { sample_id: id } = conversation
  await call('PUT', id, { name: id })
  await configure(call, id, { enable_observations: false, retain_extraction_mode: 'verbatim' })
  const sessions = sessionsOf(conversation, { isApart: false })
  for (const items of sessions) await call('POST', `${id}/memories`, { items })
  const { body: { total } } = await call('GET', `${id}/memories/list?limit=1`)
  const turns = sessions.flat().length
  if (total !== turns) throw new Error(`bank ${id} has ${total} memories of ${turns} turns`)
}

/** @param finds where they could not be measured, why */
export function withFinds (quality: MemoryQuality, models: Models, finds: FoundBeside | string): QualityBeside {
  const beside = typeof finds === 'string' ? null : finds
  return {
    ...quality,
    hit_at_10: { ...quality.hit_at_10, hindsight: beside?.hindsight ?? null },
    beside_hindsight: beside,
    missing: {
      ...models.vectors !== null && { vectors: models.vectors }, ...models.rerank !== null && { rerank: models.rerank },
      ...typeof finds === 'string' && { hindsight: finds }
    }
  }
}

export function qualityLines ({ hit_at_10: shares, beside_hindsight: beside, missing }: QualityBeside): readonly string[] {
  const shown = (name: 'text' | 'vectors' | 'rerank'): string => `${name} ${shares[name]?.toFixed(3) ?? '-'}`
  return [
    `  found among the first ten: ${(['text', 'vectors', 'rerank'] as const).map(shown).join(', ')}`,
    ...beside === null ? [] : [`  of ${beside.conversations.join(' and ')}, ${beside.questions} questions, with the same models: ` +
      `svc ${beside.svc.toFixed(3)}, Hindsight ${beside.hindsight.toFixed(3)}`],
    ...Object.entries(missing).map(([name, why]) => `  no ${name}: ${why}`)
  ]
}
