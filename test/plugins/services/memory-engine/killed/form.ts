import Driver from 'libsql'
import { openSqlFileWith } from 'svc-gateway/plugin'
import type { Test } from 'tap'
import { migrations } from '../../../../../plugins/services/memory-engine/store/migrations/index.js'
import { migrate } from '../../../../../plugins/services/memory-engine/store/migrations/migrate.js'
import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { Store } from '../../../../../plugins/services/memory-engine/store/store.js'
import { databaseIn } from '../support.js'
import type { Series } from './series.js'
import { isSound, keepsWhatItNames } from './sound.js'

/** A database of a release before version 40 of the form, with memories in it. */
export function makeFormer (path: string): void {
  const before = openSqlFileWith(Driver, {
    path, File: Store, durability: 'normal', form: store => migrate(store, migrations.filter(({ version }) => version < 40))
  })
  before.exec(`INSERT INTO banks (bank_id, name, created_at, updated_at) VALUES ('b', 'Bee', 0, 0);
    INSERT INTO documents (bank, document_id, text_length, created_at, updated_at) VALUES (1, 'd', 1, 0, 0);
    INSERT INTO memories (id, bank, document, text, text_hash, fact_type, tags, state, created_at, updated_at) VALUES
      ('m1', 1, 1, 'Alice', x'01', 'world', '[]', 'valid', 0, 0), ('m2', 1, 1, 'Bob', x'02', 'world', '[]', 'invalidated', 0, 0),
      ('o1', 1, NULL, 'One', x'03', 'observation', '["b","a"]', 'valid', 0, 0), ('o2', 1, NULL, 'Two', x'04', 'observation', '["a","b","a"]', 'valid', 0, 0),
      ('o3', 1, NULL, 'Three', x'05', 'observation', '[]', 'invalidated', 0, 0)`)
  const changed = (id: string): object => ({ row: { seq: 0, id, text: 'Before' }, sources: [1, 2] })
  const undos = [['older', [changed('o1')]], ['deleted', [changed('o2'), changed('gone')]], ['kept', [changed('o1')]], ['undone', null]] as const
  for (const [id, rows] of undos) {
    before.run(`INSERT INTO operations (id, bank_id, type, status, created_at, updated_at) VALUES (?, 'b', 'consolidation', 'completed', 0, 0)`, [id])
    before.run('INSERT INTO consolidations (operation, bank, before, undone_at) VALUES (?, 1, ?, ?)',
      [id, JSON.stringify(rows === null ? {} : { facts: [2], created: [], changed: rows }), rows === null ? 0 : null])
  }
  const basis = (...memories: unknown[]): object => ({ text: 'T', based_on: { memories, mental_models: [{ id: 'mm', text: 'Told' }], directives: [{ id: 'd', content: 'Kept' }] } })
  const responses = [basis({ id: 'm1', text: 'Told', context: 'Told' }, 'Told', { text: 'Told' }), { based_on: { world: [{ id: 'm1', text: 'Told' }], opinion: 'Told' } }, { based_on: {} }, { based_on: null }, {}]
  for (const [n, response] of responses.entries()) {
    before.run(`INSERT INTO mental_models (id, bank, name, source_query, max_tokens, reflect_response, created_at) VALUES (?, 1, '', '', 1, ?, 0)`, [`mm${n}`, JSON.stringify(response)])
    before.run('INSERT INTO mental_model_history (model, changed_at, change) VALUES (?, 0, ?)', [n + 1, JSON.stringify({ previous_content: 'Said', previous_reflect_response: response })])
  }
  before.exec(`INSERT INTO mental_models (id, bank, name, source_query, max_tokens, created_at) VALUES ('none', 1, '', '', 1, 0);
    INSERT INTO mental_model_history (model, changed_at, change) VALUES (6, 0, '{"previous_content":null,"previous_reflect_response":null}')`)
  before.close()
}

/** Opens what was made so, and looks for all that it held. */
export function isBroughtToForm (t: Test, folder: string): void {
  const store = openStore(databaseIn(folder))
  isSound(t, store)
  t.equal(store.all('SELECT id FROM memories').length, 5)
  t.same(store.all('SELECT scope, count FROM observation_scopes'), [{ scope: '["a","b"]', count: 2 }], 'counted once')
  const undos = (): string[] => store.all<{ operation: string }>('SELECT operation FROM consolidations ORDER BY seq').map(({ operation }) => operation)
  t.same(undos(), ['kept', 'undone'], 'where an observation is missing, what it said before is not kept, nor what was before that')
  keepsWhatItNames(t, store)
  t.same(store.all('SELECT memory, is_fact FROM consolidation_memories'), [{ memory: 1, is_fact: 1 }, { memory: 2, is_fact: 1 }, { memory: 3, is_fact: 0 }])
  const basis = [{
    text: 'T', based_on: { memories: [{ id: 'm1' }], mental_models: [{ id: 'mm' }], directives: [{ id: 'd', content: 'Kept' }] }
  }, { based_on: { world: [{ id: 'm1' }], opinion: [] } }, { based_on: {} }, { based_on: null }, {}, null]
  const parsed = (rows: ReadonlyArray<{ readonly json: string | null }>): unknown[] =>
    rows.map(({ json }) => json === null ? null : JSON.parse(json) as unknown)
  t.same(parsed(store.all('SELECT reflect_response AS json FROM mental_models ORDER BY seq')), basis, 'what models were made of has no text')
  t.same(parsed(store.all('SELECT change AS json FROM mental_model_history ORDER BY seq')),
    basis.map((previous_reflect_response, n) => ({ previous_content: n === 5 ? null : 'Said', previous_reflect_response })))
  store.run(`UPDATE memories SET state = 'valid' WHERE id = 'o3'`)
  store.run(`UPDATE memories SET tags = '["a"]' WHERE id = 'o1'`)
  store.run(`DELETE FROM memories WHERE id = 'o2'`)
  t.same(store.all('SELECT scope, count FROM observation_scopes ORDER BY scope'), [{ scope: '["a"]', count: 1 }, { scope: '[]', count: 1 }])
  t.same(undos(), ['kept', 'undone'])
  store.run(`DELETE FROM memories WHERE id = 'm1'`)
  t.same([...undos(), ...store.all('SELECT 1 FROM consolidation_memories')], ['undone'])
  store.run('DELETE FROM banks')
  t.same(store.all('SELECT 1 FROM observation_scopes'), [])
  store.close()
}

/** A database that is brought to the form of this release. */
export const form: Series = {
  program: './form-child.js',
  moreThan: 15,
  prepare: (_, folder) => Promise.resolve(makeFormer(databaseIn(folder))),
  survives: isBroughtToForm
}
