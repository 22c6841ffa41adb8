import t from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { openEngine, openInThread, type Wire } from './support.js'

interface Told {
  readonly id: string
  readonly text: string
  readonly context: string
  readonly tags: readonly string[]
  readonly document_id: string
  readonly entities: readonly string[]
}

const items = ['a', 'b', 'c'].map(name => ({
  content: `Otters of river ${name} swim.`, context: 'a walk', document_id: name, tags: ['seen'], entities: [{ text: 'River' }]
}))

async function recalled (call: Wire['call'], bank = 'b', query = 'otters'): Promise<readonly Told[]> {
  const { status, body } = await call<{ readonly results: readonly Told[] }>('POST', `${bank}/memories/recall`, { query })
  t.equal(status, 200)
  return body.results.toSorted((a, b) => a.text.localeCompare(b.text))
}

t.test('a memory that was recalled is told as it is after any change of it, at the next recall', async t => {
  const { call } = openEngine(t)
  await call('POST', 'b/memories', { items })
  const [a, b, c] = await recalled(call)
  t.match([a, b, c], items.map(({ document_id, content }) => ({ document_id, text: content, context: 'a walk', tags: ['seen'], entities: ['River'] })))
  t.same(await recalled(call), [a, b, c], 'a second time')

  await call('PATCH', `b/memories/${a!.id}`, { text: 'Otters of lake a dive.' })
  t.match(await recalled(call), [{ id: a!.id, text: 'Otters of lake a dive.' }, { id: b!.id }, { id: c!.id }])
  await call('PATCH', `b/memories/${a!.id}`, { context: 'a swim' })
  t.match((await recalled(call))[0], { context: 'a swim', tags: ['seen'] })
  await call('PATCH', 'b/documents/b', { tags: ['heard'] })
  t.match((await recalled(call))[1], { id: b!.id, tags: ['heard'] })
  await call('PATCH', `b/memories/${b!.id}`, { state: 'invalidated' })
  t.same((await recalled(call)).map(({ id }) => id), [a!.id, c!.id])
  await call('PATCH', `b/memories/${b!.id}`, { state: 'valid' })
  t.match((await recalled(call))[1], { id: b!.id, tags: ['heard'] })
  await call('POST', 'b/memories', { items: [{ ...items[2], context: 'a dream' }] })
  t.match((await recalled(call))[2], { context: 'a dream' }, 'a document that is written anew')
  await call('DELETE', `b/memories/${a!.id}`)
  await call('DELETE', 'b/documents/b')
  t.match(await recalled(call), [{ document_id: 'c' }], 'what was deleted, and deleted with its document')
  await call('DELETE', 'b')
  await call('POST', 'b/memories', { items: [items[0]] })
  t.match(await recalled(call), [{ document_id: 'a', text: items[0]!.content }], 'with its bank')
})

t.test('a memory that another program deletes from the database is not told', async t => {
  const { call, path } = openEngine(t)
  await call('POST', 'b/memories', { items })
  t.equal((await recalled(call)).length, 3)
  const other = openStore(path)
  other.run(`DELETE FROM memories WHERE text LIKE '%river b%'`)
  other.close()
  t.same((await recalled(call)).map(({ document_id: document }) => document), ['a', 'c'])
})

t.test('another question that finds what one before has found reads none of it again, also after a retain', async t => {
  const { call, lists } = openInThread(t)
  await call('POST', 'b/memories', { items })
  const asked = async (query: string): Promise<number> => {
    const before = lists()
    t.equal((await recalled(call, 'b', query)).length, 3)
    return lists() - before
  }
  const first = await asked('where are otters')
  const second = await asked('who swims in rivers')
  t.equal(second, first - 3, 'neither what orders them nor their rows, nor what stands beside them')
  await call('POST', 'b/memories', { items: [{ content: 'Geese fly south.' }] })
  t.equal(await asked('do otters swim'), second + 1, 'something new may stand beside them')
  await call('PATCH', 'b/documents/c', { tags: ['heard'] })
  t.equal(await asked('are there otters'), first, 'all of it after a change')
})

t.test('scores have six decimals, and the best answers come first', async t => {
  const { call } = openEngine(t)
  await call('POST', 'b/memories', { items })
  const { body } = await call('POST', 'b/memories/recall', { query: 'otters of river b' })
  interface Scores { readonly final: number, readonly keyword: number, readonly semantic: null }
  const scores = (body.results as readonly { readonly scores: Scores }[]).map(each => each.scores)
  t.equal(scores.length, 3)
  for (const { final, keyword, semantic } of scores) {
    t.equal(semantic, null)
    for (const score of [final, keyword]) t.match(String(score), /^(1|0(\.\d{1,6})?)$/)
  }
  t.same(scores.map(({ final }) => final), scores.map(({ final }) => final).toSorted((x, y) => y - x))
})

t.test('what comes to stand beside a memory after it was found is found beside it', async t => {
  const { call } = openInThread(t)
  const add = (content: string): Promise<unknown> => call('POST', 'b/memories', { items: [{ content, document_id: 'walk', update_mode: 'append' }] })
  await add('Otters swim.')
  t.same((await recalled(call)).map(({ text }) => text), ['Otters swim.'])
  await add('The weather was fine.')
  t.same((await recalled(call)).map(({ text }) => text), ['Otters swim.', 'The weather was fine.'])
  const [, beside] = await recalled(call)
  await call('DELETE', `b/memories/${beside!.id}`)
  t.same((await recalled(call)).map(({ text }) => text), ['Otters swim.'])
})

t.test('a row that the store keeps is read again after a statement, one that was taken back, and what another program wrote', async t => {
  const { call, path } = openEngine(t)
  await call('PUT', 'b', { name: 'first' })
  const store = openStore(path)
  t.teardown(() => store.close())
  const name = (): string | undefined => store.kept<{ name: string }>('SELECT name FROM banks WHERE bank_id = ?', ['b'])?.name
  const rename = (to: string): void => void store.run('UPDATE banks SET name = ? WHERE bank_id = ?', [to, 'b'])
  t.equal(name(), 'first')
  rename('second')
  t.equal(name(), 'second')
  t.throws(() => store.transaction(() => {
    rename('third')
    t.equal(name(), 'third')
    throw new Error('taken back')
  }))
  t.equal(name(), 'second')
  await call('PATCH', 'b', { name: 'of another program' })
  store.lookForOthers()
  t.equal(name(), 'of another program')
  store.exec('UPDATE banks SET name = NULL WHERE 0; UPDATE banks SET name = \'by several statements\'')
  t.equal(name(), 'by several statements')
  store.run('DELETE FROM banks')
  t.equal(name(), undefined)
})

t.test('a bank and its other names are as another program left them, at the next request', async t => {
  const { call, path } = openEngine(t)
  await call('POST', 'b/memories', { items })
  await call('POST', 'b/aliases', { alias: 'c' })
  t.equal((await recalled(call, 'c')).length, 3)
  const other = openStore(path)
  t.teardown(() => other.close())
  other.run('DELETE FROM bank_aliases')
  t.match(await call('POST', 'c/memories/recall', { query: 'otters' }), { status: 404 })
  other.run('DELETE FROM banks')
  t.match(await call('POST', 'b/memories/recall', { query: 'otters' }), { status: 404 })
})
