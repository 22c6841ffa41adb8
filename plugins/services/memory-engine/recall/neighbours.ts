import type { Condition } from '../memories/tag-filter.js'
import type { Store } from '../store/store.js'
import type { Neighbours } from './fuse.js'

/** What stands beside these memories in their documents, as far as it is valid and holds the condition. */
export function neighboursOf (store: Store, memories: readonly number[], condition: Condition | null): Neighbours {
  const where = condition === null ? '' : `AND ${condition.sql}`
  const rows = store.lists<[found: number, side: number, seq: number]>('f.seq, n.chunk_index - c.chunk_index, m.seq',
    `FROM json_each(?) AS wanted JOIN memories f ON f.seq = wanted.value JOIN chunks c ON c.seq = f.chunk
     JOIN chunks n ON n.document = c.document AND n.chunk_index IN (c.chunk_index - 1, c.chunk_index + 1)
     JOIN memories m ON m.chunk = n.seq WHERE m.state = 'valid' ${where}`, [JSON.stringify(memories), ...condition?.values ?? []])
  const neighbours = new Map<number, [number[], number[]]>()
  for (const [found, side, seq] of rows) {
    // the one that was found stands on the other side of its neighbour
    const sides = neighbours.get(seq) ?? [[], []]
    sides[side < 0 ? 1 : 0].push(found)
    neighbours.set(seq, sides)
  }
  return neighbours
}
