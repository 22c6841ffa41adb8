import { getHeapStatistics } from 'node:v8'
import { Script } from 'node:vm'
import t from 'tap'
import { collect, QuietHeap } from '../../cli/quiet-heap.js'

const MIB = 2 ** 20

const none = 0.0001
const some = 0.01

/** The looks, by their numbers, at which it is due. */
function due (looks: ReadonlyArray<readonly [usedMib: number, youngMib: number, busy: number, spareMib?: number]>): number[] {
  const quiet = new QuietHeap()
  return looks.flatMap(([used, young, busy, spare = 2], i) =>
    quiet.isDue({ used: used * MIB, young: young * MIB, spare: spare * MIB, busy }) ? [i] : [])
}

t.test('a heap is collected once there was nothing to do for two looks, and not again when it is small', async t => {
  const looks = [
    [30, 32, some], [38, 32, some], [38, 32, none], [38.2, 32, none],
    [27, 1, some], [27, 1, none], [27.1, 1, none], [27.1, 1, none]
  ] as const
  t.strictSame(due(looks), [3])
})

t.test('a heap that requests use is left alone, whatever of it collections have freed between two looks', async t => {
  const looks = [
    [30, 32, some], [33, 32, 1], [33.1, 32, some], [33.2, 32, none],
    [33.3, 32, some], [33.3, 32, none], [33.3, 32, some]
  ] as const
  t.strictSame(due(looks), [])
})

t.test('what a start left behind is collected in quiet, and a heap that has not grown since is left alone', async t => {
  t.strictSame(due([[36, 4, some], [36, 4, none], [36, 4, none], [26, 4, none], [33, 4, none], [33, 4, none]]), [2])
})

t.test('pages that hardly anything lives in are collected together by a second collection', async t => {
  const looks = (spare: number): Array<readonly [number, number, number, number]> =>
    Array.from({ length: 8 }, () => [26, 2, none, spare])
  t.strictSame(due([[36, 2, none, 2], [36, 2, none, 2], ...looks(10).slice(0, 5), ...looks(6), ...looks(6)]), [1, 6])
  t.strictSame(due([[36, 2, none, 2], [36, 2, none, 2], ...looks(6), ...looks(6)]), [1])
  t.strictSame(due([[36, 2, none, 2], [36, 2, none, 2], ...looks(10), ...looks(10), ...looks(10)]), [1, 6, 15], 'ever later where it changes nothing')
})

t.test('what has outlived the young generation is collected too, and what lives on is not taken for it a second time', async t => {
  const quiet = Array.from({ length: 10 }, () => [40, 4, none] as const)
  t.strictSame(due([[30, 4, some], [50, 4, some], [50, 4, none], [50, 4, none], ...quiet]), [3])
  t.strictSame(due([[30, 4, some], [50, 4, some], [50, 4, none], [50, 4, none], ...quiet, [50, 4, none]]), [3, 14])
})

t.test('a collection that gave nothing back is tried again ever later, and as soon as before once one did', async t => {
  const stays = Array.from({ length: 20 }, () => [30, 32, none] as const)
  t.strictSame(due(stays), [1, 6, 15])
  const [busy, small, large] = [[40, 32, some], [30, 1, none], [40, 32, none]] as const
  t.strictSame(due([...stays.slice(0, 7), small, busy, large, large, large]), [1, 6, 10])
})

t.test('at the latest each 128 looks', async t => {
  const times = due(Array.from({ length: 800 }, () => [30, 32, none] as const))
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
