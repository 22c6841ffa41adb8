import { randomUUID } from 'node:crypto'
import type { Store } from './store.js'

export interface NamedEntity { readonly text: string, readonly type?: string | null }

/** The same entity is named with other capitals and blanks. Pure. */
export function entityKey (name: string): string {
  return name.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase()
}

/** Names of a memory, each once, as they were first written. Pure. */
export function entityNames (entities: readonly NamedEntity[]): readonly string[] {
  const names = new Map<string, string>()
  for (const { text } of entities) {
    const key = entityKey(text)
    if (key !== '' && !names.has(key)) names.set(key, text.trim().replace(/\s+/g, ' '))
  }
  return [...names.values()]
}

/** Ties a memory to these entities and to no others; makes those that are new. Called in a transaction. */
export function setEntities (store: Store, bank: number, memory: number, entities: readonly NamedEntity[]): void {
  store.run('DELETE FROM memory_entities WHERE memory = ?', [memory])
  for (const { text, type = null } of entities) {
    const key = entityKey(text)
    if (key === '') continue
    store.run('INSERT INTO entities (id, bank, name, name_key, type) VALUES (?, ?, ?, ?, ?) ON CONFLICT (bank, name_key) DO NOTHING',
      [randomUUID(), bank, text.trim().replace(/\s+/g, ' '), key, type])
    store.run('INSERT OR IGNORE INTO memory_entities (entity, memory) SELECT seq, ? FROM entities WHERE bank = ? AND name_key = ?', [memory, bank, key])
  }
}

/** Numbers of the entities that a memory names. */
export function entitiesOf (store: Store, memory: number): readonly number[] {
  return store.all<{ entity: number }>('SELECT entity FROM memory_entities WHERE memory = ?', [memory]).map(({ entity }) => entity)
}

/** Those of these entities go that no memory names any more. Called in a transaction. */
export function sweepEntities (store: Store, entities: readonly number[]): void {
  for (const entity of entities) store.run('DELETE FROM entities WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity = ?)', [entity, entity])
}
