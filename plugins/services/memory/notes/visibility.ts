import { askEngine, bankPath, rowsIn, valueOf, type Row } from '../engine-call.js'
import type { MemoryEngine } from '../engine.js'
import type { MemoryIdentity } from '../identity.js'
import { isPrivateBank } from '../namespaces.js'
import { AGENT_TAG, noteOf, PRIVATE_TAG, type Note } from './note.js'

/** What is stamped as private is its writer's, in whichever bank it lies. */
export function isVisible ({ tags, source }: Pick<Note, 'tags' | 'source'>, { agent, private: isPrivate }: MemoryIdentity): boolean {
  return !tags.includes(PRIVATE_TAG) || (isPrivate && source === agent)
}

/** Whether an agent may see a row of the engine that is about one memory or document. Pure. */
export function isVisibleRow (row: unknown, identity: MemoryIdentity): boolean {
  return isVisible(noteOf((row ?? {}) as Readonly<Record<string, unknown>>, ''), identity)
}

/**
 * What of a bank is visible, for an engine that filters by tags itself: as `tag_groups` of a question; nothing where all of it
 * is, since an engine looks at each memory for such a filter.
 */
export async function visibleOnly (
  engine: MemoryEngine, bank: string, identity: MemoryIdentity, signal: AbortSignal
): Promise<{ readonly tag_groups?: readonly object[] }> {
  // it is that of the agent, or it would not have come here
  if (identity.private && isPrivateBank(bank)) return {}
  const path = bankPath(bank, 'memories', 'list')
  const query = new URLSearchParams({ tags: PRIVATE_TAG, tags_match: 'any_strict', limit: '1' }).toString()
  const reply = await askEngine(engine, { method: 'GET', path, query, signal })
  if (reply.status === 404 || rowsIn(valueOf(reply, path), 'items', path).length === 0) return {}
  return { tag_groups: visibleTags(identity) }
}

/** The same as `tag_groups`. Pure. */
export function visibleTags ({ agent, private: isPrivate }: MemoryIdentity): readonly object[] {
  const open = { not: { tags: [PRIVATE_TAG], match: 'any_strict' } }
  return isPrivate && agent !== null ? [{ or: [open, { tags: [`${AGENT_TAG}${agent}`], match: 'any_strict' }] }] : [open]
}

interface Place { readonly bank: string, readonly id: string }

/** Of a document's memories, so many are looked at at a time. */
const PAGE = 100
/** A list has those of one state: an invalidated memory can be restored, and is lost with its document all the same. */
const states = ['valid', 'invalidated'] as const

/**
 * How a document looks to an agent: the engine itself hides none in a bank that the agent may enter. It is hidden with any of its
 * memories, each of which has the tags of what it was kept with. The document is asked for only where nothing is remembered of
 * it: with it comes its text, of any length.
 */
export async function documentSight (
  engine: MemoryEngine, place: Place, identity: MemoryIdentity, signal: AbortSignal
): Promise<'visible' | 'hidden' | 'absent'> {
  for (const state of states) {
    for await (const row of memoriesOf(engine, place, { state, tags: PRIVATE_TAG, tags_match: 'any_strict', limit: String(PAGE) }, signal)) {
      if (!isVisibleRow(row, identity)) return 'hidden'
    }
  }
  for (const state of states) {
    for await (const _ of memoriesOf(engine, place, { state, limit: '1' }, signal)) return 'visible'
  }
  const path = bankPath(place.bank, 'documents', place.id)
  const reply = await askEngine(engine, { method: 'GET', path, signal })
  if (reply.status === 404) return 'absent'
  return isVisibleRow(valueOf(reply, path), identity) ? 'visible' : 'hidden'
}

/** Page by page, as far as they are read. */
async function* memoriesOf (
  engine: MemoryEngine, { bank, id }: Place, asked: Readonly<Record<string, string>>, signal: AbortSignal
): AsyncGenerator<Row, void, undefined> {
  const path = bankPath(bank, 'memories', 'list')
  for (let offset = 0, total = 1; offset < total;) {
    const query = new URLSearchParams({ ...asked, document_id: id, offset: String(offset) }).toString()
    const reply = await askEngine(engine, { method: 'GET', path, query, signal })
    if (reply.status === 404) return
    const value = valueOf(reply, path)
    const rows = rowsIn(value, 'items', path)
    yield* rows
    if (rows.length === 0) return
    offset += rows.length
    total = Number((value as { readonly total?: unknown }).total ?? Infinity)
  }
}
