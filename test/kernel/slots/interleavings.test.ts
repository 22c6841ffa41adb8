import assert from 'node:assert/strict'
import t from 'tap'
import type { SlotLease, SlotState, SvcError } from '../../../kernel/contract/index.js'
import { isLegal } from '../../../kernel/slots/schedule/slot-machine.js'
import type { SlotFleet } from '../../../kernel/slots/life/slot-fleet.js'
import type { SlotOwner } from '../../../kernel/slots/life/slot-owner.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'
import { FakeRuntime, type EngineBehaviour } from '../../../kernel/testing/fake-runtime.js'
import { createFleet } from './fleet-harness.js'
import { Random } from './random.js'

// on a busy machine the scripts take their time
t.setTimeout(300_000)

const SCRIPTS = Number(process.env.SVC_TEST_SCRIPTS ?? 300)
const STEPS = 40
const SLOTS = ['a', 'b']
/** How many may wait for a slot. */
const BOUND = 4

/** An engine that may do anything an engine has been seen to do. */
function behaviourOf (random: Random): EngineBehaviour {
  const ms = (): number => random.pick([0, 1, 40, 400, 3_000, 20_000])
  return {
    createMs: ms(),
    createFails: random.chance(0.05),
    startMs: ms(),
    ...(random.chance(0.1) ? { startFails: random.pick(['error', 'port'] as const) } : {}),
    warmMs: random.chance(0.1) ? Infinity : ms(),
    ...(random.chance(0.25) ? { diesAfterMs: random.pick([0, 1, 30, 500, 5_000, 60_000]),
      exitCode: random.pick([0, 1, 137]) } : {}),
    stopMs: random.pick([0, 1, 100, 2_000, 10_000]),
    removeMs: random.pick([0, 5, 500]),
    removeFails: random.chance(0.05) ? 1 + random.int(2) : 0,
    logs: ['one', 'two']
  }
}

interface Held { readonly lease: SlotLease, readonly engineId: string, readonly light: boolean }

class Script {
  readonly random: Random
  readonly clock = new FakeClock()
  calm = false
  readonly runtime: FakeRuntime
  fleet: SlotFleet
  asked = 0
  answered = 0
  readonly held = new Set<Held>()
  /** When a verb last allowed a busy slot to be stopped. */
  readonly verbs = new Map<string, number>()
  readonly busyStops: string[] = []
  /** Requests that wait for a worker, in the order they asked. */
  readonly lines = new Map<string, symbol[]>(SLOTS.map(slot => [slot, []]))
  readonly disorder: string[] = []
  readonly log: string[] = []

  constructor (seed: number) {
    this.random = new Random(seed)
    this.runtime = new FakeRuntime(this.clock, () => this.calm ? {} : behaviourOf(this.random))
    const stop = this.runtime.stop.bind(this.runtime)
    this.runtime.stop = async (id, timeoutS) => {
      const engine = this.runtime.engines.get(id)
      const slot = engine?.spec.labels['svc.slot'] ?? ''
      if (engine?.state === 'running') for (const { engineId } of this.held) if (engineId === id && !this.verbs.has(slot)) this.busyStops.push(`${slot} ${id}`)
      await stop(id, timeoutS)
    }
    this.fleet = this.newFleet()
  }

  newFleet (): SlotFleet {
    return createFleet({
      clock: this.clock,
      runtime: this.runtime,
      slots: SLOTS,
      idleTimeoutS: 30,
      bound: BOUND,
      workers: () => this.random.pick([null, 1, 1, 2, 3])
    })
  }

  /** A request: waits, perhaps gives up, holds the slot for a while, lets go. Always ends in one outcome. */
  async request (slot: string): Promise<void> {
    this.asked++
    const controller = new AbortController()
    if (this.random.chance(0.3)) this.clock.setTimer(this.random.int(5_000), () => controller.abort(new Error('the client left')))
    const holdMs = this.random.pick([0, 10, 1_000, 15_000])
    const light = this.random.chance(0.1)
    try {
      const owner = this.fleet.owner(slot)
      const lease = this.atOnce(owner, light) ?? await this.inLine(owner, light, controller.signal)
      const held = { lease, engineId: owner.core.engine?.id ?? '', light }
      this.held.add(held)
      this.clock.setTimer(holdMs, () => {
        this.held.delete(held)
        lease.release(this.random.chance(0.1))
        lease.release()
      })
    } catch {
      // refused, failed or given up: an answer all the same
    }
    this.answered++
  }

  /** Nobody overtakes those who stand in line. */
  atOnce (owner: SlotOwner, light: boolean): SlotLease | null {
    const { waitingWorkers } = owner.core
    const lease = owner.tryAcquire(light)
    if (lease !== null && !light && waitingWorkers > 0) this.disorder.push(`${owner.name} overtaken`)
    return lease
  }

  /** Who is let in is the first of those that still wait. */
  async inLine (owner: SlotOwner, light: boolean, signal: AbortSignal): Promise<SlotLease> {
    const line = this.lines.get(owner.name)!
    const ticket = Symbol(owner.name)
    const { waitingWorkers, waitingLeases } = owner.core
    if (!light) line.push(ticket)
    try {
      const lease = await owner.acquire(signal, light)
      if (!light && line[0] !== ticket) this.disorder.push(`${owner.name} out of order`)
      return lease
    } catch (error) {
      if ((error as SvcError).code === 'slot.queue_full' && waitingWorkers + waitingLeases < BOUND) this.disorder.push(`${owner.name} turned away`)
      throw error
    } finally {
      if (!light) line.splice(line.indexOf(ticket), 1)
    }
  }

  async verb (slot: string): Promise<void> {
    this.asked++
    const owner = this.fleet.owner(slot)
    const controller = new AbortController()
    if (this.random.chance(0.3)) this.clock.setTimer(this.random.int(5_000), () => controller.abort(new Error('the operator left')))
    try {
      const what = this.random.int(5)
      if (what > 1) this.verbs.set(slot, this.clock.now())
      if (what === 0) await owner.load(controller.signal)
      else if (what === 1) await owner.ensureReady(controller.signal)
      else if (what === 2) await owner.restart(this.random.chance(0.3), controller.signal)
      else await owner.unload(this.random.chance(0.3))
    } catch {
      // an answer too
    }
    this.answered++
  }

  async step (): Promise<void> {
    const slot = this.random.pick(SLOTS)
    const what = this.random.int(20)
    if (what < 9) void this.request(slot)
    else if (what < 12) void this.verb(slot)
    else if (what === 12) void this.fleet.owner(slot).evict('a test evicts')
    else if (what === 13) this.crash(slot)
    else if (what === 14 && this.random.chance(0.3)) await this.restartGateway()
    else await this.clock.advance(this.random.pick([0, 1, 10, 100, 1_000, 7_000, 40_000]))
    await settle()
  }

  crash (slot: string): void {
    const engine = this.runtime.running(slot)
    if (engine !== undefined) this.runtime.exit(engine.id, this.random.pick([0, 1, 137]))
  }

  async restartGateway (): Promise<void> {
    let closed = false
    const closing = this.fleet.close(() => true).then(() => { closed = true })
    for (let i = 0; i < 50 && !closed; i++) await this.clock.advance(10_000)
    assert.ok(closed, 'close ended')
    await closing
    this.held.clear()
    this.fleet = this.newFleet()
    let started = false
    const starting = this.fleet.start().then(() => { started = true })
    for (let i = 0; i < 50 && !started; i++) await this.clock.advance(10_000)
    assert.ok(started, 'start ended')
    await starting
  }

  /** What must hold at every moment. */
  check (): void {
    assert.deepEqual(this.runtime.doubles, [], 'never two engines of one slot')
    assert.deepEqual(this.busyStops, [], 'never a stop of a busy slot that nobody asked for')
    assert.deepEqual(this.disorder, [], 'first come, first served, and nobody turned away without need')
    for (const slot of SLOTS) {
      const { engine, waitingWorkers, waitingLeases } = this.fleet.owner(slot).core
      const atWork = [...this.held].filter(({ engineId, light }) => engineId === engine?.id && !light).length
      assert.ok(atWork <= (engine?.workers ?? Infinity), `${slot}: never more than workers in flight`)
      assert.ok(waitingWorkers + waitingLeases <= BOUND, `${slot}: the line is bounded`)
    }
  }

  async finish (): Promise<void> {
    this.calm = true
    await this.clock.advance(1_000_000)
    assert.equal(this.answered, this.asked, 'every waiter was answered')
    for (const slot of SLOTS) await this.leavable(slot)
    let closed = false
    void this.fleet.close(() => false).then(() => { closed = true })
    await this.clock.advance(1_000_000)
    assert.ok(closed, 'close ended')
    assert.deepEqual([...this.runtime.engines.keys()], [], 'no orphan engine')
    assert.equal(this.clock.pending, 0, 'no timer left')
    this.check()
  }

  /** Whatever happened to the slot, a verb brings it up again once its engine works. */
  async leavable (slot: string): Promise<void> {
    const owner = this.fleet.owner(slot)
    for (let attempt = 0; attempt < 4 && owner.core.state !== 'ready' && owner.core.state !== 'idle'; attempt++) {
      const loading = owner.load(new AbortController().signal).catch(() => {})
      await this.clock.advance(100_000)
      await loading
    }
    assert.ok(['ready', 'idle'].includes(owner.core.state) || owner.core.lastUsedAt !== null, `slot ${slot} can be left from ${owner.core.state}`)
    const controller = new AbortController()
    const lease = owner.acquire(controller.signal)
    await this.clock.advance(100_000)
    ;(await lease).release()
  }
}

/** Transitions that the scripts below take, and those of them that nothing allows: the next test looks at them. */
const seen = new Set<string>()
const illegal: string[] = []

/** Reads what is published of each slot of a fleet, until the returned function is called. */
function watch (fleet: SlotFleet, seed: number): () => Promise<unknown> {
  const stop = new AbortController()
  const watching = SLOTS.map(async slot => {
    let from: SlotState = fleet.owner(slot).core.state
    for await (const { state } of fleet.feed(slot).read(() => fleet.status(slot), stop.signal)) {
      seen.add(`${from} -> ${state}`)
      if (!isLegal(from, state)) illegal.push(`seed ${seed}: ${from} -> ${state}`)
      from = state
    }
  })
  return () => {
    stop.abort()
    return Promise.all(watching)
  }
}

t.test(`${SCRIPTS} random scripts of requests, verbs, crashes, hangs and restarts`, async t => {
  const first = Number(process.env.SVC_TEST_SEED ?? 1)
  const last = process.env.SVC_TEST_SEED === undefined ? SCRIPTS : first
  for (let seed = first; seed <= last; seed++) {
    const script = new Script(seed)
    try {
      await script.fleet.start()
      let { fleet } = script
      let unwatch = watch(fleet, seed)
      for (let i = 0; i < STEPS; i++) {
        await script.step()
        script.check()
        if (fleet === script.fleet) continue
        await unwatch()
        fleet = script.fleet
        unwatch = watch(fleet, seed)
      }
      await settle()
      await unwatch()
      await script.finish()
    } catch (error) {
      t.fail(`seed ${seed}: ${(error as Error).message}`, { stack: (error as Error).stack ?? '' })
      if (seed > first + 3000) break
      return
    }
  }
  t.pass(`${last - first + 1} scripts`)
})

t.test('every transition that the scripts take is legal', t => {
  t.strictSame(illegal, [])
  if (process.env.SVC_TEST_SEED === undefined) t.ok(seen.size > 15, `${seen.size} different transitions were taken`)
  t.end()
})
