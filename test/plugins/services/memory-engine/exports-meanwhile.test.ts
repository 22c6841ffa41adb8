import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { readArchive } from '../../../../plugins/services/memory-engine/transfer/read-archive.js'
import { completion, over, type Asked } from './models-support.js'
import { databaseIn, noModels, openInThread, whenever, type Wire } from './support.js'

/** So many are read before and after other work has its turn. */
const DOCUMENTS = 600
const TEXT = 'Alice works at Acme.'

interface Bank extends Pick<Wire, 'call'> {
  /** Exports `b`; resolves when a part of its documents is read. */
  readonly exporting: () => Promise<string>
  readonly statusOf: (operation: string) => Promise<string>
  /** What the archive of a completed export says. */
  readonly archived: (operation: string) => ReturnType<typeof readArchive>
  /** Has the model answer what it was asked. */
  readonly answer: (of: (asked: Asked) => object) => Promise<void>
}

/** A bank `b` of many documents. The first one says `TEXT` and is `first`; with `extracts` the model is asked for its facts. */
async function openBank (t: Test, extracts: boolean): Promise<Bank> {
  const waiting: Array<{ readonly question: Asked, readonly resolve: (answer: ErrandAnswer) => void }> = []
  const abilities = { ...noModels, chat: { model: 'm', why: null }, extracts }
  const folder = t.testdir()
  const { engine, call } = openInThread(t, folder, {
    abilities,
    run: errand => new Promise(resolve => {
      waiting.push({ question: JSON.parse(Buffer.from(errand.body).toString()) as Asked, resolve })
    })
  })
  await call('PUT', 'b', {})
  await call('PATCH', 'b/config', { updates: { enable_auto_consolidation: false } })
  await call('POST', 'b/memories', { items: [{ content: TEXT, document_id: 'first' }] })
  const asked = (): Promise<void> => whenever(() => waiting.length > 0)
  if (extracts) await asked()
  abilities.extracts = false
  const items = Array.from({ length: DOCUMENTS }, (_, i) => ({ content: `Ship ${i} sails.`, document_id: `d${i}` }))
  await call('POST', 'b/memories', { items })
  const store = openStore(databaseIn(folder))
  store.run(`UPDATE memories SET consolidated_at = 0 WHERE text LIKE 'Ship %'`)
  store.close()
  const operation = async (id: string): Promise<{ status: string, progress: { processed: number } | null }> => (await call('GET', `b/operations/${id}`)).body
  return {
    call,
    exporting: async () => {
      const { body: { operation_id: id } } = await call('POST', 'b/transfer/export')
      while (((await operation(id)).progress?.processed ?? 0) === 0) { /* it begins */ }
      return id as string
    },
    statusOf: async id => (await operation(id)).status,
    archived: async id => {
      const { result_metadata: { download_url: path } } = await over(call, 'b', id)
      const { body } = await engine.request({ method: 'GET', path, query: '', headers: {}, body: null, signal: new AbortController().signal })
      return await readArchive(await buffer(body as AsyncIterable<Buffer>))
    },
    answer: async of => {
      await asked()
      const { question, resolve } = waiting.shift()!
      resolve(completion(JSON.stringify(of(question))))
    }
  }
}

const facts = (...texts: string[]) => (): object => ({ facts: texts.map(text => ({ text })) })
const idsIn = (asked: Asked, heading: string): string[] =>
  [...asked.messages.at(-1)!.content.split(heading)[1]!.split('\n\n')[0]!.matchAll(/\[([0-9a-f-]{36})\]/g)].map(([, id]) => id!)
const textsIn = ({ documents }: Awaited<ReturnType<typeof readArchive>>, document: string): string[] =>
  documents.find(({ id }) => id === document)!.facts.map(({ text }) => text)

t.test('an export goes on while facts take the place of a text that it has read, and so does an archive that is there', async t => {
  const { call, answer, exporting, statusOf, archived } = await openBank(t, true)
  const [{ id: extraction }] = (await call('GET', 'b/operations?type=graph_maintenance')).body.operations
  const before = await exporting()
  t.match(await over(call, 'b', before), { status: 'completed' })
  const operation = await exporting()
  await answer(facts('Alice is employed.', 'Acme employs Alice.'))
  t.match(await over(call, 'b', extraction), { status: 'completed' })
  t.equal(await statusOf(operation), 'processing', 'it was made meanwhile')
  t.match(await over(call, 'b', operation), { status: 'completed', retry_count: 0 })
  for (const each of [before, operation]) t.same(textsIn(await archived(each), 'first'), [TEXT])
  const { body: { items } } = await call('GET', 'b/memories/list?document_id=first')
  t.same(items.map(({ text }: { text: string }) => text).toSorted(), ['Acme employs Alice.', 'Alice is employed.'])

  t.equal((await call('DELETE', `b/memories/${items[0].id}`)).status, 200)
  for (const each of [before, operation]) {
    const { body } = await call('GET', `b/operations/${each}`)
    t.match(await call('GET', body.result_metadata.download_url), { status: 404 }, 'what is deleted for good takes them with it, as ever')
  }
})

t.test('an export goes on while a consolidation deletes an observation; undoing one that made it takes archives away', async t => {
  const { call, answer, exporting, statusOf, archived } = await openBank(t, false)
  const { body: { operation_id: made } } = await call('POST', 'b/consolidate')
  await answer(asked => ({ creates: [{ text: 'Alice is employed.', source_fact_ids: idsIn(asked, 'NEW FACTS') }] }))
  t.match(await over(call, 'b', made), { status: 'completed', result_metadata: { observations_created: 1 } })
  await call('POST', 'b/memories', { items: [{ content: 'Alice never worked.', document_id: 'last' }] })
  const { body: { operation_id: id } } = await call('POST', 'b/consolidate')
  const operation = await exporting()
  await answer(asked => ({ deletes: [{ observation_id: idsIn(asked, 'EXISTING OBSERVATIONS')[0] }] }))
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { observations_deleted: 1 } })
  t.equal(await statusOf(operation), 'processing')
  t.match(await over(call, 'b', operation), { status: 'completed', retry_count: 0 })
  const archive = await archived(operation)
  t.same(archive.observations, [])
  t.equal(archive.documents.length, DOCUMENTS + 2)

  const next = await exporting()
  t.match(await call('POST', `b/operations/${id}/undo`), { status: 200 })
  t.equal(await statusOf(next), 'processing')
  t.match(await over(call, 'b', next), { status: 'completed', retry_count: 0 }, 'what comes back is deleted nowhere')
  t.match(await call('POST', `b/operations/${made}/undo`), { status: 200 })
  for (const each of [operation, next]) t.match(await call('GET', (await over(call, 'b', each)).result_metadata.download_url), { status: 404 })
})

t.test('an export takes a document that it has not yet read as another retain has left it; one that it has read has it made again', async t => {
  const { call, exporting, statusOf, archived } = await openBank(t, false)
  const operation = await exporting()
  await call('POST', 'b/memories', { items: [{ content: 'It has sunk.', document_id: `d${DOCUMENTS - 1}` }] })
  t.equal(await statusOf(operation), 'processing')
  t.match(await over(call, 'b', operation), { status: 'completed', retry_count: 0 })
  t.same(textsIn(await archived(operation), `d${DOCUMENTS - 1}`), ['It has sunk.'])

  const { body: { items: [gone] } } = await call('GET', `b/memories/list?document_id=d${DOCUMENTS - 2}`)
  const next = await exporting()
  t.equal((await call('DELETE', `b/memories/${gone.id}`)).status, 200)
  t.equal(await statusOf(next), 'processing')
  t.match(await over(call, 'b', next), { status: 'completed', retry_count: 0 }, 'what was deleted before it was read')
  t.notOk((await archived(next)).documents.some(({ id }) => id === `d${DOCUMENTS - 2}`))

  for (const change of [
    () => call('POST', 'b/memories', { items: [{ content: 'I take it back.', document_id: 'first' }] }),
    async () => call('DELETE', `b/memories/${(await call('GET', 'b/memories/list?document_id=d0')).body.items[0].id}`)
  ]) {
    const late = await exporting()
    t.equal((await change()).status, 200)
    t.match(await over(call, 'b', late), { status: 'pending', next_retry_at: String, error_message: /deleted while the bank was exported/ })
    await call('POST', `b/operations/${late}/retry`)
    t.match(await over(call, 'b', late), { status: 'completed' })
    t.notMatch(JSON.stringify((await archived(late)).documents), /Alice works|Ship 599 /)
  }
})

t.test('an export of some documents, whose order is the client’s, is made again whichever of them lost a memory', async t => {
  const { call } = await openBank(t, false)
  const ids = Array.from({ length: DOCUMENTS }, (_, i) => `d${DOCUMENTS - 1 - i}`)
  const { body: { operation_id: id } } = await call('POST', `b/transfer/export?${ids.map(each => `document_id=${each}`).join('&')}`)
  while (((await call('GET', `b/operations/${id}`)).body.progress?.processed ?? 0) === 0) { /* it begins */ }
  const { body: { items: [gone] } } = await call('GET', `b/memories/list?document_id=d${DOCUMENTS - 1}`)
  await call('DELETE', `b/memories/${gone.id}`)
  t.match(await over(call, 'b', id), { status: 'pending', error_message: /deleted while the bank was exported/ })
})

t.test('facts have the tags that their document has when they are found', async t => {
  const { call, answer } = await openBank(t, true)
  const [{ id }] = (await call('GET', 'b/operations?type=graph_maintenance')).body.operations
  t.equal((await call('PATCH', 'b/documents/first', { tags: ['mine'] })).status, 200)
  await answer(facts('Alice is employed.'))
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { facts_committed: 1 } })
  t.match((await call('GET', 'b/memories/list?document_id=first')).body, { total: 1, items: [{ text: 'Alice is employed.', tags: ['mine'] }] })
})
