import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { killedNow, MANY, openInThread, openLarge, whenever } from './support.js'

/** Every third memory of it is an experience. */
async function large (t: Test): ReturnType<typeof openLarge> {
  const bank = await openLarge(t, i => ({ entities: [{ text: `Captain ${i}` }], ...i < 10 && { document_id: `log ${i}` } }))
  bank.seen.run(`UPDATE memories SET fact_type = 'experience' WHERE bank = 1 AND seq % 3 = 0`)
  return bank
}

/** All of it is one document. */
function largeDocument (t: Test): ReturnType<typeof openLarge> {
  return openLarge(t, i => ({ document_id: 'log', entities: [{ text: `Captain ${i}` }] }))
}

const countOf = (store: Store, table: string): number => store.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)!.count
const left = (store: Store): number => countOf(store, 'memories') - 1

/** Of each memory all is there, and of those that went nothing. */
function isWhole (t: Test, folder: string): void {
  // a connection that has read the text index before checks what it remembers of it
  const store = openStore(join(folder, 'memory', 'memory.db'))
  const memories = countOf(store, 'memories')
  for (const table of ['text_1_docsize', 'memory_tags', 'memory_entities', 'entities']) {
    const more = { text_1_docsize: -1, memory_tags: -1 }[table] ?? 0
    t.equal(countOf(store, table), memories + more, table)
  }
  t.match(store.get('PRAGMA integrity_check'), { integrity_check: 'ok' })
  t.same(store.all('PRAGMA foreign_key_check'), [])
  store.close()
}

t.test('a large bank that is cleared answers when all is gone, and other calls and memories that are new have their turn meanwhile', async t => {
  const { call, folder, seen } = await large(t)
  await call('POST', 'b/directives', { name: 'Be short', content: 'Answer in one sentence.' })
  const cleared = call('DELETE', 'b/memories')
  await whenever(() => left(seen) < MANY)
  const retained = call('POST', 'b/memories', { items: [{ content: 'Ship of today.', document_id: 'log 1', entities: [{ text: 'Captain 1' }], tags: ['ships'] }] })
  t.match((await call('POST', 'other/memories/recall', { query: 'Where does Alice live?' })).body.results, [{ text: 'Alice lives in Rome.' }])
  t.ok(left(seen) > 0, `${left(seen)} are left when another bank has answered`)
  t.match((await call('GET', 'b/memories/list?limit=1')).body, { items: [{}] }, 'the others are still told')
  t.match((await cleared).body, { success: true, deleted_count: MANY })
  t.equal((await retained).status, 200)
  t.match((await call('GET', 'b/memories/list')).body, { total: 1, items: [{ text: 'Ship of today.', document_id: 'log 1' }] })
  t.match((await call('GET', 'b/documents')).body, { total: 1 })
  t.match((await call('GET', 'b/directives')).body, { items: [{ name: 'Be short' }] }, 'what is no memory stays')
  isWhole(t, folder)
  t.equal(countOf(seen, 'clearings'), 0)
})

t.test('of memories that all say the same, each is looked at once', async t => {
  const folder = t.testdir()
  const { call } = openInThread(t, folder)
  const items = Array.from({ length: 250 }, (_, i) => ({ content: i % 2 === 0 ? 'The same.' : `Note ${i}.`, document_id: `d${i}`, entities: [{ text: `Captain ${i}` }] }))
  await call('POST', 'b/memories', { items })
  await call('POST', 'b/memories', { items: Array.from({ length: 130 }, (_, i) => ({ content: 'The same too.', document_id: `e${i}`, entities: [{ text: `Mate ${i}` }] })) })
  await call('POST', 'other/memories', { items: [{ content: 'The same.', entities: [{ text: 'Captain' }] }] })
  t.match((await call('DELETE', 'b/memories')).body, { success: true, deleted_count: 380 })
  t.match((await call('GET', 'b/memories/list')).body, { total: 0 })
  t.match((await call('GET', 'other/memories/list')).body, { total: 1 })
  isWhole(t, folder)
})

t.test('memories of one type go in the same way', async t => {
  const { call, folder, seen } = await large(t)
  const cleared = call('DELETE', 'b/memories?type=experience')
  await whenever(() => left(seen) < MANY)
  await call('GET', 'other/stats')
  t.ok(left(seen) > MANY * 2 / 3, 'others are served')
  t.match((await cleared).body, { deleted_count: MANY / 3 })
  t.equal(left(seen), MANY * 2 / 3)
  t.equal(countOf(seen, `memories WHERE fact_type = 'experience'`), 0)
  isWhole(t, folder)
})

t.test('of an engine that is killed while a large bank is cleared, the next start takes away the others, and none that are new', async t => {
  const { call, folder, seen } = await large(t)
  const cleared = call('DELETE', 'b/memories')
  await whenever(() => left(seen) < MANY)
  const killed = killedNow(folder)
  await cleared
  const again = openStore(join(killed, 'memory', 'memory.db'))
  t.teardown(() => again.close())
  t.ok(left(again) > 0 && left(again) < MANY, `${left(again)} of ${MANY} are left`)
  isWhole(t, killed)
  const { call: callAgain } = openInThread(t, killed)
  await callAgain('POST', 'b/memories', { items: [{ content: 'Ship of today.', tags: ['ships'], entities: [{ text: 'Captain 1' }] }] })
  t.match((await callAgain('GET', 'b/memories/list')).body, { total: 1, items: [{ text: 'Ship of today.' }] }, 'a retain waits until they are gone')
  isWhole(t, killed)
})

t.test('a bank that is deleted while it is cleared is gone', async t => {
  const { call, seen } = await large(t)
  const cleared = call('DELETE', 'b/memories')
  await whenever(() => left(seen) < MANY)
  t.equal((await call('DELETE', 'b')).status, 200)
  t.equal((await cleared).status, 200)
  await whenever(() => countOf(seen, 'banks') === 1)
  t.equal(left(seen), 0)
  t.equal(countOf(seen, 'clearings'), 0)
})

t.test('a large document that is deleted goes slice by slice: others are answered meanwhile, and a retain of its id comes after it', async t => {
  const { call, folder, seen } = await largeDocument(t)
  await call('POST', 'b/memories', { items: [{ content: 'Bob sails.', document_id: 'crew', tags: ['ships'], entities: [{ text: 'Bob' }] }] })
  const deleted = call('DELETE', 'b/documents/log')
  await whenever(() => left(seen) <= MANY)
  const retained = call('POST', 'b/memories', { items: [{ content: 'Ship of today.', document_id: 'log', entities: [{ text: 'Captain 1' }], tags: ['ships'] }] })
  t.match((await call('POST', 'other/memories/recall', { query: 'Where does Alice live?' })).body.results, [{ text: 'Alice lives in Rome.' }])
  t.ok(left(seen) > MANY / 2, `${left(seen)} are left when another bank has answered`)
  t.match((await deleted).body, { success: true, document_id: 'log', memory_units_deleted: MANY })
  t.equal((await retained).status, 200)
  t.match((await call('GET', 'b/documents/log')).body, { original_text: 'Ship of today.', memory_unit_count: 1 })
  t.match((await call('GET', 'b/memories/list')).body, { total: 2 }, 'what is of another document stays')
  isWhole(t, folder)
  t.equal(countOf(seen, 'clearings'), 0)
})

t.test('of an engine that is killed while a large document is deleted, the next start takes away the rest of it', async t => {
  const { call, folder, seen } = await largeDocument(t)
  const deleted = call('DELETE', 'b/documents/log')
  await whenever(() => left(seen) < MANY)
  const killed = killedNow(folder)
  await deleted
  const again = openStore(join(killed, 'memory', 'memory.db'))
  t.teardown(() => again.close())
  t.ok(left(again) > 0 && left(again) < MANY, `${left(again)} of ${MANY} are left`)
  isWhole(t, killed)
  openInThread(t, killed)
  await whenever(() => countOf(again, 'clearings') === 0)
  t.equal(left(again), 0)
  t.equal(countOf(again, 'chunks'), 1)
  t.same(again.all('SELECT bank FROM documents'), [{ bank: 2 }])
  isWhole(t, killed)
})

t.test('of two requests that delete a large document at once, one deletes it', async t => {
  const { call, seen } = await largeDocument(t)
  const both = await Promise.all([call('DELETE', 'b/documents/log'), call('DELETE', 'b/documents/log')])
  t.same(both.map(({ status, body }) => [status, body.memory_units_deleted]), [[200, MANY], [200, 0]])
  t.equal((await call('DELETE', 'b/documents/log')).status, 404)
  t.equal(left(seen), 0)
  t.equal(countOf(seen, 'clearings'), 0)
})
