import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { killedNow, MANY, openInThread, openLarge, whenever } from './support.js'

const left = (store: Store): number =>
  store.get<{ count: number }>(`SELECT count(*) AS count FROM memories WHERE text LIKE 'Ship %'`)!.count

/** Waits until no row of it is left. */
async function gone (t: Test, store: Store): Promise<void> {
  await whenever(() => store.get(`SELECT 1 FROM banks WHERE bank_id LIKE '/deleted/%'`) === undefined)
  for (const table of ['documents', 'chunks', 'memories', 'memory_tags', 'text_2_docsize']) {
    t.match(store.get(`SELECT count(*) AS count FROM ${table}`), { count: table === 'memory_tags' ? 0 : 1 }, table)
  }
  t.same(store.all(`SELECT name FROM sqlite_schema WHERE name LIKE 'text_1%'`), [], 'nor its index')
  t.match(store.get('PRAGMA integrity_check'), { integrity_check: 'ok' })
  t.same(store.all('PRAGMA foreign_key_check'), [])
}

t.test('a large bank that is deleted is gone at once, and other calls are answered while its rows go', async t => {
  const { call, seen } = await openLarge(t)
  await call('POST', 'b/aliases', { alias: 'fleet' })
  t.match((await call('DELETE', 'b')).body, { success: true, deleted_count: MANY })
  t.equal((await call('GET', 'b/stats')).status, 404)
  t.match((await call('GET', '/v1/default/banks')).body, { total: 1, banks: [{ bank_id: 'other' }] })
  t.match((await call('POST', 'other/memories/recall', { query: 'Where does Alice live?' })).body.results, [{ text: 'Alice lives in Rome.' }])
  t.ok(left(seen) > 0, `${left(seen)} rows are left when another bank has answered`)
  t.equal((await call('GET', 'fleet/stats')).status, 404, 'its other names lead nowhere')
  t.match((await call('POST', 'b/memories/recall', { query: 'ship' })).status, 404)
  t.match((await call('DELETE', 'b')).body, { deleted_count: 0 }, 'a repeat finds none')
  await gone(t, seen)
  await call('POST', 'b/memories', { items: [{ content: 'Bob is new.' }] })
  t.match((await call('GET', 'b/memories/list')).body, { total: 1, items: [{ text: 'Bob is new.' }] })
})

t.test('of an engine that is killed while a large bank is deleted, the next start takes away what is left', async t => {
  const { call, folder, seen } = await openLarge(t)
  await call('DELETE', 'b')
  await whenever(() => left(seen) < MANY)
  const killed = killedNow(folder)
  const again = openStore(join(killed, 'memory', 'memory.db'))
  t.teardown(() => again.close())
  t.ok(left(again) > 0 && left(again) < MANY, `${left(again)} of ${MANY} are left`)
  const { call: callAgain } = openInThread(t, killed)
  t.equal((await callAgain('GET', 'b/stats')).status, 404)
  t.equal((await callAgain('POST', 'other/memories/recall', { query: 'Alice' })).body.results.length, 1)
  await gone(t, again)
})
