import t from 'tap'
import { jsonBounds, jsonExcess } from '../../../kernel/contract/http/json-bounds.js'
import fc from '../../property.js'

const { depth, keys, values } = jsonBounds

function excess (text: string): string | null {
  return jsonExcess(Buffer.from(text))?.message ?? null
}

t.test('a body is refused one level, key or value beyond its bound, and not before', async t => {
  const nested = (levels: number, [open, close]: readonly [string, string]): string => open.repeat(levels) + '1' + close.repeat(levels)
  for (const pair of [['[', ']'], ['{"a":', '}']] as const) {
    t.equal(excess(nested(depth, pair)), null)
    t.match(excess(nested(depth + 1, pair)), /nested too deeply; 64 levels/)
  }
  const table = (count: number): string => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, [i, i]])))
  t.equal(excess(table(keys)), null)
  t.match(excess(table(keys + 1)), /too many keys; 1000 keys/)
  t.equal(excess(JSON.stringify(Array.from({ length: values - 2 }, () => 1))), null)
  t.match(excess(JSON.stringify(Array.from({ length: values + 1 }, () => 1))), /too many values; 10000 values/)
  t.equal(excess(`{${'"same":1,'.repeat(keys + 1)}"last":1}`)?.includes('keys'), true, 'a key that is repeated counts each time')
})

t.test('what looks like structure inside of text does not count, and what is never closed ends', async t => {
  t.equal(excess(JSON.stringify({ text: '[{,'.repeat(50_000) })), null)
  t.equal(excess(JSON.stringify({ text: '\\"[[['.repeat(50_000), b: '\\' })), null)
  for (const broken of ['"'.padEnd(200, '['), '"\\'.repeat(200), ']'.repeat(500), '['.repeat(64)]) t.doesNotThrow(() => excess(broken))
  t.match(excess('['.repeat(10_000_000)), /nested/)
})

t.test('the depth that is judged is the depth of the value', async t => {
  const value = fc.letrec(tie => ({
    value: fc.oneof(
      { maxDepth: 80, depthSize: 'max' }, fc.string(), fc.integer(),
      fc.array(tie('value'), { maxLength: 3 }), fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 })
    )
  })).value
  fc.assert(fc.property(value, fc.integer({ min: 0, max: 70 }), (inside, more) => {
    const text = '['.repeat(more) + JSON.stringify(inside) + ']'.repeat(more)
    const judged = excess(text.padEnd(jsonBounds.depth + 1))
    return text.length > 50_000 || (judged === null) === (levelsOf(inside) + more <= depth)
  }), { numRuns: 300 })
  t.pass()
})

function levelsOf (value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf))
}
