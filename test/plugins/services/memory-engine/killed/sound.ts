import type { Test } from 'tap'
import { migrations } from '../../../../../plugins/services/memory-engine/store/migrations/index.js'
import type { Store } from '../../../../../plugins/services/memory-engine/store/store.js'

export function isSound (t: Test, store: Store): void {
  t.match(store.get('PRAGMA integrity_check'), { integrity_check: 'ok' })
  t.same(store.all('PRAGMA foreign_key_check'), [])
  t.same(store.all('SELECT version FROM schema_migrations ORDER BY version'), migrations.map(({ version }) => ({ version })).toSorted((a, b) => a.version - b.version))
}

/** Every text has its index row, and no row is left over. */
export function isIndexed (t: Test, store: Store): void {
  for (const { seq } of store.all<{ seq: number }>('SELECT seq FROM banks')) {
    const indexed = store.all(`SELECT id FROM text_${seq}_docsize ORDER BY id`)
    t.same(indexed, store.all(`SELECT seq AS id FROM memories WHERE bank = ? AND state = 'valid' ORDER BY seq`, [seq]), 'index rows')
    store.exec(`INSERT INTO text_${seq} (text_${seq}) VALUES ('integrity-check')`)
  }
  const indexes = store.all(`SELECT name FROM sqlite_schema WHERE name GLOB 'text_[0-9]*' AND sql LIKE 'CREATE VIRTUAL%'`)
  t.equal(indexes.length, store.all('SELECT 1 FROM banks').length, 'no index without its bank')
}

/** What undoes consolidations stands beside each memory that it tells of, and no memory gives way to another one any more. */
export function keepsWhatItNames (t: Test, store: Store): void {
  const kept = 'consolidations c, json_each(c.before'
  const isNamed = (isFact: number): string => `(SELECT 1 FROM consolidation_memories n WHERE n.consolidation = c.seq AND n.memory = m.seq AND n.is_fact = ${isFact})`
  t.same(store.all(`SELECT c.operation, m.seq FROM ${kept}, '$.facts') f LEFT JOIN memories m ON m.seq = f.value WHERE NOT EXISTS ${isNamed(1)}
    UNION SELECT c.operation, m.seq FROM ${kept}, '$.changed') k, json_each(k.value, '$.sources') s LEFT JOIN memories m ON m.seq = s.value WHERE NOT EXISTS ${isNamed(1)}
    UNION SELECT c.operation, m.seq FROM ${kept}, '$.changed') k JOIN memories m ON m.id = json_extract(k.value, '$.row.id') WHERE NOT EXISTS ${isNamed(0)}`), [], 'consolidations that tell of a memory without standing beside it')
  t.same(store.all('SELECT n.* FROM consolidation_memories n JOIN consolidations c ON c.seq = n.consolidation WHERE c.undone_at IS NOT NULL'), [], 'one that is undone tells of none')
  t.same(store.all('SELECT * FROM replacing'), [])
}
