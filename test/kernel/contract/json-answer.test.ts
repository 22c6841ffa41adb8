import t from 'tap'
import { KeptJson } from '../../../kernel/contract/index.js'

t.test('JSON is made once while what it is made of stays the same', async t => {
  const kept = new KeptJson()
  let made = 0
  const [rows, others] = [['a'], ['a']]
  const of = (...parts: readonly unknown[]): string => kept.of(parts, () => ({ made: ++made }))
  const cases: ReadonlyArray<readonly [what: string, parts: readonly unknown[], json: string]> = [
    ['the first', [rows, 'x'], '{"made":1}'],
    ['the same', [rows, 'x'], '{"made":1}'],
    ['an equal part that is another', [others, 'x'], '{"made":2}'],
    ['a part more', [others, 'x', 1], '{"made":3}'],
    ['a part less', [others, 'x'], '{"made":4}'],
    ['another order', ['x', others], '{"made":5}'],
    ['no parts', [], '{"made":6}'],
    ['no parts again', [], '{"made":6}']
  ]
  for (const [what, parts, json] of cases) t.equal(of(...parts), json, what)
})

t.test('what fails is made again', async t => {
  const kept = new KeptJson()
  t.throws(() => kept.of([1], () => { throw new Error('not now') }), /not now/)
  t.equal(kept.of([1], () => 'now'), '"now"')
})
