import { textHash, type MemoryRow } from '../store/memory-table.js'
import { MOST_ALIKE, sameTags } from '../store/same-tags.js'
import type { Store } from '../store/store.js'
import { SAID, VALID, type Said } from './made.js'
import type { RetainItem } from './request.js'

/** Of very many with one text the newest are looked at. Which of them share a document is not known before they are read. */
const MOST_PASSED_OVER = 2000

type Wanted = Pick<RetainItem, 'content' | 'tags'>

/** A memory of the bank with this text and these tags. */
export function memoryOf (store: Store, bank: number, { content, tags }: Wanted): MemoryRow | undefined {
  const hash = textHash(content)
  if (!isSaid(store, bank, hash)) return undefined
  for (const { sql, values } of sameTags('m.tags', tags)) {
    const found = store.get<MemoryRow>(`SELECT m.* FROM memories m WHERE m.bank = ? AND m.text_hash = ? AND ${VALID} AND ${sql} ORDER BY m.seq LIMIT 1`,
      [bank, hash, ...values])
    if (found !== undefined) return found
  }
  return undefined
}

type SaidIn = Said & { readonly document_id: string }

/** Such of which each is the only memory of a document, and its text all that the document has. */
export function soleMemories (store: Store, bank: number, { content, tags }: Wanted): readonly SaidIn[] {
  const hash = textHash(content)
  if (!isSaid(store, bank, hash)) return []
  return sameTags('m.tags', tags).flatMap(({ sql, values }) => store.all<SaidIn>(
    `SELECT ${SAID}, d.document_id FROM (SELECT ${SAID}, m.document, m.chunk FROM memories m
       WHERE m.bank = ? AND m.text_hash = ? AND ${VALID} AND ${sql} ORDER BY m.seq DESC LIMIT ${MOST_PASSED_OVER}) m
     JOIN documents d ON d.seq = m.document
     WHERE NOT EXISTS (SELECT 1 FROM memories o WHERE o.document = m.document AND o.seq <> m.seq)
       AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.document = m.document AND c.seq IS NOT m.chunk)
     ORDER BY m.seq DESC LIMIT ${MOST_ALIKE}`, [bank, hash, ...values]))
}

/** Mostly not, and then no order of the tags is looked for. */
function isSaid (store: Store, bank: number, hash: Buffer): boolean {
  return store.get(`SELECT 1 FROM memories m WHERE m.bank = ? AND m.text_hash = ? AND ${VALID} LIMIT 1`, [bank, hash]) !== undefined
}
