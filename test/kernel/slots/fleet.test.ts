import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import type { SlotStatus } from '../../../kernel/contract/index.js'
import type { EngineInspection } from '../../../kernel/contract/provider/engine-runtime.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'
import { FakeRuntime, type EngineBehaviour } from '../../../kernel/testing/fake-runtime.js'
import { createFleetHarness, type FleetHarness, type FleetOptions } from './fleet-harness.js'

const never = new AbortController().signal

interface Rig extends FleetHarness {
  readonly clock: FakeClock
  readonly runtime: FakeRuntime
  /** Outcome of some work on the clock: its value, or the code it was refused with. */
  outcome<T> (work: Promise<T>, ms?: number): Promise<T | string>
  load (slot: string): Promise<void | string>
  state (slot: string): string
}

async function rig (t: Test, behave: (slot: string, nth: number) => EngineBehaviour = () => ({}),
  options: Partial<FleetOptions> = {}): Promise<Rig> {
  const clock = options.clock ?? new FakeClock()
  const runtime = options.runtime ?? new FakeRuntime(clock, behave)
  const harness = createFleetHarness({ clock, runtime, slots: ['a'], ...options })
  await started(clock, harness.fleet.start())
  t.teardown(async () => {
    const closing = harness.fleet.close(() => false)
    for (let i = 0; i < 20; i++) await clock.advance(60_000)
    await closing
    assert.deepEqual(runtime.doubles, [], 'never two engines of one slot')
    assert.equal(clock.pending, 0, 'no timer is left')
  })
  const outcome: Rig['outcome'] = async (work, ms = 10) => {
    const told = work.catch((error: { code?: string, message: string }) => error.code ?? error.message)
    await clock.advance(ms)
    return await told
  }
  return Object.assign(harness, {
    clock,
    runtime,
    outcome,
    load: (slot: string) => outcome(harness.fleet.owner(slot).load(never)),
    state: (slot: string) => harness.fleet.status(slot).state
  })
}

async function started (clock: FakeClock, work: Promise<unknown>): Promise<void> {
  await clock.advance(10)
  await work
}

/** Whether the work is over once time has gone on by `ms`. */
async function isOver (clock: FakeClock, work: Promise<unknown>, ms: number): Promise<boolean> {
  let over = false
  const done = (): void => { over = true }
  work.then(done, done)
  await clock.advance(ms)
  return over
}

t.test('a verb brings a slot up and the idle time begins anew, however long ago its last request was', async t => {
  const { fleet, clock, state } = await rig(t)
  const lease = fleet.owner('a').acquire(never)
  await clock.advance(0)
  ;(await lease).release()
  await clock.advance(400_000)
  t.equal(state('a'), 'offline', 'unloaded for idleness')
  await clock.advance(3_600_000)
  const load = fleet.owner('a').load(never)
  await clock.advance(1_000)
  await load
  t.equal(state('a'), 'ready')
  await clock.advance(290_000)
  t.equal(state('a'), 'ready', 'stays for the whole idle time')
  await clock.advance(20_000)
  t.equal(state('a'), 'offline')
})

t.test('soft idle comes before the unload and again after every request', async t => {
  const { fleet, clock, state, load } = await rig(t, () => ({}), { idleTimeoutS: 3_600 })
  await load('a')
  await clock.advance(301_000)
  t.equal(state('a'), 'idle')
  const lease = fleet.owner('a').tryAcquire()!
  t.equal(state('a'), 'serving')
  lease.release()
  t.equal(state('a'), 'ready')
  await clock.advance(301_000)
  t.equal(state('a'), 'idle', 'the quiet time after the second request counts by itself')
  await clock.advance(3_300_000)
  t.equal(state('a'), 'offline')
})

t.test('a gateway that stops does not wait for a load that nobody will use', async t => {
  for (const when of ['while the old engine stops', 'while the new one loads']) {
    const clock = new FakeClock()
    const runtime = new FakeRuntime(clock, (_slot, nth) => nth === 0 ? { stopMs: 2_000 } : { warmMs: Infinity })
    const { fleet } = createFleetHarness({ clock, runtime, slots: ['a'] })
    await fleet.start()
    await started(clock, fleet.owner('a').load(never))
    const restart = fleet.owner('a').restart(false, never).catch((error: { code: string }) => error.code)
    await clock.advance(when === 'while the new one loads' ? 5_000 : 500)
    const closing = fleet.close(() => true)
    t.ok(await isOver(clock, closing, 5_000), when)
    t.equal(await restart, 'gateway.stopping', when)
    t.equal(runtime.engines.size, when === 'while the new one loads' ? 1 : 0, `${when}: what loads goes on and is adopted later`)
    t.equal(clock.pending, 0, `${when}: no timer is left`)
  }
})

t.test('an engine that serves stays when the gateway stops, and the next one adopts it', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock)
  const first = createFleetHarness({ clock, runtime, slots: ['a'] })
  await first.fleet.start()
  await started(clock, first.fleet.owner('a').load(never))
  await first.fleet.close(() => true)
  t.equal(runtime.created.length, 1)
  await clock.advance(3_600_000)
  const { fleet, state } = await rig(t, undefined, { clock, runtime, states: first.states })
  await clock.advance(100)
  t.match(fleet.status('a'), { state: 'ready', adopted: true, engineId: 'fake-1' })
  await clock.advance(200_000)
  t.equal(state('a'), 'ready', 'the idle clock starts with the adoption')
  t.equal(runtime.created.length, 1, 'nothing was started')
})

t.test('a slot whose file names no port is adopted too', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock)
  const options = { clock, runtime, slots: [], hash: (_slot: string, port: number) => `hash of ${port}` }
  const first = createFleetHarness(options)
  await first.fleet.start()
  first.configure({ a: {} })
  await started(clock, first.fleet.owner('a').load(never))
  t.equal(first.fleet.status('a').port, 7501)
  await first.fleet.close(() => true)

  const again = createFleetHarness({ ...options, states: first.states })
  again.configure({ a: {}, b: { port: 7502 } })
  await again.fleet.start()
  await clock.advance(100)
  t.match(again.fleet.status('a'), { state: 'ready', adopted: true, port: 7501 })
  t.equal(runtime.created.length, 1)
  const closing = again.fleet.close(() => false)
  await clock.advance(10_000)
  await closing
})

t.test('an engine that is reached by another port than its own is adopted, whatever the record of its slot says', async t => {
  class Elsewhere extends FakeRuntime {
    override async inspect (id: string): Promise<EngineInspection | null> {
      const found = await super.inspect(id)
      return found?.address == null ? found : { ...found, address: { ...found.address, port: found.address.port + 20_000 } }
    }

    override async list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
      return await Promise.all((await super.list(labels)).map(async ({ id }) => (await this.inspect(id))!))
    }

    override health (port: number): 'ok' | 'loading' | 'refused' { return super.health(port - 20_000) }
  }
  const clock = new FakeClock()
  const runtime = new Elsewhere(clock)
  const options = { clock, runtime, slots: [], hash: (_slot: string, port: number) => `hash of ${port}` }
  const first = createFleetHarness(options)
  await first.fleet.start()
  first.configure({ a: {} })
  await started(clock, first.fleet.owner('a').load(never))
  const record = first.states.get('a')!
  await first.fleet.close(() => true)

  // what a kill within the second after a launch leaves: no record, or the one before
  for (const states of [new Map(), new Map([['a', { ...record, port: 7509 }]])]) {
    const again = createFleetHarness({ ...options, states })
    again.configure({ a: {} })
    await again.fleet.start()
    await clock.advance(100)
    t.match(again.fleet.status('a'), { state: 'ready', adopted: true, port: 7501 })
    t.equal(runtime.created.length, 1)
    await again.fleet.close(() => true)
  }
})

t.test('generations go on from the engine that is found, whatever the record of its slot says', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock)
  const first = createFleetHarness({ clock, runtime, slots: ['a'] })
  await first.fleet.start()
  for (let i = 0; i < 3; i++) await started(clock, first.fleet.owner('a').restart(false, never))
  const { generation } = first.states.get('a')!
  await first.fleet.close(() => true)
  const { fleet, states } = await rig(t, undefined, { clock, runtime, states: new Map() })
  await clock.advance(100)
  t.match(fleet.status('a'), { state: 'ready', adopted: true })
  t.ok(states.get('a')!.generation > generation, 'the next engine is known to be younger')
})

t.test('a port that turns out to be taken is given up when the gateway chose it, and the launch takes another', async t => {
  const { fleet, configure, load, runtime } = await rig(t, (_slot, nth) => nth < 2 ? { startFails: 'port' } : {}, { slots: [] })
  configure({ a: {} })
  t.equal(fleet.status('a').port, null, 'a slot that does not run has none')
  await load('a')
  t.match(fleet.status('a'), { state: 'ready', port: 7503 })
  t.equal(runtime.created.length, 3)
})

t.test('a launch does not try ports for ever', async t => {
  const { fleet, configure, load, runtime } = await rig(t, () => ({ startFails: 'port' }), { slots: [] })
  configure({ a: {} })
  await load('a')
  t.match(fleet.status('a'), { state: 'error', port: null, failure: { code: 'slot.port_conflict' } })
  t.equal(runtime.created.length, 5)
})

t.test('a slot without a port holds one while it runs, and gets its last one back while that is free', async t => {
  const taken = new Set<number>()
  const { fleet, configure, load, outcome } = await rig(t, undefined, {
    slots: [], settings: { port_range_end: 7502 }, isTaken: port => taken.has(port)
  })
  configure({ a: {}, b: {}, c: {} })
  const unload = (name: string): Promise<unknown> => outcome(fleet.owner(name).unload(false), 10_000)
  await load('a')
  await load('b')
  t.same([fleet.status('a').port, fleet.status('b').port], [7501, 7502])
  t.equal(await load('c'), 'slot.load_failed', 'two ports for three')
  await unload('b')
  t.equal(fleet.status('b').port, null)
  t.equal(fleet.ports.expected('b'), 7502)
  await load('b')
  t.equal(fleet.status('b').port, 7502, 'its own again')
  await unload('b')
  await load('c')
  t.equal(fleet.status('c').port, 7502, 'what an idle slot had is another\'s when nothing else is left')
  await unload('c')
  await unload('a')
  taken.add(7501)
  await load('a')
  t.equal(fleet.status('a').port, 7502, 'somebody took the port of an idle slot: it starts all the same')
})

t.test('engines of an earlier run: what may not stay is removed, and nothing starts beside what resists', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock, () => ({ removeFails: 1 }))
  const first = createFleetHarness({ clock, runtime, slots: ['a', 'gone'] })
  await first.fleet.start()
  await started(clock, Promise.all([first.fleet.owner('a').load(never), first.fleet.owner('gone').load(never)]))
  await first.fleet.close(() => true)
  const { fleet, outcome } = await rig(t, undefined, { clock, runtime, hash: () => 'another hash' })
  t.match(fleet.status('a'), { state: 'error', failure: { code: 'runtime.failed' }, engineId: 'fake-1' })
  await outcome(fleet.owner('a').ensureReady(never), 1_000)
  t.match(fleet.status('a'), { state: 'ready', adopted: false })
  t.equal([...runtime.engines.values()].filter(engine => engine.spec.name === 'a').length, 1, 'the old one went first')
  t.ok([...runtime.engines.values()].some(engine => engine.spec.name === 'gone'), 'one whose slot is gone waits for the next start')
})

t.test('delete and create of the same name: the new slot waits for the engine of the old, however often', async t => {
  const { fleet, clock, runtime, configure, outcome } = await rig(t, () => ({ stopMs: 100 }))
  const lease = fleet.owner('a').acquire(never)
  await clock.advance(0)
  const held = await lease
  for (let i = 0; i < 3; i++) {
    configure({ a: null })
    t.throws(() => fleet.status('a'), { code: 'slot.not_found' })
    configure({ a: { port: 7001 } })
  }
  const ready = fleet.owner('a').ensureReady(never)
  await clock.advance(1_000)
  t.equal(runtime.engines.size, 1, 'a request is in flight on the old one')
  t.equal(fleet.status('a').engineId, null)
  held.release()
  await outcome(ready, 1_000)
  t.match(fleet.status('a'), { state: 'ready', engineId: 'fake-2' })
  runtime.exit('fake-2', 1)
  t.match(fleet.status('a'), { state: 'error' }, 'the new engine is watched')
})

t.test('a deleted slot whose engine cannot be removed hands it to the next slot of that name', async t => {
  const { fleet, clock, runtime, configure, load } = await rig(t, (_slot, nth) => ({ removeFails: nth === 0 ? 2 : 0 }))
  await load('a')
  const statuses: SlotStatus[] = []
  const reading = (async () => { for await (const status of fleet.feed('a').read(() => fleet.status('a'), never)) statuses.push(status) })()
  await settle()
  configure({ a: null })
  await clock.advance(10)
  t.ok(await isOver(clock, reading, 0), 'readers of the slot are let go')
  t.equal(runtime.engines.size, 1, 'it is still there')
  configure({ a: { port: 7001 } })
  t.equal(await load('a'), 'slot.load_failed', 'it resists once more')
  t.match(fleet.status('a'), { state: 'error', failure: { code: 'runtime.failed' } })
  t.equal(await load('a'), undefined)
  t.match(fleet.status('a'), { state: 'ready', engineId: 'fake-2' })
  t.equal(runtime.engines.size, 1)
})

t.test('an engine that still loads its model when the gateway stops is adopted by the next one', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock, () => ({ warmMs: 50_000 }))
  let states: FleetHarness['states'] | undefined
  for (const _ of ['loads', 'is adopted, and loads on']) {
    const { fleet, states: left } = createFleetHarness({ clock, runtime, slots: ['a'], ...(states === undefined ? {} : { states }) })
    states = left
    await fleet.start()
    const ready = fleet.owner('a').ensureReady(never).catch((error: { code: string }) => error.code)
    await clock.advance(10_000)
    t.equal(fleet.status('a').state, 'warming')
    t.ok(await isOver(clock, fleet.close(() => true), 1_000))
    t.equal(await ready, 'gateway.stopping')
  }
  const { fleet } = await rig(t, undefined, { clock, runtime, states: states! })
  await clock.advance(40_000)
  t.match(fleet.status('a'), { state: 'ready', adopted: true })
  t.equal(runtime.created.length, 1)
})

t.test('requests in flight: a disable drains them, a forced unload does not wait', async t => {
  t.test('a slot that is disabled lets its requests end and unloads', async t => {
    const { fleet, clock, configure, state } = await rig(t)
    const lease = fleet.owner('a').acquire(never)
    await clock.advance(0)
    configure({ a: { port: 7001, enabled: false } })
    await clock.advance(4_000)
    t.equal(state('a'), 'serving', 'it may end')
    ;(await lease).release()
    await clock.advance(0)
    t.equal(state('a'), 'offline')
  })
  t.test('disable, and the request does not end', async t => {
    const { fleet, clock, configure, state } = await rig(t)
    const lease = fleet.owner('a').acquire(never)
    await clock.advance(0)
    configure({ a: { port: 7001, enabled: false } })
    await clock.advance(5_001)
    t.equal(state('a'), 'offline', 'the drain time is over')
    ;(await lease).release()
    t.equal(fleet.status('a').inFlight, 0, 'a late release counts nothing')
  })
  t.test('a forced unload ends requests at once', async t => {
    const { fleet, clock, outcome, state } = await rig(t)
    const lease = fleet.owner('a').acquire(never)
    await clock.advance(0)
    await lease
    t.equal(await outcome(fleet.owner('a').unload(true)), undefined)
    t.equal(state('a'), 'offline')
  })
})

t.test('a launch that waits for its model ends with the budget of the moment', async t => {
  let waits = true
  const { fleet, outcome, state, configure } = await rig(t, undefined, {
    settings: { model_fetch_timeout_s: 5 }, prepared: () => waits ? new Promise(() => {}) : Promise.resolve()
  })
  t.equal(await outcome(fleet.owner('a').load(never), 5_000), 'slot.load_failed')
  t.match(fleet.status('a').failure, { message: /timed out after 5 s while fetching the model/ })
  configure({}, { model_fetch_timeout_s: 2 })
  t.equal(await outcome(fleet.owner('a').load(never), 2_000), 'slot.load_failed')
  t.match(fleet.status('a').failure, { message: /timed out after 2 s/ })
  waits = false
  await outcome(fleet.owner('a').load(never))
  t.equal(state('a'), 'ready', 'and nothing of them stands in the way')
})

t.test('an error can be left by the next request, by a verb, and by an unload', async t => {
  const { fleet, clock, runtime, outcome, state } = await rig(t, (_slot, nth) => nth < 3 ? { startFails: 'error', logs: ['no memory'] } : {})
  t.equal(await outcome(fleet.owner('a').acquire(never)), 'slot.load_failed')
  t.match(fleet.status('a'), { state: 'error', failure: { attempts: 1, logTail: ['no memory'] } })
  t.equal(await outcome(fleet.owner('a').acquire(never)), 'slot.load_failed', 'those whose launch it was hear what it failed of')
  t.equal(runtime.created.length, 2, 'the first retry is tried at once')
  t.equal(await outcome(fleet.owner('a').acquire(never)), 'slot.crash_looping')
  t.equal(runtime.created.length, 2, 'then it backs off')
  t.equal(fleet.status('a').waiting, 0)
  t.equal(await outcome(fleet.owner('a').load(never)), 'slot.load_failed', 'a verb tries at once')
  t.match(fleet.status('a'), { failure: { attempts: 1 } }, 'and forgets the failures')
  await fleet.owner('a').unload(false)
  t.equal(state('a'), 'offline')
  const lease = fleet.owner('a').acquire(never)
  await clock.advance(0)
  ;(await lease).release()
  t.equal(state('a'), 'ready')
})

t.test('who gives up while the slot loads', async t => {
  const { fleet, clock, outcome } = await rig(t, () => ({ warmMs: 1_000 }))
  const controller = new AbortController()
  const first = fleet.owner('a').acquire(controller.signal)
  const second = fleet.owner('a').acquire(never)
  await clock.advance(500)
  controller.abort(new Error('left'))
  t.equal(await outcome(first), 'left')
  t.equal(fleet.status('a').waiting, 1)
  await clock.advance(1_000)
  t.equal((await second).slot, 'a')
  t.equal(fleet.status('a').inFlight, 1, 'no lease for the one who left')
  ;(await second).release()
})

t.test('a request whose client has left before it asked starts nothing', async t => {
  const { fleet, runtime, outcome } = await rig(t)
  t.equal(await outcome(fleet.owner('a').acquire(AbortSignal.abort(new Error('left')))), 'left')
  t.equal(runtime.created.length, 0)
})

t.test('what runs keeps its model and provider, whatever the file says meanwhile', async t => {
  const { fleet, configure, outcome, load } = await rig(t, () => ({}), { hash: () => Math.random().toString() })
  configure({ a: { port: 7001, model: { default: 'one' } } })
  await load('a')
  configure({ a: { port: 7001, model: { default: 'two' } } })
  t.match(fleet.status('a'), { modelId: 'one', configDrift: true })
  const lease = fleet.owner('a').tryAcquire()!
  t.equal(lease.modelId, 'one')
  lease.release()
  await outcome(fleet.owner('a').restart(false, never))
  t.match(fleet.status('a'), { modelId: 'two' })
})

t.test('a launch first removes what bears its slot\'s name: an engine that its host made after an earlier gateway had died', async t => {
  const { runtime, outcome, state, fleet } = await rig(t)
  const spec = {
    name: 'late', port: null, env: {}, labels: { 'svc.instance': 'i', 'svc.slot': 'a' },
    form: { kind: 'process' as const, command: '/bin/true', args: [], workingDir: null, label: 'fake', bindHost: '127.0.0.1' }
  }
  const make = (labels: Record<string, string>): Promise<string> => outcome(runtime.create({ ...spec, labels }, never), 10_000)
  const late = await make(spec.labels)
  const foreign = await make({ 'svc.instance': 'another', 'svc.slot': 'b' })
  await outcome(fleet.owner('a').load(never), 60_000)
  t.equal(state('a'), 'ready')
  t.equal(await runtime.inspect(late), null)
  t.not(await runtime.inspect(foreign), null)
  t.not(fleet.status('a').engineId, late)
  await outcome(runtime.remove(foreign), 10_000)
})
