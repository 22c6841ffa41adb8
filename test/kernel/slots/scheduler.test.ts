import assert from 'node:assert/strict'
import fc from '../../property.js'
import t from 'tap'
import { slotStates, type SlotState } from '../../../kernel/contract/index.js'
import { backoffMs, crashAttempts } from '../../../kernel/async/backoff.js'
import { canServe, freeWorkers, lendAnother, takeOneBack } from '../../../kernel/slots/schedule/leases.js'
import {
  newCore, type CoreFailure, type Engine, type FailureClass, type LaunchFailure, type ScheduledSlot, type SlotEffect,
  type SlotInput,
  type Wants
} from '../../../kernel/slots/schedule/scheduled-slot.js'
import { isLegal, isLoading, isServing } from '../../../kernel/slots/schedule/slot-machine.js'
import { decide } from '../../../kernel/slots/schedule/slot-scheduler.js'
import { decisions } from './decision-table.js'

const NOW = 1_000_000
const failure: LaunchFailure = { code: 'slot.load_failed', message: 'boom', logTail: [], leftover: null, quiet: false, kind: 'heals' }

function engineOf (id: string, workers: number | null = null): Engine {
  return { id, address: { host: '127.0.0.1', port: 1 }, label: '', configHash: '', adopted: false, workers }
}

function feed (core: ScheduledSlot, ...inputs: readonly SlotInput[]): ScheduledSlot {
  return inputs.reduce((at, input) => decide(at, input, NOW).core, core)
}

const started: SlotInput[] = [
  { type: 'phase', generation: 1, phase: 'starting', message: '' }, { type: 'phase', generation: 1, phase: 'warming', message: '' }
]
const fails = (generation: number, kind: FailureClass = 'heals'): SlotInput =>
  ({ type: 'launch-failed', generation, failure: { ...failure, kind } })
const BOUND = 3
const demand = (wants: Wants): SlotInput => ({ type: 'demand', wants, bound: BOUND })
const lease = demand('worker')
const chore: SlotInput = { type: 'demand', wants: 'worker', bound: BOUND, low: true }
const unload: SlotInput = { type: 'unload', force: false }
const offline = newCore(NOW)
const warming = feed(offline, lease, ...started)
const ready = feed(offline, { type: 'load' }, ...started, { type: 'launched', generation: 1, engine: engineOf('e1') })

const single = feed(offline, { type: 'load' }, ...started, { type: 'launched', generation: 1, engine: engineOf('e1', 1) })

const states: Readonly<Record<string, ScheduledSlot>> = {
  'offline': offline,
  'warming, one waits': warming,
  'warming, told to stop': feed(warming, unload),
  'warming, a chore waits': feed(offline, chore, ...started),
  'ready': ready,
  'serving one': feed(ready, lease),
  'its one worker taken': feed(single, lease),
  'one in line': feed(single, lease, lease),
  'one in line, soon after a crash': { ...feed(single, lease, lease), failure: { code: 'x', message: '', kind: 'heals', attempts: 1, retryAt: 0, logTail: [] }, readyAt: NOW },
  'the line full': feed(single, lease, lease, lease, demand('worker'), demand('worker')),
  'draining, one in line': feed(single, lease, lease, { type: 'restart', force: false }),
  'one in line, its engine suspect': feed(single, lease, lease, { type: 'release', generation: 1, light: false, broken: true }),
  'idle': feed(ready, { type: 'soft-idle' }),
  'draining': feed(ready, lease, unload),
  'unloading': feed(ready, unload),
  'restarting': feed(ready, { type: 'restart', force: false }),
  'error': feed(warming, fails(1)),
  'error, backing off': feed(warming, fails(1), demand('ready'), fails(2)),
  'error, nothing was started': feed(warming, fails(1), demand('ready'), fails(2, 'unfit')),
  'error, until something changes': feed(warming, fails(1, 'stays')),
  'error, something has changed': feed(warming, fails(1, 'stays'), { type: 'surroundings' }),
  'error, engine stuck': feed(ready, unload, { type: 'stop-failed', message: 'no' })
}

function inputsFor ({ generation }: ScheduledSlot): Readonly<Record<string, SlotInput>> {
  return {
    'demand lease': lease,
    'demand light': demand('lease'),
    'demand': demand('ready'),
    'leave': { type: 'leave', wants: 'worker' },
    'release': { type: 'release', generation, light: false },
    'broken release': { type: 'release', generation, light: false, broken: true },
    'answers': { type: 'answers', generation },
    'old answers': { type: 'answers', generation: generation - 1 },
    'old release': { type: 'release', generation: generation - 1, light: false },
    'load': { type: 'load' },
    unload,
    'unload by force': { type: 'unload', force: true },
    'restart': { type: 'restart', force: false },
    'surroundings': { type: 'surroundings' },
    'evict': { type: 'evict', reason: 'quiet' },
    'soft-idle': { type: 'soft-idle' },
    'drain-due': { type: 'drain-due' },
    'stop-again': { type: 'stop-again' },
    'adopt': { type: 'adopt', generation: 0 },
    'inherit': { type: 'inherit', engine: engineOf('old'), message: 'old' },
    'phase': { type: 'phase', generation, phase: 'pulling', message: '' },
    'old phase': { type: 'phase', generation: generation - 1, phase: 'pulling', message: '' },
    'launched': { type: 'launched', generation, engine: engineOf('e1') },
    'old launched': { type: 'launched', generation: generation - 1, engine: engineOf('e1') },
    'launch-failed': fails(generation),
    'old launch-failed': fails(generation - 1),
    'exited': { type: 'exited', engineId: 'e1', exitCode: 1 },
    'exited cleanly': { type: 'exited', engineId: 'e1', exitCode: 0 },
    'another exited': { type: 'exited', engineId: 'e0', exitCode: 1 },
    'unhealthy': { type: 'unhealthy', generation, message: 'ill' },
    'old unhealthy': { type: 'unhealthy', generation: generation - 1, message: 'ill' },
    'stopped': { type: 'stopped', logTail: [] },
    'stop-failed': { type: 'stop-failed', message: 'no' }
  }
}

function nameOf (effect: SlotEffect): string {
  if (effect.type === 'refuse') return `refuse ${effect.refusal.code}`
  return effect.type === 'stop' && effect.crashed ? 'stop crashed' : effect.type
}

function outcome (core: ScheduledSlot, input: SlotInput): string | undefined {
  const { core: next, effects, answer } = decide(core, input, NOW)
  if (answer === null && effects.length === 0 && JSON.stringify(next) === JSON.stringify(core)) return undefined
  const told = answer === null ? '' : ` | ${typeof answer === 'string' ? answer : answer.code}`
  const inLine = canServe(next) && next.waitingWorkers > 0 ? [`${next.waitingWorkers} in line`] : []
  return [next.state, ...next.inFlight > 0 ? [`${next.inFlight} in flight`] : [], ...inLine, ...effects.map(nameOf)].join(', ') + told
}

t.test('a slot answers each input in each state as the decision table says', async t => {
  t.strictSame(Object.keys(decisions), Object.keys(states), 'the table has every state')
  for (const [name, core] of Object.entries(states)) {
    for (const [what, input] of Object.entries(inputsFor(core))) {
      t.equal(outcome(core, input), decisions[name]![what], `${name}: ${what}`)
    }
  }
})

t.test('a load ends with the last chore that wants it, unless anybody else has asked for it', async t => {
  const leave: SlotInput = { type: 'leave', wants: 'worker' }
  const isEnded = (...inputs: SlotInput[]): boolean => feed(offline, ...inputs).aborting
  t.ok(isEnded(chore, ...started, chore, leave, leave))
  t.notOk(isEnded(chore, ...started, chore, leave), 'another chore waits')
  t.notOk(isEnded(lease, ...started, leave), 'a person may come back')
  t.notOk(isEnded(chore, ...started, lease, leave, leave), 'a person joined')
  t.notOk(isEnded(lease, ...started, chore, leave, leave), 'a chore joined')
  t.notOk(isEnded({ type: 'load' }, ...started, chore, leave), 'an operator wants it')
  const again: SlotInput = { type: 'phase', generation: 2, phase: 'starting', message: '' }
  t.notOk(isEnded(chore, ...started, leave, fails(1), chore, again, leave), 'a client that gives up early and asks again gets there')
})

t.test('the machine allows these transitions and knows who serves and who loads', async t => {
  const table: Record<SlotState, readonly SlotState[]> = {
    offline: ['pulling', 'starting'],
    pulling: ['starting', 'error', 'offline'],
    starting: ['warming', 'error', 'offline'],
    warming: ['ready', 'idle', 'error', 'offline'],
    ready: ['serving', 'idle', 'unloading', 'error'],
    serving: ['ready', 'idle', 'error'],
    idle: ['serving', 'unloading', 'ready'],
    unloading: ['offline', 'error'],
    error: ['offline', 'pulling', 'starting']
  }
  for (const from of slotStates) {
    t.ok(isLegal(from, from), `${from} may be entered again`)
    for (const to of table[from]) t.ok(isLegal(from, to), `${from} -> ${to}`)
  }
  for (const [from, to] of [['offline', 'ready'], ['offline', 'serving'], ['unloading', 'ready'], ['error', 'ready'], ['ready', 'warming']] as const) {
    t.notOk(isLegal(from, to), `${from} -> ${to}`)
  }
  t.strictSame(slotStates.filter(isServing), ['ready', 'serving', 'idle'])
  t.strictSame(slotStates.filter(isLoading), ['pulling', 'starting', 'warming'])
})

t.test('failures in a row back off from 5 s to 5 min, the first costs nothing', async t => {
  t.strictSame([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 60].map(backoffMs),
    [0, 0, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000])
  const before: CoreFailure = { code: 'x', message: '', kind: 'heals', attempts: 4, retryAt: 0, logTail: [] }
  t.equal(crashAttempts(null, NOW - 1, NOW), 1, 'the first crash')
  t.equal(crashAttempts(before, NOW - 59_999, NOW), 5, 'a crash soon after the start goes on counting')
  t.equal(crashAttempts(before, NOW - 60_000, NOW), 1, 'an engine that was sound counts anew')
  t.equal(crashAttempts(before, null, NOW), 5)
})

t.test('an engine that resists is told to go again by itself, after a pause that grows from 5 s to 5 min', async t => {
  const no: SlotInput = { type: 'stop-failed', message: 'no' }
  let core = feed(ready, unload, no)
  const pauses: number[] = []
  for (let i = 0; i < 9; i++) {
    pauses.push((core.stopAgainAt! - NOW) / 1000)
    const { core: going, effects } = decide(core, { type: 'stop-again' }, NOW)
    t.match([going.op, going.stopAgainAt, effects.map(nameOf)], ['stop', null, ['disarm-drain', 'stop crashed']])
    core = feed(going, no)
  }
  t.strictSame(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300])
  t.match(feed(core, unload, no), { stopAgainAt: NOW + 5_000 }, 'a verb starts the count anew')
  t.match(feed(core, { type: 'stop-again' }, { type: 'stopped', logTail: [] }),
    { state: 'offline', message: /^$/, failure: null, engine: null, stuck: false, resisted: 0, stopAgainAt: null }, 'once it is gone nothing is wrong any more')
  const { core: later, effects } = decide(feed(core, { type: 'stop-again' }, { type: 'stopped', logTail: [] }), { type: 'stop-again' }, NOW)
  t.match([later.op, effects], [null, { length: 0 }], 'and nothing is tried again')
})

t.test('what a launch failed of still counts once the engine that it left is gone', async t => {
  const left = feed(warming, { type: 'launch-failed', generation: 1, failure: { ...failure, code: 'runtime.failed', leftover: engineOf('left') } })
  t.match(left, { state: 'error', stuck: true, stopAgainAt: NOW + 5_000 })
  t.match(feed(left, { type: 'stop-again' }, { type: 'stopped', logTail: [] }), { state: 'error', engine: null, failure: { message: 'boom', attempts: 1 } })
})

t.test('a request that comes while an engine is told to go again waits for the next one', async t => {
  const going = feed(ready, unload, { type: 'stop-failed', message: 'no' }, { type: 'stop-again' })
  const { core, answer } = decide(going, lease, NOW)
  t.equal(answer, 'wait')
  const { effects } = decide(core, { type: 'stopped', logTail: [] }, NOW)
  t.strictSame(effects.map(nameOf), ['launch'])
})

/** A slot and the world around it: engines that obey, fail and die, and clients that come and go. */
class World {
  core = newCore(NOW)
  now = NOW
  engines = 0
  /** Who waits, in the order they came. */
  line: Wants[] = []
  /** The last generation whose engine was asked whether it is still there. */
  probed = 0
  leases: Array<{ readonly generation: number, readonly light: boolean }> = []

  step (kind: number, n: number): void {
    this.now += n
    const coin = n % 2 === 0
    const { op, generation, engine } = this.core
    switch (kind) {
      case 0: return this.feed(demand((['worker', 'lease', 'ready'] as const)[n % 3]!))
      case 12: return this.feed(coin ? lease : chore)
      case 1: return this.feed({ type: 'load' })
      case 2: return this.feed({ type: 'restart', force: coin })
      case 3: return this.feed({ type: 'unload', force: coin })
      case 4: return this.leave(n)
      case 5: return this.feed({ type: 'release', ...this.leases.shift() ?? { generation: generation - 1, light: coin }, broken: n % 5 === 0 })
      case 6: return this.feed({ type: 'evict', reason: 'quiet' })
      case 7: return this.feed({ type: 'soft-idle' })
      case 8: return this.feed({ type: 'drain-due' })
      case 9: return this.feed({ type: 'exited', engineId: engine?.id ?? 'none', exitCode: n % 3 })
      case 10: return this.feed(n % 3 === 0 ? { type: 'unhealthy', generation: generation - n % 2, message: 'ill' } : { type: 'answers', generation: generation - n % 2 })
      case 11: return coin ? this.proceed() : this.feed({ type: 'stop-again' })
      default: return op === null ? undefined : this.settle(op, n)
    }
  }

  /** A launch goes on to its next phase. */
  proceed (): void {
    const { op, state, generation } = this.core
    const phase = state === 'starting' ? 'warming' as const : state === 'warming' ? null : 'starting' as const
    if (op === 'launch' && phase !== null) this.feed({ type: 'phase', generation, phase, message: '' })
  }

  /** The running operation reports back, well or badly. */
  settle (op: 'launch' | 'stop', n: number): void {
    const { generation } = this.core
    if (op === 'stop') return this.feed(n % 4 === 0 ? { type: 'stop-failed', message: 'no' } : { type: 'stopped', logTail: [] })
    if (n % 3 === 0) return this.feed(fails(generation))
    const engine = engineOf(`e${++this.engines}`, n % 4 === 0 ? null : n % 4)
    if (n % 7 === 1) return this.feed({ type: 'launch-failed', generation, failure: { ...failure, leftover: engine, quiet: n % 2 === 0 } })
    this.proceed()
    this.proceed()
    this.feed({ type: 'launched', generation, engine })
  }

  leave (n: number): void {
    const [wants] = this.line.splice(n % Math.max(1, this.line.length), 1)
    if (wants !== undefined) this.feed({ type: 'leave', wants })
  }

  feed (input: SlotInput): void {
    const before = this.core
    const { core, effects, answer } = decide(before, input, this.now)
    const wants = input.type === 'demand' ? input.wants : 'ready'
    const short = wants !== 'ready' ? lendAnother(before, wants === 'lease', this.now)
      : input.type === 'release' && input.broken !== true ? takeOneBack(before, input.generation, input.light, this.now) : null
    if (short !== null) assert.deepEqual({ core: short, effects: [] }, { core, effects: [...effects] }, 'the short way gives what decide gives')
    this.core = core
    for (const effect of effects) this.run(effect, before)
    if (answer === 'granted' && wants !== 'ready') this.lent(wants)
    if (answer === 'wait') this.line.push(wants)
    if (typeof answer === 'object' && answer?.code === 'slot.queue_full') {
      assert.equal(this.line.filter(each => each !== 'ready').length, BOUND, 'only a full line turns somebody away')
    }
    assert.equal(answer !== null, input.type === 'demand' || input.type === 'load' || input.type === 'restart', 'who asks is answered')
    this.check(before)
  }

  run (effect: SlotEffect, before: ScheduledSlot): void {
    if (effect.type === 'launch') {
      assert.equal(effect.generation, this.core.generation)
      assert.ok(effect.generation > before.generation, 'every launch has a generation of its own')
    }
    if (effect.type === 'stop') assert.equal(effect.engine, this.core.engine)
    if (effect.type === 'probe') this.probed = effect.generation
    if (effect.type === 'refuse') this.line = []
    if (effect.type === 'grant') this.letIn(effect.workers, effect.rest)
  }

  letIn (workers: number, rest: boolean): void {
    let free = workers
    this.line = this.line.filter(wants => {
      const stays = wants === 'worker' ? free-- <= 0 : !rest
      if (!stays && wants !== 'ready') this.lent(wants)
      return stays
    })
    assert.ok(free <= 0, 'nobody is let in who does not wait')
  }

  lent (wants: Wants): void {
    assert.ok(!this.core.suspect, 'nobody is sent to an engine that may be gone')
    this.leases.push({ generation: this.core.generation, light: wants === 'lease' })
  }

  check (before: ScheduledSlot): void {
    const { core } = this
    assert.ok(isLegal(before.state, core.state), `${before.state} -> ${core.state}`)
    const count = (wants: Wants): number => this.line.filter(each => each === wants).length
    assert.deepEqual([core.waitingWorkers, core.waitingLeases, core.waitingReady], [count('worker'), count('lease'), count('ready')], 'who waits is known')
    assert.ok(core.waitingWorkers + core.waitingLeases <= BOUND, 'the line is bounded')
    const present = this.leases.filter(({ generation }) => generation === core.generation)
    assert.equal(core.inFlight, present.length, 'leases of this generation are in flight')
    assert.equal(core.light, present.filter(({ light }) => light).length)
    assert.ok(freeWorkers(core) >= 0, 'never more than it has workers for')
    assert.equal(core.state === 'serving', core.inFlight > 0, 'serving means that a request is in flight')
    if (isServing(core.state)) assert.notEqual(core.engine, null, 'who serves has an engine')
    if (core.op === 'launch') assert.equal(core.engine, null, 'never two engines')
    if (core.op === 'stop') assert.notEqual(core.engine, null)
    assert.equal(core.stopAgainAt !== null, core.stuck, 'what resists is told to go again')
    if (core.stuck) assert.notEqual(core.engine, null)
    if (core.waitingLeases + core.waitingReady > 0) assert.ok(core.op !== null || core.stopping === 'drain' || core.suspect, 'who waits waits for something')
    if (core.suspect && canServe(core)) assert.equal(this.probed, core.generation, 'a suspect engine is being asked')
    if (core.waitingWorkers > 0 && core.op === null && core.stopping === 'no' && !core.suspect) assert.ok(canServe(core) && freeWorkers(core) === 0, 'and who stands in line for a worker')
    if (core.state === 'error' && core.op === null) assert.notEqual(core.failure, null, 'an error says why')
  }
}

t.test('no order of inputs breaks the invariants, and every slot can be left in peace', async t => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 16 }), fc.integer({ min: 0, max: 20_000 })), { maxLength: 80, size: 'max' })
  fc.assert(fc.property(steps, all => {
    const world = new World()
    for (const [kind, n] of all) world.step(kind, n)
    for (let i = 0; i < 10 && world.core.op !== null; i++) world.settle(world.core.op, 5)
    world.feed({ type: 'unload', force: true })
    for (let i = 0; i < 10 && world.core.op !== null; i++) world.settle(world.core.op, 5)
    assert.equal(world.core.state, 'offline', 'an unload brings it to rest')
    assert.equal(world.core.engine, null)
    assert.deepEqual(world.line, [])
    world.feed(lease)
    world.settle('launch', 5)
    assert.ok(canServe(world.core), 'and the next request brings it up')
  }), { numRuns: 4_000 })
  t.pass('4000 orders')
})
