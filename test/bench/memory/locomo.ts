import { readFileSync } from 'node:fs'
import type { Call } from './memory-calls.js'
import { createRandom } from './memory-texts.js'

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

export function conversationsOf (file: string): readonly Conversation[] {
  return JSON.parse(readFileSync(file, 'utf8')) as Conversation[]
}

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

/** What a retain takes for each turn, by session. The metadata tell which turn was found, whatever an engine makes of texts. */
export function sessionsOf (
  { conversation }: Conversation, { isApart, prefix = '', isAtOnce = false }: Telling
): readonly object[][] {
  const sessions: object[][] = []
  for (let session = 1; Array.isArray(conversation[`session_${session}`]); session++) {
    const date = String(conversation[`session_${isAtOnce ? 1 : session}_date_time`])
    const start = Date.parse(`${date.replace(/^(.*) on (.*)$/, '$2 $1')} UTC`)
    sessions.push((conversation[`session_${session}`] as Turn[]).map(({ dia_id: turn, speaker, text }, i) => ({
      content: `${prefix}${speaker}: ${text}`.trim(), timestamp: new Date(isAtOnce ? start : start + i * 1000).toISOString(),
      document_id: isApart ? turn : `session ${session}`, metadata: { turn }, update_mode: 'append'
    })))
  }
  return sessions
}

/** The bank of a conversation. */
export async function fill (call: Call, conversation: Conversation, telling: Telling): Promise<void> {
  const all = sessionsOf(conversation, telling).flat()
  const told = telling.isShuffled === true ? shuffled(all) : all
  for (let from = 0; from < told.length; from += BATCH) {
    await call('POST', `${conversation.sample_id}/memories`, { items: told.slice(from, from + BATCH) })
  }
}

/** The same order each time. */
function shuffled<T> (all: readonly T[]): T[] {
  const random = createRandom(1)
  return all.map(each => [random(), each] as const).sort(([a], [b]) => a - b).map(([, each]) => each)
}

export interface Hits { readonly hits: number, readonly asked: number }

interface Found { readonly metadata?: { readonly turn?: string } | null }

/**
 * How many questions have a turn of their evidence among the first ten. Rejects where a recall ran on other steps.
 * @param wanted the steps; null for an engine that does not tell
 */
export async function hits (call: Call, { sample_id: id, qa }: Conversation, wanted: string | null): Promise<Hits> {
  const asked = qa.filter(({ evidence, category }) => (evidence?.length ?? 0) > 0 && category !== UNANSWERABLE)
  let found = 0
  for (const { question, evidence } of asked) {
    const { headers, body } = await call('POST', `${id}/memories/recall`, {
      query: question, max_tokens: 100_000, include: { entities: null }, trace: wanted !== null
    })
    const results = body.results as readonly Found[]
    const isWanted = wanted === null || headers['x-svc-recall'] === wanted || /do not count/.test(String(body.trace.steps.rerank))
    if (!isWanted && results.length > 1) throw new Error(`recall ran as ${String(headers['x-svc-recall'])} and not as ${wanted}`)
    const turns = new Set(results.slice(0, FIRST).map(({ metadata }) => metadata?.turn))
    if (evidence!.flatMap(each => each.split(/[;,\s]+/)).some(turn => turns.has(turn))) found++
  }
  return { hits: found, asked: asked.length }
}
