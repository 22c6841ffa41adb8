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
