import { randomUUID } from 'node:crypto'
import { svcError, type Clock } from 'svc-gateway/plugin'
import { askEngine, bankPath, engineValue, rowsIn, valueOf, type Row } from '../engine-call.js'
import type { MemoryEngine } from '../engine.js'
import type { MemoryIdentity } from '../identity.js'
import { readDatasets, writtenDataset } from '../namespaces.js'
import { foundIn, type BankQuestion, type Found } from './found-in.js'
import { AGENT_TAG, noteOf, ownTags, PRIVATE_TAG, type FoundNote, type Note } from './note.js'
import { budgeted, inWindow, ranked, type TimeWindow } from './ranking.js'
import type { RerankBounds, Reranker } from './reranker.js'
import type { TagsMatch } from './tags.js'
import { documentSight, isVisible } from './visibility.js'

export interface NewNote {
  readonly text: string
  readonly dataset?: string | undefined
  readonly tags?: readonly string[] | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Used again it replaces what was written under it. Without one, what is said in one session makes up one document. */
  readonly document_id?: string | undefined
}

export interface AddedNote {
  readonly id: string
  /** ISO 8601 UTC. */
  readonly timestamp: string
  /** Where the engine goes on with it after the answer. */
  readonly operation_id?: string
  /** It was there before: `id` is that of the document that says it. The embedded engine alone looks. */
  readonly known?: true
  /** Where it was there as a single memory. */
  readonly memory_id?: string
}

export type AskedDatasets = string | readonly string[] | undefined

export interface NoteSearch extends TimeWindow {
  readonly query: string
  readonly limit: number
  readonly dataset?: AskedDatasets
  /** Only memories with one of them. */
  readonly tags?: readonly string[] | undefined
}

export interface NoteRecall {
  /** Of the reranker. */
  readonly rerank?: RerankBounds
  readonly query: string
  readonly max_tokens: number
  readonly types?: readonly string[] | undefined
  readonly dataset?: AskedDatasets
  readonly tags?: readonly string[] | undefined
  /** `any` by default: one of the tags, or none of a user's own. */
  readonly tags_match?: TagsMatch | undefined
}

export interface RecalledNotes {
  /** The best first. */
  readonly notes: readonly Note[]
  /** What found and ordered them: `text`, `vectors`, `rerank`, as the banks say, or the engine's name where they do not. */
  readonly ranOn: readonly string[]
}

export interface NoteList {
  readonly dataset?: AskedDatasets
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface NotePage {
  readonly items: readonly Note[]
  /** What to give as `cursor` for what comes behind; null when there is nothing. */
  readonly next_cursor: string | null
}

/** Of an engine's answer to a retain. */
interface EngineRetained {
  readonly operation_id?: unknown
  /** Of the embedded engine. */
  readonly known?: ReadonlyArray<{ readonly document_id: string, readonly memory_id: string | null }>
}

type Enter = (agent: string | null, bank: string, signal: AbortSignal) => Promise<void>

const TYPES = ['world', 'experience', 'observation']
/** What a search asks for, per memory that it is to find; a time window drops some afterwards. */
const TOKENS_PER_NOTE = 256
const WINDOW_FACTOR = 4
const MOST_TOKENS = 65_536
const RERANKED = 'rerank'

/** Memories as agents see them: by dataset, stamped with who wrote them, and of another agent's nothing. */
export class Notes {
  readonly #engine: () => MemoryEngine
  readonly #enter: Enter
  readonly #clock: Clock
  readonly #reranker: Reranker

  /**
   * @param engine throws `memory.unavailable`
   * @param enter rejects where an agent may not enter a bank
   */
  constructor (engine: () => MemoryEngine, enter: Enter, clock: Clock, reranker: Reranker) {
    this.#engine = engine
    this.#enter = enter
    this.#clock = clock
    this.#reranker = reranker
  }

  /**
   * Answers when the text is durable. Without an id, one that the agent has kept there before, with the same tags, is not kept
   * again by the embedded engine. Throws `memory.namespace_invalid`, `validation.invalid` for the id of a document that the
   * agent may not see, and what the engine refuses.
   */
  async add (identity: MemoryIdentity, note: NewNote, signal: AbortSignal): Promise<AddedNote> {
    const engine = this.#engine()
    const dataset = writtenDataset(identity, note.dataset)
    await this.#enter(identity.agent, dataset.bank, signal)
    const { document_id: replaced } = note
    if (replaced !== undefined && await documentSight(engine, { bank: dataset.bank, id: replaced }, identity, signal) === 'hidden') {
      throw svcError('validation.invalid', `the id '${replaced}' cannot be used in this dataset: choose another`, { param: 'document_id' })
    }
    const session = replaced === undefined ? sessionDocument(identity, note.metadata?.session_id) : null
    const id = replaced ?? session ?? randomUUID()
    const timestamp = new Date(this.#clock.now()).toISOString()
    const tags = [
      ...ownTags(note.tags ?? []), `${AGENT_TAG}${identity.agent ?? 'anonymous'}`, ...dataset.owner === null ? [] : [PRIVATE_TAG]
    ]
    const item = {
      content: note.text,
      document_id: id,
      tags,
      timestamp,
      ...session === null ? {} : { update_mode: 'append' },
      ...note.metadata === undefined ? {} : { metadata: note.metadata },
      // a server has no such thing, and to look for it before would race
      ...engine.name === 'embedded' && replaced === undefined ? { unless_known: true } : {}
    }
    // a server that lets a model read each text first is not waited for
    const body = { items: [item], async: engine.name === 'hindsight' }
    const answer = await engineValue(engine, { method: 'POST', path: `${bankPath(dataset.bank)}/memories`, body, signal })
    const { operation_id: operation, known: [known] = [] } = (answer ?? {}) as EngineRetained
    if (known !== undefined) {
      const { document_id: document, memory_id: memory } = known
      return { id: document, timestamp, known: true, ...memory === null ? {} : { memory_id: memory } }
    }
    return { id, timestamp, ...typeof operation === 'string' ? { operation_id: operation } : {} }
  }

  /** The best first. */
  async search (
    identity: MemoryIdentity, { query, limit, dataset, tags, before, after }: NoteSearch, signal: AbortSignal
  ): Promise<RecalledNotes> {
    const hasWindow = before !== undefined || after !== undefined
    const maxTokens = Math.min(limit * TOKENS_PER_NOTE * (hasWindow ? WINDOW_FACTOR : 1), MOST_TOKENS)
    const asked = tags === undefined || tags.length === 0 ? undefined : { tags, match: 'any_strict' } as const
    const question = { query, max_tokens: maxTokens, types: TYPES, tags: asked }
    const { found, ranOn } = await this.#found(identity, dataset, question, signal)
    const notes = inWindow(ranked(found.map(({ note }) => note)), { before, after })
    return { notes: notes.slice(0, limit), ranOn: [...new Set(ranOn)] }
  }

  /** The best first, as many as fit. */
  async recall (
    identity: MemoryIdentity, { dataset, types = TYPES, tags, tags_match: match = 'any', rerank = {}, ...asked }: NoteRecall,
    signal: AbortSignal
  ): Promise<RecalledNotes> {
    const isAll = match !== 'exact' && (tags === undefined || tags.length === 0)
    const question = { ...asked, types, tags: isAll ? undefined : { tags: tags ?? [], match } }
    const recalled = await this.#found(identity, dataset, question, signal)
    const found = byScore(recalled.found)
    // what the embedded engine found in one bank, it has reranked itself
    const isOrdered = this.#engine().name === 'embedded' && found.every(({ note }) => note.dataset === found[0]!.note.dataset)
    const { notes, counted } = isOrdered ? { notes: found.map(({ note }) => note), counted: false }
      : await this.#reranker.scored(asked.query, found, rerank, signal)
    return {
      notes: budgeted(ranked(notes), asked.max_tokens),
      ranOn: [...new Set([...recalled.ranOn, ...counted ? [RERANKED] : []])]
    }
  }

  /** One bank after the other. Throws `validation.invalid` for a cursor that is none. */
  async list (identity: MemoryIdentity, { dataset, cursor, limit }: NoteList, signal: AbortSignal): Promise<NotePage> {
    const engine = this.#engine()
    const banks = readDatasets(identity, dataset).map(({ bank }) => bank)
    for (const bank of banks) await this.#enter(identity.agent, bank, signal)
    let { at, offset } = cursor === undefined ? { at: 0, offset: 0 } : placeOf(cursor, banks)
    const items: Note[] = []
    while (at < banks.length) {
      const bank = banks[at]!
      const rows = await this.#page(engine, bank, { offset, limit: limit - items.length }, signal)
      items.push(...rows.items.map(row => noteOf(row, bank)).filter(note => isVisible(note, identity)))
      offset += rows.items.length
      if (rows.items.length === 0 || offset >= rows.total) {
        at++
        offset = 0
      }
      if (items.length >= limit) break
    }
    return { items, next_cursor: at < banks.length ? `${banks[at]!}@${offset}` : null }
  }

  /**
   * How many of them there were. What is no document of the caller's own datasets stays, and what the caller may not see. Where
   * one fails, those before it are gone.
   * @param removed is told after each one how many are gone by then
   */
  async remove (
    identity: MemoryIdentity, ids: readonly string[], dataset: AskedDatasets, signal: AbortSignal,
    removed: (count: number) => void
  ): Promise<number> {
    const engine = this.#engine()
    const banks = readDatasets(identity, dataset).map(({ bank }) => bank)
    for (const bank of banks) await this.#enter(identity.agent, bank, signal)
    let deleted = 0
    for (const id of new Set(ids)) {
      for (const bank of banks) {
        if (await documentSight(engine, { bank, id }, identity, signal) !== 'visible') continue
        const path = bankPath(bank, 'documents', id)
        const reply = await askEngine(engine, { method: 'DELETE', path, signal })
        if (reply.status === 404) continue
        valueOf(reply, path)
        removed(++deleted)
      }
    }
    return deleted
  }

  async #found (identity: MemoryIdentity, asked: AskedDatasets, question: BankQuestion, signal: AbortSignal): Promise<Found> {
    const engine = this.#engine()
    const banks = await Promise.all(readDatasets(identity, asked).map(async ({ bank }) => {
      await this.#enter(identity.agent, bank, signal)
      return await foundIn(engine, bank, question, identity, signal)
    }))
    return { found: banks.flatMap(({ found }) => found), ranOn: banks.flatMap(({ ranOn }) => ranOn) }
  }

  async #page (
    engine: MemoryEngine, bank: string, { offset, limit }: Record<'offset' | 'limit', number>, signal: AbortSignal
  ): Promise<{ readonly items: readonly Row[], readonly total: number }> {
    const path = `${bankPath(bank)}/memories/list`
    const reply = await askEngine(engine, { method: 'GET', path, query: `limit=${limit}&offset=${offset}`, signal })
    if (reply.status === 404) return { items: [], total: 0 }
    const value = valueOf(reply, path)
    const items = rowsIn(value, 'items', path)
    const { total } = value as { readonly total?: unknown }
    return { items, total: typeof total === 'number' ? total : offset + items.length }
  }
}

function byScore (found: readonly FoundNote[]): readonly FoundNote[] {
  return found.toSorted((a, b) => (b.note.score ?? 0) - (a.note.score ?? 0))
}

const SESSION = /^[A-Za-z0-9_-]{1,64}$/

/** What an agent says in one session is one document, which grows. Null where there is no session, or its name is none. */
function sessionDocument ({ agent }: MemoryIdentity, session: string | undefined): string | null {
  return session !== undefined && SESSION.test(session) ? `${agent ?? 'anonymous'}:${session}` : null
}

/** A cursor is `bank@offset`; a bank that is not read any more has no place. */
function placeOf (cursor: string, banks: readonly string[]): { at: number, offset: number } {
  const [, bank = '', digits = ''] = /^(.+)@(\d{1,15})$/s.exec(cursor) ?? []
  const at = banks.indexOf(bank)
  if (at >= 0) return { at, offset: Number(digits) }
  throw svcError('validation.invalid', 'the cursor does not belong to this list: start without one', { param: 'cursor' })
}
