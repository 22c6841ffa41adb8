import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import wabt from 'wabt'
import { differences, MODULE } from '../../../../plugins/services/memory-engine/recall/hamming.js'
import { searchText } from '../../../../plugins/services/memory-engine/recall/text-search.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { addToTextIndex, makeTextIndex, removeFromTextIndex } from '../../../../plugins/services/memory-engine/store/text-index.js'
import fc from '../../../property.js'
import { root } from '../../../repository.js'

t.test('a word that few have is found at once in a bank where many have the others, and common ones count again when few have them', async t => {
  const store = openStore(join(t.testdir(), 'memory.db'))
  t.teardown(() => store.close())
  makeTextIndex(store, 1)
  const add = (seq: number, text: string): void => addToTextIndex(store, 1, seq, { text, context: null, entities: [] })
  const found = (query: string): number[] => searchText(store, 1, query, 3, null).map(({ seq }) => seq)
  store.transaction(() => {
    for (let seq = 1; seq <= 11_000; seq++) add(seq, seq % 2 === 0 ? 'a usual thing' : 'a thing')
  })
  t.same(found('usual thing unheard'), [11_000, 10_998, 10_996], 'of what too many have the newest')
  add(11_001, 'an unheard thing')
  t.same(found('usual thing unheard'), [11_001], 'what one has is found, and alone: the others cannot be scored in time')
  removeFromTextIndex(store, 1, 11_001)
  t.same(found('usual thing unheard'), [11_000, 10_998, 10_996])
  store.transaction(() => {
    for (let seq = 9000; seq > 100; seq--) removeFromTextIndex(store, 1, seq)
  })
  add(11_002, 'an unheard word')
  t.same(new Set(found('usual thing unheard')), new Set([11_002, 11_000, 10_998]), 'that few have is noticed')
})

t.test('codes differ in as many bits as they do', t => {
  const word = fc.nat({ max: 0xffff_ffff })
  const codes = fc.integer({ min: 1, max: 40 }).chain(words => fc.tuple(
    fc.array(word, { minLength: words, maxLength: words }),
    fc.array(fc.array(word, { minLength: words, maxLength: words }), { maxLength: 50 })
  ))
  const bits = (x: number): number => x.toString(2).replaceAll('0', '').length
  const expected = (query: readonly number[], code: readonly number[]): number =>
    code.reduce((sum, each, i) => sum + bits((each ^ query[i]!) >>> 0), 0)
  fc.assert(fc.property(codes, ([query, rows]) => {
    const found = differences(new Uint32Array(query), new Uint32Array([...rows.flat(), ...query]), rows.length)
    t.same([...found], rows.map(row => expected(query, row)))
  }))
  // longer than the memory that it begins with, and more than are copied at a time
  for (const [words, count] of [[30_000, 3], [1, 40_000], [1024, 17], [3, 5461], [3, 5462]] as const) {
    const ones = new Uint32Array(words * count).fill(0xffff_ffff)
    t.ok(differences(new Uint32Array(words).fill(0xffff_fffe), ones, count).every(each => each === words), `${count} of ${words} words`)
  }
  t.same(differences(new Uint32Array(12), new Uint32Array(0), 0), new Uint16Array(0))
  t.end()
})

t.test('the bytes that count bits are those of their text', async t => {
  const source = await readFile(join(root, 'plugins/services/memory-engine/recall/hamming.wat'), 'utf8')
  const module = (await wabt()).parseWat('hamming.wat', source)
  t.equal(MODULE, Buffer.from(module.toBinary({}).buffer).toString('base64'))
})
