import type { Note } from './note.js'

/** ISO 8601 with a date at least; both ends exclusive. */
export interface TimeWindow {
  readonly before?: string | undefined
  readonly after?: string | undefined
}

const CHARACTERS_PER_TOKEN = 4

/** What several banks found, as one list: observations and what is shared first, then by score. Pure. */
export function ranked (notes: readonly Note[]): readonly Note[] {
  const isFirst = ({ type, dataset }: Note): number => type === 'observation' || dataset === 'shared' ? 1 : 0
  return notes.toSorted((a, b) => isFirst(b) - isFirst(a) || (b.score ?? 0) - (a.score ?? 0))
}

/** Pure. A memory without a time is in no window. */
export function inWindow (notes: readonly Note[], { before, after }: TimeWindow): readonly Note[] {
  const [from, to] = [after, before].map(time => time === undefined ? null : Date.parse(time))
  if (from == null && to == null) return notes
  return notes.filter(({ timestamp }) => {
    const at = Date.parse(timestamp)
    return !Number.isNaN(at) && (from == null || at > from) && (to == null || at < to)
  })
}

/** As many of the first as fit; a long one is passed over for shorter ones behind it. Pure. */
export function budgeted (notes: readonly Note[], maxTokens: number): readonly Note[] {
  let left = maxTokens
  return notes.filter(({ text }) => {
    const tokens = Math.ceil(text.length / CHARACTERS_PER_TOKEN)
    if (tokens > left) return false
    left -= tokens
    return true
  })
}
