import { askEngine, bankPath, rowsIn, valueOf } from '../engine-call.js'
import type { MemoryEngine } from '../engine.js'
import type { MemoryIdentity } from '../identity.js'
import { foundOf, type FoundNote } from './note.js'
import { alsoHolding, engineTags, isAskedFor, type AskedTags } from './tags.js'
import { isVisible, visibleTags } from './visibility.js'

/** Header of the embedded engine's answer: `text+vectors+rerank`. */
export const RAN_ON = 'x-svc-recall'

export interface BankQuestion {
  readonly query: string
  readonly max_tokens: number
  readonly types: readonly string[]
  /** Undefined for memories whatever their tags. */
  readonly tags: AskedTags | undefined
}

export interface Found {
  readonly found: readonly FoundNote[]
  /** As the bank says, or the engine's name where it does not; none of a bank that is not there. */
  readonly ranOn: readonly string[]
}

/**
 * What of a bank is found that an agent may see. An answer has room for so many tokens: where some of it went to what the agent
 * may not see, the engine is asked again, without that.
 */
export async function foundIn (
  engine: MemoryEngine, bank: string, { tags, ...question }: BankQuestion, identity: MemoryIdentity, signal: AbortSignal
): Promise<Found> {
  const path = `${bankPath(bank)}/memories/recall`
  const asked = tags === undefined ? {} : await engineTags(engine, bank, tags, signal)
  const ask = async (visible: readonly object[]): Promise<Found> => {
    const body = { ...question, ...visible.length === 0 ? asked : alsoHolding(asked, visible) }
    const reply = await askEngine(engine, { method: 'POST', path, body, signal })
    // a bank is made by its first memory
    if (reply.status === 404) return { found: [], ranOn: [] }
    const found = rowsIn(valueOf(reply, path), 'results', path).map(row => foundOf(row, bank))
    return { found, ranOn: String(reply.headers[RAN_ON] ?? engine.name).split('+') }
  }
  const first = await ask([])
  const { found, ranOn } = first.found.every(({ note }) => isVisible(note, identity)) ? first : await ask(visibleTags(identity))
  return { found: found.filter(({ note }) => isVisible(note, identity) && (tags === undefined || isAskedFor(note, tags))), ranOn }
}
