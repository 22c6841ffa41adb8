import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { over } from '../models-support.js'
import { databaseIn, openInThread, type Wire } from '../support.js'
import type { Series } from './series.js'
import { isIndexed, isSound, keepsWhatItNames } from './sound.js'

/** Memories of which each is a document, named by its first word. */
export const items = (...texts: readonly string[]): object =>
  ({ items: texts.map(content => ({ content, document_id: content.split(' ')[0], tags: ['t'] })) })

export async function exportOf ({ engine, call }: Pick<ReturnType<typeof openInThread>, 'engine' | 'call'>, bank: string): Promise<Buffer> {
  const { body: { operation_id: id } } = await call('POST', `${bank}/transfer/export`)
  const { result_metadata: { download_url: path } } = await over(call, bank, id)
  const { body } = await engine.request({ method: 'GET', path, query: '', headers: {}, body: null, signal: new AbortController().signal })
  return await buffer(body as AsyncIterable<Buffer>)
}

export async function textsOf (call: Wire['call'], bank: string, limit = 100): Promise<readonly string[]> {
  const { status, body } = await call('GET', `${bank}/memories/list?limit=${limit}`)
  return status === 404 ? [] : body.items.map((row: { text: string }) => row.text).toSorted()
}

/** Waits until the operations of these banks are over. */
export async function settled (call: Wire['call'], banks: readonly string[]): Promise<void> {
  for (const bank of banks) {
    const { status, body } = await call('GET', `${bank}/operations`)
    if (status === 404) continue
    for (const { id } of body.operations) await over(call, bank, id)
  }
}

/** Imports, into a bank that is there and a new one: their staging, undoing and commit. */
export const imports: Series = {
  program: './imports-child.js',
  moreThan: 100,
  prepare: async (t, folder) => {
    const source = openInThread(t)
    await source.call('POST', 'b/memories', items('one', 'two', 'three'))
    const archive = await exportOf(source, 'b')
    const { call } = openInThread(t, folder)
    await call('POST', 'c/memories', items('one before', 'four'))
    await call('PUT', 'n', {})
    writeFileSync(join(folder, 'memory', 'archive.zip'), archive)
  },
  survives: async (t, folder, said) => {
    const { call } = openInThread(t, folder)
    await settled(call, ['c', 'n'])
    const isOne = (found: string, name: string, before: string, after: string): void => {
      const has = (line: string): boolean => said.includes(`${line} ${name}`)
      if (has('acknowledged')) t.equal(found, after, 'what was acknowledged is there')
      else if (has('asked') || (has('asked first') && !has('undone'))) t.ok([before, after].includes(found), `nothing half: ${found}`)
      else t.equal(found, before, 'what was undone, or never asked for, is not there')
    }
    isOne((await textsOf(call, 'c')).join(), 'merge', 'four,one before', 'four,one,three,two')
    isOne((await textsOf(call, 'r')).join(), 'restore', '', 'one,three,two')
    const store = openStore(databaseIn(folder))
    isSound(t, store)
    isIndexed(t, store)
    keepsWhatItNames(t, store)
    t.same(store.all(`SELECT bank_id FROM banks WHERE bank_id LIKE '/%'`), [], 'what was half made is gone')
    t.same(store.all(`SELECT text FROM memories WHERE state = 'staged'`), [])
    t.same(store.all('SELECT key FROM operation_files'), [], 'and so are the archives')
    t.same(store.all(`SELECT error FROM operations WHERE status NOT IN ('completed', 'cancelled')`), [], 'nothing failed')
    store.close()
  }
}
