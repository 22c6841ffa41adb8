import { askEngine, bankPath, valueOf } from '../engine-call.js'
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

/** How a document looks to an agent: the engine itself hides none in a bank that the agent may enter. */
export async function documentSight (
  engine: MemoryEngine, { bank, id }: Readonly<Record<'bank' | 'id', string>>, identity: MemoryIdentity, signal: AbortSignal
): Promise<'visible' | 'hidden' | 'absent'> {
  const path = bankPath(bank, 'documents', id)
  const reply = await askEngine(engine, { method: 'GET', path, signal })
  if (reply.status === 404) return 'absent'
  return isVisibleRow(valueOf(reply, path), identity) ? 'visible' : 'hidden'
}
