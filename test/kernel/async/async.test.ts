import { EventEmitter, getEventListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { svcError } from '../../../kernel/contract/index.js'
import { withBudget } from '../../../kernel/async/budget.js'
import { Changes } from '../../../kernel/async/changes.js'
import { SerialQueue } from '../../../kernel/async/serial-queue.js'
import { SnapshotFeed } from '../../../kernel/async/snapshot-feed.js'
import { abortable, within } from '../../../kernel/async/waiting.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'

const never = new AbortController().signal

t.test('a feed gives the present, then every change, and ends with the reader, the signal or the feed', async t => {
  const feed = new SnapshotFeed<number>()
  const stop = new AbortController()
  const seen: number[] = []
  const reading = (async () => { for await (const value of feed.read(() => 0, stop.signal)) seen.push(value) })()
  await settle()
  feed.publish(1)
  feed.publish(2)
  await settle()
  t.strictSame(seen, [0, 1, 2])
  t.equal(feed.size, 1)
  stop.abort()
  await reading
  t.equal(feed.size, 0, 'nothing is left of the reader')
  for await (const value of feed.read(() => 7, never)) {
    t.equal(value, 7)
    break
  }
  t.equal(feed.size, 0)
  const last = feed.read(() => 3, never)
  await last.next()
  const waiting = last.next()
  feed.publish(4)
  feed.close()
  t.strictSame(await waiting, { value: 4, done: false }, 'what was published before the end arrives')
  t.strictSame(await last.next(), { value: undefined, done: true })
  t.strictSame((await feed.read(() => 5, never).next()).value, 5, 'a closed feed still tells the present')
})

t.test('a slow reader of a feed loses the oldest and nobody waits for it', async t => {
  const feed = new SnapshotFeed<number>()
  const slow = feed.read(() => -1, never)
  await slow.next()
  for (let i = 0; i < 1_000; i++) feed.publish(i)
  const seen: number[] = []
  feed.close()
  for await (const value of slow) seen.push(value)
  t.equal(seen.length, 64)
  t.equal(seen.at(-1), 999, 'the newest is there')
})

t.test('work that overspends its time is aborted, and the budget is the reason whatever the work says', async t => {
  const clock = new FakeClock()
  const spent = () => svcError('slot.load_failed', 'spent')
  t.equal(await withBudget(clock, 10, never, spent, async () => 1), 1)
  t.equal(clock.pending, 0)
  await t.rejects(withBudget(clock, 10, never, spent, async () => { throw new Error('own') }), { message: 'own' })
  const waits = (signal: AbortSignal): Promise<never> => new Promise((_, reject) => { signal.addEventListener('abort', () => reject(new Error('something else'))) })
  const late = withBudget(clock, 10, never, spent, waits)
  late.catch(() => {})
  await clock.advance(10)
  await t.rejects(late, { code: 'slot.load_failed' }, 'the reason is the budget, whatever the work says')
  const caller = new AbortController()
  const left = withBudget(clock, 10, caller.signal, spent, waits)
  caller.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
  await t.rejects(withBudget(clock, 10, AbortSignal.abort(new Error('before')), spent, async signal => signal.throwIfAborted()), { message: 'before' })
  t.equal(clock.pending, 0, 'no timer is left')
})

t.test('a serial queue runs one piece of work after the other, also behind a failure', async t => {
  const queue = new SerialQueue()
  const log: string[] = []
  const work = (name: string, fails = false) => queue.run(async () => {
    log.push(`${name} begins`)
    await settle()
    log.push(`${name} ends`)
    if (fails) throw new Error(name)
    return name
  })
  const all = await Promise.allSettled([work('a'), work('b', true), work('c')])
  t.strictSame(all.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled'])
  t.strictSame(log, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  await t.rejects(Promise.all([work('d', true), queue.idle().then(() => { log.push('idle') })]), { message: 'd' })
  await queue.idle()
  t.equal(log.at(-1), 'idle', 'it is done with what failed, too')
})

/** How often somebody asked to be told of it, which a promise remembers until it settles. */
function countedReactions<T> (promise: Promise<T>): () => number {
  let count = 0
  promise.then = ((...tell: Parameters<typeof promise.then>) => {
    count++
    return Promise.prototype.then.apply(promise, tell as never)
  }) as typeof promise.then
  return () => count
}

t.test('those that wait for a promise and leave leave nothing behind', async t => {
  const never = new Promise<void>(() => {})
  const reactions = countedReactions(never)
  const stays = new AbortController()
  for (let i = 0; i < 100; i++) {
    const leaves = new AbortController()
    const waits = [abortable(never, leaves.signal), abortable(never, AbortSignal.any([leaves.signal, stays.signal]))]
    leaves.abort(new Error('it left'))
    for (const wait of waits) await t.rejects(wait, { message: 'it left' })
    await t.rejects(abortable(never, leaves.signal), { message: 'it left' }, 'nor does one that comes too late')
  }
  t.equal(reactions(), 1)
})

t.test('all that wait for a promise have its outcome, and no listener is left on their signals', async t => {
  const { signal } = new AbortController()
  let settleIt = (_: { readonly ok: number } | Error): void => {}
  const outcome = (): Promise<number> => new Promise((resolve, reject) => {
    settleIt = it => { if (it instanceof Error) reject(it); else resolve(it.ok) }
  })
  const good = outcome()
  const [one, two] = [abortable(good, signal), abortable(good, signal)]
  settleIt({ ok: 7 })
  t.strictSame(await Promise.all([one, two, abortable(good, signal)]), [7, 7, 7])
  const bad = outcome()
  const three = abortable(bad, signal)
  settleIt(new Error('it broke'))
  await t.rejects(three, { message: 'it broke' })
  await t.rejects(abortable(bad, signal), { message: 'it broke' })
  t.equal(getEventListeners(signal, 'abort').length, 0)
})

t.test('a time limit comes although garbage is collected before, and the signal it is added to still counts', async t => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const reason = (both: AbortSignal): Promise<unknown> => new Promise(resolve => {
    both.addEventListener('abort', () => resolve(both.reason))
  })
  const limited = (signal: AbortSignal | null, ms: number): Promise<unknown> => within(signal, ms, reason)
  const long = new AbortController().signal
  const late = limited(long, 99.5)
  const alone = limited(null, 99.5)
  const stop = new AbortController()
  const stopped = limited(stop.signal, 86_400_000)
  await settle()
  gc()
  // a timeout keeps no process alive, and this test is over when it comes
  const waits = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(waits))
  t.match(await Promise.all([late, alone]), [{ name: 'TimeoutError' }, { name: 'TimeoutError' }])
  t.equal(getEventListeners(long, 'abort').length, 0, 'what is over is listened to no more')
  stop.abort(new Error('stopped'))
  t.match(await stopped, { message: 'stopped' })
  t.equal(await within(stop.signal, 1, async ({ aborted }) => aborted), true)
  t.ok(EventEmitter.defaultMaxListeners > 0, 'leaks of others are still told')
})

t.test('of work that is over, whichever way, neither its timer nor its listener stays', async t => {
  const { signal } = new AbortController()
  const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const counts = { timers: 0, listeners: 0 }
  // one that keeps no process alive is not counted: it is made to
  const { setTimeout: real } = globalThis
  t.teardown(() => { globalThis.setTimeout = real })
  globalThis.setTimeout = ((...given: Parameters<typeof real>) =>
    Object.assign(real(...given), { unref () { return this } })) as typeof real
  const look = async (): Promise<void> => {
    counts.timers = timers() - before
    counts.listeners = getEventListeners(signal, 'abort').length
  }
  t.equal(await within(signal, 86_400_000, async () => { await look(); return 7 }), 7)
  t.strictSame(counts, { timers: 1, listeners: 1 })
  await t.rejects(within(signal, 86_400_000, async () => { throw new Error('it broke') }), { message: 'it broke' })
  await t.rejects(within(signal, 86_400_000, () => { throw new Error('it broke at once') }), { message: 'it broke at once' })
  await look()
  t.strictSame(counts, { timers: 0, listeners: 0 })
  let left = signal
  await t.rejects(within(signal, 86_400_000, bound => Promise.all([Promise.reject(new Error('one part')), new Promise(() => { left = bound })])), { message: 'one part' })
  t.ok(left.aborted, 'what the work left under way is told')
})

t.test('a signal that bounds much at a time does not look like a leak', async t => {
  const warned: string[] = []
  const note = ({ name }: Error): void => { warned.push(name) }
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const stop = new AbortController()
  const works = Array.from({ length: 30 }, () =>
    within(stop.signal, 86_400_000, bound => new Promise(resolve => { bound.addEventListener('abort', resolve) })))
  // a warning comes a tick later
  await settle()
  stop.abort()
  await Promise.all(works)
  t.equal(getEventListeners(stop.signal, 'abort').length, 0)
  t.strictSame(warned, [])
})

t.test('readers that wait for a change and leave are forgotten before the change comes', async t => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const changes = new Changes()
  const left = await (async () => {
    const refs: Array<WeakRef<object>> = []
    for (let i = 0; i < 50; i++) {
      const leaves = new AbortController()
      const waits = changes.next(leaves.signal)
      refs.push(new WeakRef(leaves.signal))
      leaves.abort(new Error('it left'))
      await t.rejects(waits, { message: 'it left' })
    }
    return refs
  })()
  await settle()
  gc()
  t.ok(left.filter(ref => ref.deref() !== undefined).length < 5)
  const stays = changes.next(never)
  changes.wake()
  await stays
  const closing = new AbortController()
  const owned = new Changes(closing.signal)
  const waits = owned.next(never)
  closing.abort(new Error('it closes'))
  owned.wake()
  await t.rejects(waits, { message: 'it closes' })
  await t.rejects(owned.next(never), { message: 'it closes' })
})
