import { askEngine, bankPath, rowsIn, valueOf } from '../engine-call.js'
import type { MemoryEngine } from '../engine.js'
import type { MemoryIdentity } from '../identity.js'
import { noteOf, PRIVATE_TAG, type Note } from './note.js'

/** What is stamped as private is its writer's, in whichever bank it lies. */
export function isVisible ({ tags, source }: Pick<Note, 'tags' | 'source'>, { agent, private: isPrivate }: MemoryIdentity): boolean {
  return !tags.includes(PRIVATE_TAG) || (isPrivate && source === agent)
}

/** Whether an agent may see a row of the engine that is about one memory or document. Pure. */
export function isVisibleRow (row: unknown, identity: MemoryIdentity): boolean {
  return isVisible(noteOf((row ?? {}) as Readonly<Record<string, unknown>>, ''), identity)
}

/** Of a document, so many of its memories are looked at: each has the tags of what it was kept with. */
const LOOKED_AT = 100

/**
 * How a document looks to an agent: the engine itself hides none in a bank that the agent may enter. The document is asked for
 * only where nothing is remembered of it: with it comes its text, of any length.
 */
export async function documentSight (
  engine: MemoryEngine, { bank, id }: Readonly<Record<'bank' | 'id', string>>, identity: MemoryIdentity, signal: AbortSignal
): Promise<'visible' | 'hidden' | 'absent'> {
  const listed = bankPath(bank, 'memories', 'list')
  const query = new URLSearchParams({ document_id: id, limit: String(LOOKED_AT) }).toString()
  const memories = await askEngine(engine, { method: 'GET', path: listed, query, signal })
  const rows = memories.status === 404 ? [] : rowsIn(valueOf(memories, listed), 'items', listed)
  if (rows.length > 0) return rows.every(row => isVisibleRow(row, identity)) ? 'visible' : 'hidden'
  const path = bankPath(bank, 'documents', id)
  const reply = await askEngine(engine, { method: 'GET', path, signal })
  if (reply.status === 404) return 'absent'
  return isVisibleRow(valueOf(reply, path), identity) ? 'visible' : 'hidden'
}
