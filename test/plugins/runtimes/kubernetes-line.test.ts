import t, { type Test } from 'tap'
import { FakeClock, settle } from '../../../kernel/testing/index.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterOf, drive, HOME, quiet, specOf } from './driven-cluster.js'
import type { FakeCluster, FakePod } from './fake-cluster.js'

interface Scarce extends FakeCluster {
  /** Pods whose gate was opened, in order. */
  readonly tried: string[]
  readonly free: (name: string) => void
}

const NO_GPU = '0/1 nodes are available: 1 Insufficient nvidia.com/gpu.'

/** A cluster whose nodes have this many places for pods. Its scheduler takes the newest first, so that order is not its work. */
async function scarce (t: Test, places: number): Promise<Scarce> {
  const cluster = await clusterOf(t)
  const tried: string[] = []
  const waiting: FakePod[] = []
  const runs = new Set<string>()
  const schedule = (): void => {
    while (runs.size < places) {
      const pod = waiting.pop()
      if (pod === undefined) return
      if (cluster.pods.get(pod.metadata.name) !== pod) continue
      runs.add(pod.metadata.name)
      cluster.running(pod)
    }
  }
  cluster.run = pod => {
    tried.push(pod.metadata.name)
    waiting.push(pod)
    schedule()
    if (runs.has(pod.metadata.name)) return
    pod.status = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: NO_GPU }] }
    cluster.changed(pod)
  }
  const free = (name: string): void => {
    runs.delete(name)
    schedule()
  }
  return Object.assign(cluster, { tried, free })
}

interface Started { readonly id: string, readonly over: Promise<void> }

const asking = (slot: string, gpus: string): ReturnType<typeof specOf> =>
  ({ ...specOf(slot), options: { resources: { limits: { 'nvidia.com/gpu': gpus } } } })

t.test('launches that ask for the same get room in the order of their starts, and each says what it waits for', async t => {
  const cluster = await scarce(t, 1)
  const { runtime } = await drive(t, cluster)
  const first = await runtime.create(asking('first', '1'), quiet)
  await runtime.start(first, quiet)
  const order: string[] = []
  const lines = new Map<string, string>()
  const waiting: Array<Promise<void>> = []
  for (let i = 0; i < 8; i++) {
    const id = await runtime.create(asking(`waits-${i}`, '1'), quiet)
    waiting.push(runtime.start(id, quiet, line => lines.set(id, line)).then(() => { order.push(id) }))
    await eventually('it is told', () => lines.get(id)?.includes('Insufficient nvidia.com/gpu'))
  }
  t.equal(cluster.tried.length, 2, 'the scheduler has the first of them alone')
  const ids = [...lines.keys()]
  for (const gone of [first, ...ids.slice(0, -1)]) {
    const before = order.length
    await runtime.remove(gone)
    cluster.free(gone)
    await eventually('the next one has it', () => order.length === before + 1)
  }
  await Promise.all(waiting)
  t.strictSame(order, ids)
})

t.test('one that waits keeps back none that asks for something else, and those behind it go on when it gives up', async t => {
  const cluster = await scarce(t, 1)
  const { runtime } = await drive(t, cluster)
  const full = await runtime.create(asking('full', '1'), quiet)
  await runtime.start(full, quiet)
  const leaves = new AbortController()
  const start = async (slot: string, gpus: string, signal = quiet): Promise<Started> => {
    const id = await runtime.create(asking(slot, gpus), signal)
    let isTold = false
    const over = runtime.start(id, signal, () => { isTold = true })
    await eventually('it waits', () => isTold)
    return { id, over }
  }
  const [head, next, other] = [await start('head', '1', leaves.signal), await start('next', '1'), await start('other', '2')]
  t.strictSame(cluster.tried, [full, head.id, other.id])
  leaves.abort(new Error('given up'))
  await t.rejects(head.over, { message: 'given up' })
  await runtime.remove(head.id)
  await eventually('it is its turn', () => cluster.tried.includes(next.id))
  cluster.free(full)
  await Promise.race([next.over, other.over])
  for (const { id } of [next, other]) cluster.free(id)
  await Promise.all([next.over, other.over])
})

t.test('those in the line give up when their time is over, with the reason of the first', async t => {
  const cluster = await scarce(t, 0)
  const clock = new FakeClock()
  const { runtime } = await drive(t, cluster, { capacity_timeout_s: 5 }, HOME, clock)
  const ends: unknown[] = []
  for (const slot of ['one', 'two', 'three']) {
    const id = await runtime.create(asking(slot, '1'), quiet)
    let isTold = false
    void runtime.start(id, quiet, () => { isTold = true }).catch((error: unknown) => ends.push(error))
    await eventually('it waits', () => isTold)
  }
  await clock.advance(4_999)
  await settle()
  t.strictSame(ends, [], 'not before the time is over')
  await clock.advance(1)
  await eventually('all give up', () => ends.length === 3)
  t.match(ends, Array(3).fill({ code: 'kubernetes.no_capacity', message: /no node had room within 5 s .*Insufficient/ }))
})
