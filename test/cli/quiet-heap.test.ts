import { getHeapStatistics } from 'node:v8'
import { Script } from 'node:vm'
import t from 'tap'
import { collect, QuietHeap } from '../../cli/quiet-heap.js'

const MIB = 2 ** 20

/** The looks, by their numbers, at which it is due. */
function due (looks: ReadonlyArray<readonly [usedMib: number, youngMib: number]>): number[] {
  const quiet = new QuietHeap()
  return looks.flatMap(([used, young], i) => quiet.isDue({ used: used * MIB, young: young * MIB }) ? [i] : [])
}

t.test('a heap is collected once requests have stopped for two looks, and not again when it is small', async t => {
  t.strictSame(due([[30, 32], [38, 32], [38, 32], [38.2, 32], [27, 1], [27, 1], [27.1, 1], [27.1, 1]]), [3])
})

t.test('a heap that requests use is left alone', async t => {
  t.strictSame(due([[30, 32], [33, 32], [36, 32], [28, 32], [31, 32], [34, 32], [34.5, 32], [29, 32], [29.5, 32]]), [])
})

t.test('a heap that has not grown is left alone, however quiet', async t => {
  t.strictSame(due([[30, 4], [30, 4], [30, 4], [30, 4], [30, 4]]), [])
})

t.test('a collection that gave nothing back is tried again ever later, and as soon as before once one did', async t => {
  const stays = Array.from({ length: 20 }, () => [30, 32] as const)
  t.strictSame(due(stays), [2, 7, 16])
  const [busy, small] = [[40, 32], [30, 1]] as const
  t.strictSame(due([...stays.slice(0, 8), small, busy, busy, busy, busy]), [2, 7, 11])
})

t.test('at the latest each 128 looks', async t => {
  const times = due(Array.from({ length: 800 }, () => [30, 32] as const))
  t.strictSame(times.slice(1).map((time, i) => time - times[i]!), [5, 9, 17, 33, 65, 129, 129, 129, 129, 129])
})

t.test('a collection takes what nothing holds, and leaves V8 the code that is cached', async t => {
  const source = `${'/* */'.repeat(100)}(function (a) { return a + 1 })`
  const cachedData = new Script(source).createCachedData()
  let held: unknown[] | null = Array.from({ length: 200_000 }, (_, i) => ({ i }))
  t.equal(held.length, 200_000)
  collect()
  const before = getHeapStatistics().used_heap_size
  held = null
  collect()
  t.ok(getHeapStatistics().used_heap_size < before - 4 * MIB, 'less is used')
  t.equal(held, null)
  t.notOk(new Script(source, { cachedData }).cachedDataRejected)
})
