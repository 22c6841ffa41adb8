import type { Test } from 'tap'
import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { consolidating, DOCUMENT, FACT } from '../models-support.js'
import { databaseIn, noModels, openInThread, type Wire } from '../support.js'
import type { Series } from './series.js'
import { isIndexed, isSound, keepsWhatItNames } from './sound.js'

/** Work in the background of every kind, and the making of the database. */
export const operations: Series = { program: './operations-child.js', moreThan: 400, survives }

async function survives (t: Test, folder: string, said: readonly string[]): Promise<void> {
  const has = (line: string): boolean => said.includes(line)
  const { call } = openInThread(t, folder, {
    run: consolidating,
    abilities: { ...noModels, chat: { model: 'm', why: null }, embed: { model: 'other', why: null }, extracts: has('begun extraction') }
  })
  const banks = ['a', 'c', 'f', 'm', 'x']
  for (const bank of banks) await call('PUT', bank, {})
  for (const bank of banks) await settled(t, call, bank)
  const texts = async (bank: string): Promise<string[]> => ((await call('GET', `${bank}/memories/list`)).body.items ?? []).map((row: { text: string }) => row.text).toSorted()
  const [inA, inC] = [await texts('a'), await texts('c')]
  if (has('acknowledged delete')) t.same(inA, ['three', 'two'], 'what was deleted stays away')
  else if (has('acknowledged retain')) t.ok(['one,three,two', 'three,two'].includes(inA.join()), `what was acknowledged is there: ${inA.join()}`)
  else t.ok(['', 'one,three,two'].includes(inA.join()), `all or nothing: ${inA.join()}`)
  const facts = inC.filter(each => each !== 'Numbers.')
  if (has('acknowledged import')) t.same(facts, ['one', 'three', 'two'])
  else t.ok(facts.length === 0 || facts.length === 3, 'an import is whole or not there')
  if (has('acknowledged undo')) t.equal(inC.length - facts.length, 0, 'what was undone stays undone')
  else if (has('over consolidation')) t.ok(inC.length - facts.length <= 1)
  else if (has('acknowledged consolidation')) t.equal(inC.length - facts.length, 1, 'one observation and no second one')
  const cloned = (await texts('d')).join()
  if (has('acknowledged clone')) t.equal(cloned, 'one,three,two')
  else t.ok(['', 'one,three,two'].includes(cloned), 'a clone is whole or not there')
  await others(t, call, texts, has)
  for (const bank of [...banks, 'd']) {
    const isDone = async (): Promise<boolean> => {
      const { status, body } = await call('GET', `${bank}/embeddings`)
      return status === 404 || (body.pending === 0 && body.stale === 0)
    }
    while (!await isDone()) { /* it works */ }
  }
  const store = openStore(databaseIn(folder))
  isSound(t, store)
  t.same(store.all(`SELECT m.text FROM memories m LEFT JOIN vectors v ON v.memory = m.seq LEFT JOIN embed_models e ON e.seq = v.model
    WHERE m.state = 'valid' AND e.name IS NOT 'other'`), [], 'every memory has a vector of the model that embeds now')
  t.same(store.all(`SELECT bank_id FROM banks WHERE bank_id LIKE '/%'`), [], 'and what was half made is gone')
  isIndexed(t, store)
  keepsWhatItNames(t, store)
  store.close()
}

async function settled (t: Test, call: Wire['call'], bank: string): Promise<void> {
  for (;;) {
    const { body: { operations } } = await call<{ operations: ReadonlyArray<{ readonly status: string }> }>('GET', `${bank}/operations?limit=100`)
    if (operations.some(({ status }) => status === 'pending' || status === 'processing')) continue
    t.same(operations.filter(({ status }) => status !== 'completed'), [], 'nothing failed')
    return
  }
}

/** Files, edits, refreshes and the extraction of facts, each in a bank of its own; and the histories that they leave. */
async function others (
  t: Test, call: Wire['call'], texts: (bank: string) => Promise<string[]>, has: (line: string) => boolean
): Promise<void> {
  const kinds = async (bank: string, document: string): Promise<string[]> =>
    ((await call('GET', `${bank}/documents/${document}/history`)).body.items ?? []).map(({ kind }: { kind: string }) => kind).toReversed()
  for (const [bank, line] of [['a', 'acknowledged retain'], ['c', 'acknowledged import']] as const) {
    const retained = (await kinds(bank, 'two')).filter(kind => kind === 'retain').length
    t.ok(has(line) ? retained === 1 : retained <= 1, `${retained} retains of a document in ${bank}`)
  }
  const inF = (await texts('f')).join()
  t.ok((has('acknowledged file') ? ['A text of a file.'] : ['', 'A text of a file.']).includes(inF), `a file: ${inF}`)

  const { body: { items: [edited] } } = await call('GET', 'm/memories/list?document_id=d')
  const changes = edited === undefined ? [] : (await call('GET', `m/memories/${edited.id}/history`)).body
  const isEdited = edited?.text === 'after'
  if (has('acknowledged edit')) t.ok(isEdited)
  t.match(changes, isEdited ? [{ previous_text: 'before' }] : { length: 0 })
  t.equal(changes.length, isEdited ? 1 : 0, 'an edit and its line are there together')
  t.same(await kinds('m', 'd'), edited === undefined ? [] : isEdited ? ['retain', 'fact_edited'] : ['retain'])
  const { status, body: model } = await call('GET', 'm/mental-models/mm')
  if (has('acknowledged refresh')) t.equal(status, 200)
  if (status === 200) {
    t.equal(model.content, DOCUMENT)
    t.match((await call('GET', 'm/mental-models/mm/history')).body, [{ kind: 'content', previous_content: /^$/ }])
    t.equal((await call('GET', 'm/mental-models/mm/history')).body.length, 1, 'it was written once')
  }

  const inX = await texts('x')
  const wanted = ['Numbers.', FACT].toSorted().join()
  t.ok((has('acknowledged extraction') ? [wanted] : ['', wanted]).includes(inX.join()), `the fact in place of the text, and one observation: ${inX.join()}`)
  if (inX.length > 0) {
    t.match((await call('GET', 'x/documents/d')).body, { original_text: 'So I say.' })
    t.equal((await kinds('x', 'd')).filter(kind => kind === 'retain').length, 1)
  }
}
