import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import wabt from 'wabt'
import { differences, MODULE as HAMMING } from '../../../../plugins/services/memory-engine/recall/hamming.js'
import { MODULE as PRODUCTS, plainProducts, products } from '../../../../plugins/services/memory-engine/recall/products.js'
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

t.test('products are the same with instructions for four numbers as without', t => {
  const number = fc.float({ min: -1, max: 1, noNaN: true })
  const sets = fc.integer({ min: 1, max: 40 }).chain(length => fc.tuple(
    fc.array(number, { minLength: length, maxLength: length }),
    fc.array(fc.array(number, { minLength: length, maxLength: length }), { minLength: 1, maxLength: 20 })
  )).chain(([query, rows]) =>
    fc.tuple(fc.constant(query), fc.constant(rows), fc.array(fc.nat({ max: rows.length - 1 }), { maxLength: 50 })))
  const isNear = (found: Float32Array, expected: Float32Array): boolean =>
    found.length === expected.length && found.every((each, i) => Math.abs(each - expected[i]!) < 1e-5)
  fc.assert(fc.property(sets, ([query, rows, positions]) => {
    const [one, all] = [new Float32Array(query), new Float32Array(rows.flat())]
    t.ok(isNear(products(one, all, positions), plainProducts(one, all, positions)))
  }))
  // longer than the memory that it begins with, and more than are copied at a time
  for (const [length, count] of [[70_000, 3], [1, 70_000], [384, 170], [384, 171], [3, 21_846]] as const) {
    const positions = Array.from({ length: count }, (_, i) => count - 1 - i)
    const vectors = new Float32Array(length * count).map((_, i) => Math.floor(i / length))
    const found = products(new Float32Array(length).fill(1 / length), vectors, positions)
    t.ok(found.every((each, i) => Math.abs(each - positions[i]!) <= positions[i]! * 1e-4), `${count} of ${length} numbers`)
  }
  t.same(products(new Float32Array(12), new Float32Array(0), []), new Float32Array(0))
  t.end()
})

t.test('the bytes of what runs as WebAssembly are those of its text', async t => {
  for (const [name, bytes] of Object.entries({ hamming: HAMMING, products: PRODUCTS })) {
    const source = await readFile(join(root, `plugins/services/memory-engine/recall/${name}.wat`), 'utf8')
    const module = (await wabt()).parseWat(`${name}.wat`, source, { simd: true })
    t.equal(bytes, Buffer.from(module.toBinary({}).buffer).toString('base64'), name)
  }
})
