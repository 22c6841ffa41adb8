import type { ShownMemory } from '../memories/view.js'
import type { Store } from '../store/store.js'

const COLUMNS = `m.seq, m.id, m.chunk, m.text, m.context, m.fact_type, m.entities, m.tags, m.metadata, m.occurred_start, m.occurred_end,
  m.mentioned_at, m.updated_at, d.document_id, c.chunk_index`
const FROM = `FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
  LEFT JOIN documents d ON d.seq = m.document LEFT JOIN chunks c ON c.seq = m.chunk WHERE m.state = 'valid'`

/** What answers say of a memory that was found. */
export type RecalledRow = Pick<ShownMemory,
  'seq' | 'id' | 'chunk' | 'text' | 'context' | 'fact_type' | 'entities' | 'tags' | 'metadata' | 'occurred_start' | 'occurred_end' |
  'mentioned_at' | 'updated_at' | 'document_id' | 'chunk_index'> & {
    /** Null before the first answer. */
    told: Told | null
  }

/** What answers of a bank of that name have said of a memory, as one piece, which is copied. */
export interface Told {
  readonly bankId: string
  /** A comma, the memory, and what ends it. */
  readonly bytes: Buffer
  /** Bytes of the comma and the memory. */
  readonly shown: number
  /** Which of the ends it is. */
  readonly end: number
}

/** In the order of `COLUMNS`. */
type Values = [
  number, string, number | null, string, string | null, RecalledRow['fact_type'], string, string, string, number | null, number | null,
  number | null, number, string | null, number | null
]

/** Those of these memories that are valid, by their `seq`. */
export function recalledRows (store: Store, memories: readonly number[]): Map<number, RecalledRow> {
  return new Map(store.lists<Values>(COLUMNS, FROM, [JSON.stringify(memories)]).map(values => [values[0], rowOf(values)]))
}

function rowOf ([
  seq, id, chunk, text, context, fact_type, entities, tags, metadata,
  occurred_start, occurred_end, mentioned_at, updated_at, document_id, chunk_index
]: Values): RecalledRow {
  return {
    seq, id, chunk, text, context, fact_type, entities, tags, metadata,
    occurred_start, occurred_end, mentioned_at, updated_at, document_id, chunk_index, told: null
  }
}
