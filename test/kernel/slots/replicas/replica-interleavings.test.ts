import assert from 'node:assert/strict'
import t from 'tap'
import {
  slotConfigSchema, type ConfigService, type NamedSlotConfig, type SlotConfigInput, type SlotLease
} from '../../../../kernel/contract/index.js'
import { ReplicaSets } from '../../../../kernel/slots/replicas/replica-sets.js'
import { mostReplicas, replicaPlace } from '../../../../kernel/slots/schedule/replica-names.js'
import { FakeClock, settle } from '../../../../kernel/testing/fake-clock.js'
import { FakeRuntime, type EngineBehaviour } from '../../../../kernel/testing/fake-runtime.js'
import { createFleetHarness, type FleetHarness } from '../fleet-harness.js'
import { Random } from '../random.js'

// on a busy machine the scripts take their time
t.setTimeout(300_000)

const SCRIPTS = Number(process.env.SVC_TEST_SCRIPTS ?? 100)
const STEPS = 60
const MOST = 4
const WORKERS = 2
/** How many may wait for the slot. */
const BOUND = 8
const never = new AbortController().signal
const nothing = (): void => {}

/** An engine that may do anything an engine has been seen to do, also never to come up. */
function behaviourOf (random: Random): EngineBehaviour {
  const ms = (): number => random.pick([0, 1, 40, 400, 3_000, 20_000])
  return {
    createMs: ms(),
    createFails: random.chance(0.05),
    startMs: ms(),
    ...(random.chance(0.1) ? { startFails: random.pick(['error', 'port'] as const) } : {}),
    warmMs: random.chance(0.1) ? Infinity : ms(),
    ...(random.chance(0.2) ? { diesAfterMs: random.pick([0, 30, 5_000, 60_000]), exitCode: random.pick([0, 1, 137]) } : {}),
    stopMs: random.pick([0, 1, 100, 2_000, 10_000]),
    removeMs: random.pick([0, 5, 500]),
    removeFails: random.chance(0.05) ? 1 : 0,
    logs: ['one']
  }
}

/** One slot `agent` whose number of replicas changes under requests, verbs, crashes and restarts of the gateway. */
class Script {
  readonly #random: Random
  readonly #clock = new FakeClock()
  readonly #runtime: FakeRuntime
  readonly #atWork = new Map<SlotLease, string>()
  #slot: NamedSlotConfig
  #harness: FleetHarness
  #sets: ReplicaSets
  #calm = false
  #asked = 0
  /** One entry for each end of a request or verb: more than were asked means one that had two. */
  #answered = 0
  #verbs = 0

  constructor (seed: number) {
    this.#random = new Random(seed)
    this.#runtime = new FakeRuntime(this.#clock, () => this.#calm ? {} : behaviourOf(this.#random))
    this.#slot = this.#configured()
    ;[this.#harness, this.#sets] = this.#gateway()
  }

  #configured (): NamedSlotConfig {
    const max = 1 + this.#random.int(MOST)
    const input: SlotConfigInput = {
      replicas: 1 + this.#random.int(max),
      max_replicas: max,
      min_replicas: this.#random.int(max + 1),
      workers: WORKERS,
      idle_timeout_s: 60,
      scale_up_wait_s: this.#random.pick([0, 1, 5]),
      scale_down_wait_s: this.#random.pick([5, 30])
    }
    return { ...slotConfigSchema.parse(input), name: 'agent', provider: 'fake' }
  }

  /** Names in the fleet. */
  #members (): string[] {
    return Array.from({ length: mostReplicas(this.#slot) }, (_, i) => i === 0 ? 'agent' : `agent.${i + 1}`)
  }

  #inputs (): Record<string, SlotConfigInput> {
    const { name: _, ...slot } = this.#slot
    return Object.fromEntries(this.#members().map((name, i) => [name, { ...slot, port: 7001 + i }]))
  }

  #gateway (states?: FleetHarness['states']): [FleetHarness, ReplicaSets] {
    const harness = createFleetHarness({
      clock: this.#clock,
      runtime: this.#runtime,
      slots: this.#members(),
      configs: this.#inputs(),
      bound: BOUND,
      workers: () => WORKERS,
      ...(states === undefined ? {} : { states })
    })
    const slot = (): NamedSlotConfig => this.#slot
    const config = {
      get snapshot () { return { svc: harness.config.snapshot.svc, slots: new Map([['agent', slot()]]) } }
    } as unknown as ConfigService
    const sets = new ReplicaSets({
      fleet: harness.fleet, gate: { admit: () => null, lends: () => true, released: nothing }, clock: this.#clock, config,
      events: { emit: nothing } as never, log: { debug: nothing, info: nothing, warn: nothing, error: nothing }
    })
    return [harness, sets]
  }

  async start (): Promise<void> {
    let isUp = false
    const starting = this.#harness.fleet.start().then(() => { isUp = true })
    for (let i = 0; i < 50 && !isUp; i++) await this.#clock.advance(10_000)
    assert.ok(isUp, 'start ended')
    await starting
    this.#sets.open()
  }

  /** As the slot manager has it: its set while it may have several engines, else its owner. */
  async #lease (signal: AbortSignal, low: boolean): Promise<SlotLease> {
    const set = this.#sets.find('agent')
    if (set === null) return await this.#harness.fleet.owner('agent').acquire(signal, false, { low })
    return set.tryAcquire(false, null) ?? await set.acquire(signal, { light: false, low, source: null })
  }

  async #request (): Promise<void> {
    this.#asked++
    const controller = new AbortController()
    if (this.#random.chance(0.3)) this.#clock.setTimer(this.#random.int(5_000), () => controller.abort(new Error('the client left')))
    const holdMs = this.#random.pick([0, 10, 1_000, 15_000])
    const [low, breaks] = [this.#random.chance(0.3), this.#random.chance(0.1)]
    try {
      const lease = await this.#lease(controller.signal, low)
      const id = [...this.#runtime.engines.values()].find(({ spec, state }) => state === 'running' && spec.port === lease.address.port)?.id ?? 'none'
      this.#atWork.set(lease, id)
      this.#clock.setTimer(holdMs, () => {
        this.#atWork.delete(lease)
        lease.release(breaks)
      })
    } catch {
      // refused, failed or given up: an answer all the same
    }
    this.#answered++
  }

  async #verb (): Promise<void> {
    const set = this.#sets.find('agent')
    if (set === null) return
    this.#asked++
    this.#verbs++
    const controller = new AbortController()
    if (this.#random.chance(0.3)) this.#clock.setTimer(this.#random.int(5_000), () => controller.abort(new Error('the operator left')))
    try {
      const what = this.#random.int(5)
      if (what === 0) await set.load(controller.signal)
      else if (what === 1) await set.ensureReady(controller.signal)
      else if (what === 2) await set.restart(controller.signal)
      else if (what === 3) await set.returnTo('another', controller.signal)
      else await set.unload(this.#random.chance(0.3))
    } catch {
      // an answer too
    }
    this.#verbs--
    this.#answered++
  }

  /** A file that was written: other numbers, which may add replicas and take some away. */
  #edit (): void {
    const before = this.#members()
    this.#slot = this.#configured()
    const gone = Object.fromEntries(before.slice(this.#members().length).map(name => [name, null]))
    this.#harness.configure({ ...this.#inputs(), ...gone })
    this.#sets.follow()
  }

  async #restartGateway (): Promise<void> {
    this.#sets.close()
    let isClosed = false
    const closing = this.#harness.fleet.close(() => true).then(() => { isClosed = true })
    for (let i = 0; i < 50 && !isClosed; i++) await this.#clock.advance(10_000)
    assert.ok(isClosed, 'close ended')
    await closing
    this.#atWork.clear()
    ;[this.#harness, this.#sets] = this.#gateway(this.#harness.states)
    await this.start()
  }

  #crash (): void {
    const running = [...this.#runtime.engines.values()].filter(({ state }) => state === 'running')
    if (running.length > 0) this.#runtime.exit(this.#random.pick(running).id, this.#random.pick([0, 1, 137]))
  }

  async step (): Promise<void> {
    const what = this.#random.int(22)
    if (what < 10) for (let i = this.#random.int(4); i >= 0; i--) void this.#request()
    else if (what < 12) void this.#verb()
    else if (what === 12) this.#edit()
    else if (what === 13) this.#crash()
    else if (what === 14) this.#clock.setWall(this.#clock.now() + this.#random.pick([-1, 1]) * 86_400_000)
    else if (what === 15 && this.#random.chance(0.3)) await this.#restartGateway()
    else await this.#clock.advance(this.#random.pick([0, 1, 10, 100, 1_000, 7_000, 40_000]))
    await settle()
  }

  /** What must hold at every moment. */
  check (): void {
    assert.deepEqual(this.#runtime.doubles, [], 'never two engines at one place')
    assert.ok(this.#answered <= this.#asked, 'one outcome each')
    for (const { spec } of this.#runtime.engines.values()) {
      const { slot, index } = replicaPlace(spec.labels['svc.slot'] ?? '')
      assert.ok(slot === 'agent' && index >= 1 && index <= MOST, 'an engine is at a place of the slot')
    }
    const byEngine = new Map<string, number>()
    for (const id of this.#atWork.values()) byEngine.set(id, (byEngine.get(id) ?? 0) + 1)
    for (const [id, requests] of byEngine) assert.ok(id === 'none' || requests <= WORKERS, `${id}: never more than its workers`)
    const set = this.#sets.find('agent')
    if (set === null) return
    const { replicas, waiting, workers } = set.status()
    assert.equal(replicas!.length, mostReplicas(this.#slot), 'as many places as there may be engines')
    assert.ok(waiting <= BOUND + this.#verbs, 'the line is bounded')
    assert.ok((workers ?? 0) <= WORKERS * MOST)
  }

  async finish (): Promise<void> {
    this.#calm = true
    for (const engine of this.#runtime.engines.values()) engine.removeFails = 0
    await this.#clock.advance(1_000_000)
    assert.equal(this.#answered, this.#asked, 'every request and verb had its outcome')
    await this.#isUsable()
    // what resisted its removal when its place was taken away goes with the next start
    await this.#restartGateway()
    this.#sets.close()
    let isClosed = false
    void this.#harness.fleet.close(() => false).then(() => { isClosed = true })
    await this.#clock.advance(1_000_000)
    assert.ok(isClosed, 'close ended')
    assert.deepEqual([...this.#runtime.engines.keys()], [], 'no engine is orphaned')
    assert.equal(this.#clock.pending, 0, 'no timer is left')
    this.check()
  }

  /** Whatever happened, once engines work a burst of requests is served, by as many replicas as it needs. */
  async #isUsable (): Promise<void> {
    const { fleet } = this.#harness
    const load = (this.#sets.find('agent')?.load(never) ?? fleet.owner('agent').load(never)).catch(() => undefined)
    await this.#clock.advance(1_000_000)
    await load
    const burst = Array.from({ length: BOUND }, () => this.#lease(never, false))
    await this.#clock.advance(100_000)
    const most = mostReplicas(this.#slot)
    if (most === MOST) assert.equal(this.#members().filter(name => fleet.core(name)?.inFlight === WORKERS).length, MOST, 'all come for a burst')
    // those in line get what the first ones give back
    for (const lease of burst) (await lease).release()
  }
}

t.test(`${SCRIPTS} random scripts of requests, verbs, crashes, restarts and changing numbers of replicas`, async t => {
  const first = Number(process.env.SVC_TEST_SEED ?? 1)
  const last = process.env.SVC_TEST_SEED === undefined ? SCRIPTS : first
  for (let seed = first; seed <= last; seed++) {
    const script = new Script(seed)
    try {
      await script.start()
      for (let i = 0; i < STEPS; i++) {
        await script.step()
        script.check()
      }
      await script.finish()
    } catch (error) {
      t.fail(`seed ${seed}: ${(error as Error).message}`, { stack: (error as Error).stack ?? '' })
      return
    }
  }
  t.pass(`${last - first + 1} scripts`)
})
