import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { FAILS } from './cancelled-kinds.js'
import { completion, openWithChat, over, type Asked } from './models-support.js'
import { openEngine, type Wire } from './support.js'

/** Words that share no beginning with another one, which the text index would leave out. */
const words = {
  memory: 'qzmvorlath', sliced: 'xjgrumpfel', document: 'wkbrintzol', bank: 'vyhuldrapf', large: 'jfstrombix', replaced: 'zpknurvald', cancelled: 'yxgwandrik',
  undone: 'hqfolbrent', model: 'kvzwimplar', observed: 'tfjozwelkin', quoted: 'bdwexulmor'
} as const

function wordsIn (path: string): string[] {
  const bytes = ['', '-wal'].map(part => `${path}${part}`).filter(file => existsSync(file)).map(file => readFileSync(file).toString('latin1'))
  // a stem has no ending, and the first letter of a term may stand at the term before it
  return Object.values(words).filter(word => bytes.some(each => each.includes(word.slice(1, -1))))
}

/** Resolves once the files of an open engine have none of the words. */
async function gone (t: Test, { call, path }: Wire): Promise<void> {
  while (wordsIn(path).length > 0) await call('GET', '/health')
  t.pass('nothing of it is in the file or its log')
}

const many = (word: string, count: number, more: object = {}): object =>
  ({ items: Array.from({ length: count }, (_, i) => ({ content: `Ship ${i} has the ${word}.`, ...more })) })

t.test('what is deleted, cleared, replaced, cancelled or undone is in no byte of the file or of its log while the engine runs', async t => {
  let n = 0
  const observed: string[] = [words.undone, `observation of ${words.observed}`]
  const wire = openWithChat(t, ({ messages }: Asked) => {
    const [known, ids] = messages.at(-1)!.content.split('NEW FACTS').map(part => [...part.matchAll(/\[([0-9a-f-]{36})\]/g)].map(([, id]) => id))
    if (ids === undefined) return completion(messages.at(-1)!.content.includes(words.quoted) ? `Text ${n++}.` : `The ${words.model}.`)
    if (known!.length > 0) return completion(JSON.stringify({ updates: [{ observation_id: known![0], text: 'Another one.', source_fact_ids: ids }] }))
    return completion(JSON.stringify({ creates: [{ text: `An ${observed.shift()!}.`, source_fact_ids: ids }] }))
  })
  const { call, path } = wire
  await call('POST', 'b/memories', { items: [{ content: `The ${words.memory}.`, entities: [{ text: words.memory }], context: words.memory }, { content: 'It stays.' }] })
  await call('POST', 'b/memories', many(words.sliced, 120, { document_id: 'sliced' }))
  await call('POST', 'b/memories', many(words.document, 1, { document_id: 'd' }))
  await call('POST', 'b/memories', many(words.replaced, 1, { document_id: 'r' }))
  await call('POST', 'n/memories', many(words.bank, 3))
  await call('POST', 'm/memories', many(words.large, 210))
  const store = openStore(path)
  store.exec(FAILS)
  store.close()
  const { body: { operation_id: later } } = await call('POST', 'b/memories', { ...many(words.cancelled, 1, { document_id: 'later' }), async: true })
  await call('POST', 'o/memories', { items: [{ content: 'A fact.' }] })
  const { body: { operation_id: undone } } = await call('POST', 'o/consolidate')
  await over(call, 'o', undone)
  const { body: { operation_id: made } } = await call('POST', 'o/mental-models', { id: 'mm', name: 'Mine', source_query: 'Which fact?' })
  await over(call, 'o', made)
  await call('POST', 'q/memories', many(words.quoted, 1))
  for (let n = 0; n < 2; n++) await over(call, 'q', n === 0 ? (await call('POST', 'q/mental-models', { id: 'mm', name: 'Mine', source_query: 'Which ship?' })).body.operation_id : (await call('POST', 'q/mental-models/mm/refresh')).body.operation_id)
  const { body: { items: [quoted] } } = await call('GET', 'q/memories/list')
  for (const content of ['An observation.', 'One more observation.']) {
    await call('POST', 'p/memories', { items: [{ content }] })
    await over(call, 'p', (await call('POST', 'p/consolidate')).body.operation_id)
  }
  const { body: { items: [changed] } } = await call('GET', 'p/memories/list?type=observation')
  t.equal(changed.text, 'Another one.')
  t.same(wordsIn(path), Object.values(words))

  const [{ id }] = (await call('GET', `b/memories/list?q=${words.memory}`)).body.items
  const answers = [
    await call('DELETE', `b/memories/${id}`), await call('DELETE', 'b/documents/sliced'), await call('DELETE', 'b/documents/d'),
    await call('POST', 'b/memories', { items: [{ content: 'Other words.', document_id: 'r' }] }), await call('DELETE', 'n/memories'),
    await call('DELETE', 'm'), await call('DELETE', `b/operations/${later}`), await call('POST', `o/operations/${undone}/undo`),
    await call('DELETE', 'o/mental-models/mm'), await call('DELETE', `p/memories/${changed.id}`),
    await call('DELETE', `q/memories/${quoted.id}`)
  ]
  t.same(answers.map(({ status }) => status), answers.map(() => 200))
  await gone(t, wire)
  t.equal((await call('GET', 'b/memories/list')).body.total, 2)

  await wire.engine.close()
  t.same(wordsIn(path), [], 'nor after it has closed')
  const alone = join(dirname(path), 'alone.db')
  copyFileSync(path, alone)
  const copy = openEngine(t, { path: () => alone })
  const texts = (await copy.call('GET', 'b/memories/list')).body.items.map(({ text }: { readonly text: string }) => text)
  t.same(texts.toSorted(), ['It stays.', 'Other words.'], 'the file of a closed engine is all of it')
  t.match((await copy.call('POST', 'b/memories/recall', { query: 'stays' })).body.results, [{ text: 'It stays.' }])
})

t.test('while another program reads the database, requests are served and a deleted text is overwritten once it is done', async t => {
  const wire = openEngine(t)
  const { call, path } = wire
  await call('POST', 'b/memories', many(words.memory, 1))
  const reader = openStore(path)
  t.teardown(() => reader.close())
  reader.exec('BEGIN')
  t.match(reader.all('SELECT text FROM memories'), { length: 1 })
  const [{ id }] = (await call('GET', 'b/memories/list')).body.items
  t.equal((await call('DELETE', `b/memories/${id}`)).status, 200)
  await call('POST', 'b/memories', { items: [{ content: 'It is new.' }] })
  t.same(wordsIn(path), [words.memory])
  t.match(reader.all('SELECT text FROM memories'), { length: 1 }, 'a reader keeps what it has begun to read')
  reader.exec('COMMIT')
  await gone(t, wire)
})
