import type { Test } from 'tap'
import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../../plugins/services/memory-engine/store/store.js'
import { databaseIn, openInThread, whenever, type Wire } from '../support.js'
import { items, textsOf } from './imports.js'
import type { Series } from './series.js'
import { isIndexed, isSound, keepsWhatItNames } from './sound.js'

/** What is deleted slice by slice, as each is more than goes at once. */
export const deletions = { document: 'b/documents/log', clear: 'c/memories', bank: 'n' } as const

/** Whether a deletion was asked for, and acknowledged. */
export type Asked = 'not asked' | 'asked' | 'acknowledged'

export async function fillForDeletions (call: Wire['call']): Promise<void> {
  const many = (count: number, name: string, document?: string): object => ({
    items: Array.from({ length: count }, (_, i) => ({ content: `${name} ${i} sails.`, tags: ['t'], entities: [{ text: name }], ...document === undefined ? {} : { document_id: document } }))
  })
  await call('POST', 'b/memories', many(130, 'Ship', 'log'))
  await call('POST', 'b/memories', items('one', 'two'))
  await call('POST', 'c/memories', many(210, 'Boat'))
  await call('POST', 'n/memories', many(210, 'Raft'))
  await call('POST', 'other/memories', items('three'))
}

export function isSwept (store: Store): boolean {
  return store.all(`SELECT 1 FROM clearings UNION ALL SELECT 1 FROM banks WHERE bank_id GLOB '/deleted/*'`).length === 0
}

/** Opens what a killed engine left, and looks for what is to be gone, and for what is not. */
export async function isDeleted (t: Test, folder: string, known: Readonly<Record<keyof typeof deletions, Asked>>): Promise<void> {
  const { call } = openInThread(t, folder)
  const store = openStore(databaseIn(folder))
  await whenever(() => isSwept(store))
  const has = async (name: keyof typeof deletions, bank: string, word: string, count: number): Promise<void> => {
    const found = (await textsOf(call, bank, 500)).filter(text => text.startsWith(word)).length
    if (known[name] === 'not asked') t.equal(found, count, `${word}s are all there`)
    else if (known[name] === 'acknowledged') t.equal(found, 0, `${word}s were deleted`)
    else t.ok(found === 0 || found === count, `all ${word}s or none: ${found}`)
  }
  await has('document', 'b', 'Ship', 130)
  await has('clear', 'c', 'Boat', 210)
  await has('bank', 'n', 'Raft', 210)
  t.same([await textsOf(call, 'b').then(texts => texts.filter(text => !text.startsWith('Ship'))), await textsOf(call, 'other')], [['one', 'two'], ['three']])
  isSound(t, store)
  isIndexed(t, store)
  keepsWhatItNames(t, store)
  store.close()
}

/** Deletions that go slice by slice. */
export const sliced: Series = {
  program: './deletions-child.js',
  moreThan: 30,
  prepare: async (t, folder) => await fillForDeletions(openInThread(t, folder).call),
  survives: async (t, folder, said) => {
    const asked = (name: string): Asked => said.includes(`acknowledged ${name}`) ? 'acknowledged' : said.includes(`asked ${name}`) ? 'asked' : 'not asked'
    await isDeleted(t, folder, { document: asked('document'), clear: asked('clear'), bank: asked('bank') })
  }
}
