import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SlotLease } from '../../../../kernel/contract/index.js'
import { GpuStateFile } from '../../../../kernel/slots/gpu/gpu-arbiter-file.js'
import { FakeClock } from '../../../../kernel/testing/fake-clock.js'
import { FakeRuntime, type EngineBehaviour } from '../../../../kernel/testing/fake-runtime.js'
import { gpuConfigs, GpuDisk, gpuRig, runningSlots, type GpuRig } from './gpu-rig.js'

const never = new AbortController().signal
const MINUTE = 60_000

interface Rig extends GpuRig {
  readonly clock: FakeClock
  readonly runtime: FakeRuntime
  readonly disk: GpuDisk
  /** Value, or the code of the refusal, once time has gone on. */
  outcome<T> (work: Promise<T>, ms?: number): Promise<T | string>
  lease (slot: string): Promise<SlotLease>
  load (slot: string): Promise<unknown>
  running (): string[]
  phases (): string[]
}

async function rig (t: Test, behave: (slot: string) => EngineBehaviour = () => ({}), disk = new GpuDisk(),
  runtime?: FakeRuntime, clock = new FakeClock(), workers: number | null = null, unread?: ReadonlySet<string>): Promise<Rig> {
  const engines = runtime ?? new FakeRuntime(clock, behave)
  const harness = gpuRig(clock, engines, disk, {}, workers, unread)
  const { fleet, arbiter } = harness
  const outcome: Rig['outcome'] = async (work, ms = 10) => {
    const told = work.catch((error: { code?: string, message: string }) => error.code ?? error.message)
    await clock.advance(ms)
    return await told
  }
  await arbiter.open()
  await outcome(fleet.start(), 1_000)
  arbiter.resume()
  let dead = false
  t.teardown(async () => {
    if (dead) return
    arbiter.halt()
    const closing = fleet.close(() => false).then(() => arbiter.close())
    for (let i = 0; i < 20; i++) await clock.advance(60_000)
    await closing
    assert.equal(clock.pending, 0, 'no timer is left')
  })
  const lease = (slot: string): Promise<SlotLease> => harness.admitted(slot, never, owner => owner.acquire(never))
  return {
    ...harness,
    die: () => {
      dead = true
      harness.die()
    },
    clock,
    runtime: engines,
    disk,
    outcome,
    lease,
    load: slot => outcome(harness.admitted(slot, never, owner => owner.load(never)), 10_000),
    running: () => runningSlots(engines),
    phases: () => harness.events.filter(event => event.type === 'gpu.mode').map(event => String(event.data?.phase))
  }
}

function lent (value: SlotLease | string): SlotLease {
  assert.equal(typeof value, 'object', `a lease, not ${String(value)}`)
  return value as SlotLease
}

t.test('an image request takes the GPU, and quiet gives it back', async t => {
  const { load, lease, outcome, running, clock, arbiter, disk, phases, fleet } = await rig(t)
  for (const slot of ['chat', 'embed', 'talk']) await load(slot)
  const image = lent(await outcome(lease('img')))
  t.strictSame(running(), ['talk', 'img'], 'what needs no GPU goes on')
  t.match(disk.state, { mode: 'img', saved_llm_slots: ['chat', 'embed'] })
  t.match(arbiter.status(), { mode: 'img', switching: false, error: null, image_slots: ['img'], llm_slots: ['chat', 'embed'], idle_restore_minutes: 30 })

  const refusal = await lease('chat').catch((error: unknown) => error)
  t.match(refusal, { code: 'gpu.image_mode', status: 503, details: { slot: 'chat', retry_after_s: 1800 } })
  t.equal(await outcome(lease('talk')).then(value => typeof value), 'object', 'the CPU slot serves')

  await clock.advance(40 * MINUTE)
  t.equal(arbiter.status().mode, 'img', 'a running job counts, however long it takes')
  image.release()
  await clock.advance(29 * MINUTE)
  t.equal(arbiter.status().mode, 'img')
  t.match(await lease('embed').catch((error: unknown) => error), { details: { retry_after_s: 60 } }, 'what is left of the window')
  await clock.advance(2 * MINUTE)
  t.strictSame(running(), ['chat', 'embed', 'talk'], 'all that were stopped are back')
  t.match(disk.state, { mode: 'llm', saved_llm_slots: { length: 0 } })
  t.strictSame(phases(), ['claiming', 'clearing', 'img', 'yielding', 'freeing', 'reloading', 'llm'])
  t.equal(fleet.status('img').state, 'offline')
})

t.test('requests that run may end, up to the deadline', async t => {
  const { load, lease, outcome, running, clock } = await rig(t)
  await load('chat')
  const chat = lent(await outcome(lease('chat')))
  const asked = lease('img')
  await clock.advance(100_000)
  t.strictSame(running(), ['chat'], 'it may go on')
  t.equal(await outcome(lease('chat')), 'gpu.image_mode', 'no further one')
  chat.release()
  await clock.advance(100)
  lent(await outcome(asked)).release()
  t.strictSame(running(), ['img'])
})

t.test('from the first moment of a claim nothing of an LLM slot is lent any more', async t => {
  const disk = new GpuDisk()
  disk.writeMs = () => 500
  const { load, lend, lease, outcome, clock, arbiter, running, phases } = await rig(t, () => ({}), disk, undefined, undefined, 1)
  for (const slot of ['chat', 'talk']) await load(slot)
  lent(lend('chat')!).release()
  const chat = lent(lend('chat')!)
  const inLine = lease('chat')
  await clock.advance(10)
  const image = lease('img')
  t.strictSame([phases(), running()], [['claiming'], ['chat', 'talk']], 'the claim is not even written down')
  t.equal(lend('chat'), null, 'nothing past the line')
  t.match(await lease('chat').catch((error: unknown) => error), { code: 'gpu.image_mode', details: { retry_after_s: 60 } })
  chat.release()
  t.equal(await outcome(inLine), 'gpu.image_mode', 'nor does the line move up when a worker is free')
  const talk = lent(lend('talk')!)
  await clock.advance(1_000)
  lent(await outcome(image)).release()
  t.strictSame(running(), ['talk', 'img'])
  t.equal(lend('chat'), null)
  talk.release()
  lent(lend('talk')!).release()
  lent(lend('img')!).release()
  arbiter.switchTo('llm')
  t.equal(lend('img'), null, 'and the same on the way back')
  await clock.advance(10_000)
  lent(lend('chat')!).release()
})

t.test('a claim that cannot be written down lets the next request in', async t => {
  const disk = new GpuDisk()
  const { load, lend, lease, outcome } = await rig(t, () => ({}), disk)
  await load('chat')
  disk.writeFails = () => true
  t.equal(await outcome(lease('img')), 'gpu.switch_failed')
  lent(lend('chat')!).release()
})

t.test('a pin that cannot be written down is told', async t => {
  const disk = new GpuDisk()
  const { arbiter, outcome } = await rig(t, () => ({}), disk)
  disk.writeFails = () => true
  t.equal(await outcome(arbiter.pin(true)), 'config.write_failed')
  disk.writeFails = () => false
  t.equal(await outcome(arbiter.pin(false)), undefined)
  t.equal(disk.state.pinned, false)
})

t.test('a request that goes on for longer than that is cut off', async t => {
  const { load, lease, outcome, running, clock } = await rig(t)
  await load('chat')
  lent(await outcome(lease('chat')))
  const asked = lease('img')
  await clock.advance(119_000)
  t.strictSame(running(), ['chat'])
  await clock.advance(2_000)
  lent(await outcome(asked)).release()
  t.strictSame(running(), ['img'])
})

t.test('how long they may go on is read live', async t => {
  const { load, lease, outcome, running, clock, configure } = await rig(t)
  await load('chat')
  lent(await outcome(lease('chat')))
  configure({}, { gpu_drain_timeout_s: 10 })
  const asked = lease('img')
  await clock.advance(9_000)
  t.strictSame(running(), ['chat'])
  await clock.advance(2_000)
  lent(await outcome(asked)).release()
  t.strictSame(running(), ['img'])
})

t.test('several image requests at once are one switch and one start', async t => {
  const { load, lease, outcome, phases, runtime } = await rig(t, () => ({ startMs: 100, warmMs: 500 }))
  await load('chat')
  const leases = await outcome(Promise.all([1, 2, 3].map(() => lease('img'))), 10_000)
  t.equal(leases.length, 3)
  t.strictSame(phases(), ['claiming', 'clearing', 'img'])
  t.strictSame(runtime.created.filter(slot => slot === 'img'), ['img'])
})

t.test('a client that leaves does not stop the switch', async t => {
  const { load, admitted, outcome, clock, arbiter } = await rig(t, () => ({ stopMs: 1_000 }))
  await load('chat')
  const client = new AbortController()
  const asked = admitted('img', client.signal, owner => owner.acquire(client.signal))
  await clock.advance(10)
  client.abort(new Error('the client left'))
  t.equal(await outcome(asked), 'the client left')
  await clock.advance(5_000)
  t.match(arbiter.status(), { mode: 'img', switching: false })
})

t.test('an image request while the engine is going, and while the others come back', async t => {
  const { load, lease, outcome, clock, arbiter, running, phases, disk } = await rig(t, () => ({ stopMs: 1_000, warmMs: 3_000 }))
  await load('chat')
  await load('embed')
  lent(await outcome(lease('img'), 10_000)).release()

  arbiter.switchTo('llm')
  await clock.advance(100)
  t.equal(arbiter.status().switching, true)
  const chat = lease('chat').catch((error: { code: string }) => error.code)
  const again = lease('img')
  lent(await outcome(again, 10_000)).release()
  t.equal(await chat, 'gpu.image_mode', 'who waited for the other mode is told')
  t.strictSame(running(), ['img'])
  t.strictSame(disk.state.saved_llm_slots, ['chat', 'embed'], 'nobody is forgotten')

  arbiter.switchTo('llm')
  await clock.advance(2_500)
  t.equal(phases().at(-1), 'reloading')
  lent(await outcome(lease('img'), 10_000)).release()
  t.strictSame(running(), ['img'])
  arbiter.switchTo('llm')
  await clock.advance(30_000)
  t.strictSame(running(), ['chat', 'embed'])
})

t.test('requests that come while the GPU is being given back wait for it', async t => {
  const { load, lease, outcome, clock, arbiter } = await rig(t, () => ({ stopMs: 2_000 }))
  await load('chat')
  lent(await outcome(lease('img'), 10_000)).release()
  arbiter.switchTo('llm')
  await clock.advance(10)
  lent(await outcome(lease('chat'), 10_000)).release()
})

t.test('pinned image mode stays until it is unpinned or forced', async t => {
  const { load, arbiter, clock, running, disk, outcome } = await rig(t)
  await load('chat')
  t.equal(arbiter.switchTo('img', { pin: true }), true)
  await clock.advance(1_000)
  t.strictSame(running(), ['img'], 'the verb loads the image slot')
  t.equal(arbiter.switchTo('img'), false, 'it is there already')
  t.match(disk.state, { mode: 'img', pinned: true })
  await clock.advance(200 * MINUTE)
  t.equal(arbiter.status().mode, 'img')
  t.match(arbiter.status(), { pinned: true, idle_restore_at: null })
  t.throws(() => arbiter.switchTo('llm'), { code: 'gpu.pinned', status: 409 })
  await outcome(arbiter.pin(false))
  t.equal(disk.state.pinned, false)
  await clock.advance(10)
  t.equal(arbiter.status().mode, 'llm', 'the time was long over')

  arbiter.switchTo('img', { pin: true })
  await clock.advance(1_000)
  t.equal(arbiter.switchTo('llm', { force: true }), true)
  await clock.advance(1_000)
  t.match(arbiter.status(), { mode: 'llm', pinned: false, switching: false })
  t.strictSame(running(), ['chat'])
})

t.test('the idle time is read live; 0 is never', async t => {
  const { arbiter, clock, configure } = await rig(t)
  arbiter.switchTo('img')
  await clock.advance(10 * MINUTE)
  configure({ img: { ...gpuConfigs.img, image: { idle_restore_minutes: 0 } } })
  await clock.advance(500 * MINUTE)
  t.match(arbiter.status(), { mode: 'img', idle_restore_minutes: 0, idle_restore_at: null })
  configure({ img: { ...gpuConfigs.img, image: { idle_restore_minutes: 600 } } })
  await clock.advance(1_000)
  t.equal(arbiter.status().mode, 'img')
  configure({ img: { ...gpuConfigs.img, image: { idle_restore_minutes: 5 } } })
  await clock.advance(1_000)
  t.equal(arbiter.status().mode, 'llm')
})

t.test('an image slot that is unloaded, deleted or disabled gives the GPU back', async t => {
  const { load, lease, outcome, clock, fleet, arbiter, configure, running } = await rig(t)
  await load('chat')
  const enter = async (): Promise<void> => lent(await outcome(lease('img'))).release()
  await enter()
  await outcome(fleet.owner('img').unload(false))
  arbiter.released('img')
  await clock.advance(100)
  t.strictSame(running(), ['chat'])

  await enter()
  configure({ img: { ...gpuConfigs.img, enabled: false } })
  await clock.advance(100)
  t.strictSame(running(), ['chat'])
  t.throws(() => arbiter.switchTo('img'), { code: 'gpu.img_slot_missing', status: 404 })

  configure({ img: gpuConfigs.img! })
  await enter()
  configure({ img: null })
  await clock.advance(100)
  t.strictSame(running(), ['chat'])
})

t.test('slots that vanish while image mode lasts are not brought back', async t => {
  const { load, lease, outcome, clock, arbiter, configure, running, disk } = await rig(t)
  await load('chat')
  await load('embed')
  lent(await outcome(lease('img'))).release()
  configure({ chat: null, embed: { ...gpuConfigs.embed, enabled: false } })
  arbiter.switchTo('llm')
  await clock.advance(100)
  t.strictSame(running(), [])
  t.match(disk.state, { mode: 'llm', saved_llm_slots: { length: 0 } })
})

t.test('slots whose engines are on another machine neither give way to images nor make others do so', async t => {
  const { configure, load, lease, outcome, running, runtime, arbiter, disk, phases } = await rig(t)
  configure({
    'far': { device: 'gpu-rocm', runtime: 'far' }, 'far-img': { device: 'gpu-rocm', type: 'image', provider: 'fake', runtime: 'far' }
  })
  for (const slot of ['chat', 'far', 'far-img']) await load(slot)
  t.match(arbiter.status(), { mode: 'llm', image_slots: ['img'], llm_slots: ['chat', 'embed'] })
  t.strictSame([running(), phases()], [['chat'], []], 'images elsewhere take no GPU of this machine')
  lent(await outcome(lease('img'))).release()
  t.strictSame(running(), ['img'])
  t.match(disk.state, { mode: 'img', saved_llm_slots: ['chat'] })
  t.ok(runtime.running('far'), 'its engine was left alone')
  lent(await outcome(lease('far'))).release()
})

t.test('an engine that cannot be stopped keeps the GPU', async t => {
  let stubborn = true
  const { load, lease, outcome, clock, arbiter, running, runtime } = await rig(t, slot => slot === 'chat' && stubborn ? { removeFails: 1 } : {})
  await load('chat')
  await load('embed')
  stubborn = false
  const refusal = lease('img').catch((error: unknown) => error)
  await clock.advance(100)
  t.match(await refusal, { code: 'gpu.switch_failed', status: 502 })
  await clock.advance(60_000)
  t.match(arbiter.status(), { mode: 'llm', switching: false, error: /chat/ })
  t.strictSame(running().includes('embed'), true, 'what was stopped for nothing is back')
  t.notOk(runtime.created.includes('img'))
  lent(await outcome(lease('img'), 1_000)).release()
  t.equal(arbiter.status().error, null, 'the next try works')
})

t.test('a full disk leaves everything as it is', async t => {
  const { load, lease, outcome, disk, running, arbiter } = await rig(t)
  await load('chat')
  disk.writeFails = () => true
  t.equal(await outcome(lease('img')), 'gpu.switch_failed')
  t.strictSame(running(), ['chat'])
  t.match(arbiter.status(), { mode: 'llm', switching: false, error: /no space left/ })
  disk.writeFails = () => false
  lent(await outcome(lease('img'))).release()
})

t.test('the next gateway goes on where this one stopped', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock, () => ({ stopMs: 1_000 }))
  const disk = new GpuDisk()
  const crash = async (first: Rig): Promise<Rig> => {
    first.die()
    first.arbiter.halt()
    await first.outcome(first.fleet.close(() => true), 5_000)
    return await rig(t, undefined, disk, runtime, clock)
  }
  let now = await rig(t, undefined, disk, runtime, clock)
  await now.load('chat')
  await now.load('embed')
  void now.lease('img').catch(() => {})
  await clock.advance(100)
  t.equal(now.phases().at(-1), 'clearing')

  now = await crash(now)
  t.match(now.arbiter.status(), { mode: 'img', switching: false })
  t.strictSame(now.running(), [], 'engines that the mode does not allow are gone')
  t.equal(await now.outcome(now.lease('chat')), 'gpu.image_mode')
  lent(await now.outcome(now.lease('img'), 5_000)).release()

  now = await crash(now)
  t.strictSame(now.running(), ['img'], 'the image engine is adopted')
  now.arbiter.switchTo('llm')
  await clock.advance(100)
  t.equal(now.phases().at(-1), 'freeing')

  now = await crash(now)
  await clock.advance(5_000)
  t.strictSame(now.running(), ['chat', 'embed'], 'what was to come back is back')
  t.match(disk.state, { mode: 'llm', saved_llm_slots: { length: 0 } })
})

t.test('engines of unreadable slot files give way to the other mode as all others do', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock, () => ({ stopMs: 1_000 }))
  const disk = new GpuDisk()
  const next = async (first: Rig, unread: readonly string[]): Promise<Rig> => {
    first.die()
    first.arbiter.halt()
    await first.outcome(first.fleet.close(() => true), 5_000)
    return await rig(t, undefined, disk, runtime, clock, null, new Set(unread))
  }
  let now = await rig(t, undefined, disk, runtime, clock)
  await now.load('chat')
  now = await next(now, ['chat'])
  t.strictSame(now.running(), ['chat'], 'kept')
  lent(await now.outcome(now.lease('img'), 5_000)).release()
  t.strictSame(now.running(), ['img'], 'images have the GPU to themselves')

  now = await next(now, ['img'])
  t.strictSame(now.running(), ['img'], 'a typo does not end image mode')
  t.equal(await now.outcome(now.lease('chat')), 'gpu.image_mode')
  await clock.advance(61 * MINUTE)
  t.strictSame(now.running(), ['chat'], 'what gave way is back once no image was asked for')
})

t.test('the idle time counts from the last image over a restart, also after a kill', async t => {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock)
  const disk = new GpuDisk()
  const first = await rig(t, undefined, disk, runtime, clock)
  await first.load('chat')
  lent(await first.outcome(first.lease('img'), 5_000)).release()
  for (let minutes = 0; minutes < 100; minutes += 20) {
    await clock.advance(20 * 60_000)
    lent(await first.outcome(first.lease('img'), 5_000)).release()
  }
  await clock.advance(31_000)
  first.die()
  first.arbiter.halt()
  await first.outcome(first.fleet.close(() => true), 5_000)
  const second = await rig(t, undefined, disk, runtime, clock)
  await clock.advance(20 * 60_000)
  t.equal(second.arbiter.status().mode, 'img', 'half an hour after the last image, not after the first')
  await clock.advance(11 * 60_000)
  t.equal(second.arbiter.status().mode, 'llm')
})

t.test('a damaged state file means LLM mode, and the newest write stays', async t => {
  const lines: string[] = []
  const log = (_data: unknown, line?: string): void => { lines.push(line ?? '') }
  const home = t.testdir({ 'bad.json': '{"mode":"both"}', 'old.json': '{"mode":"img","other":1}' })
  const logger = { debug: log, info: log, warn: log, error: log }
  const open = (name: string): GpuStateFile => new GpuStateFile(join(home, name), logger)
  const fresh = { mode: 'llm', pinned: false, saved_llm_slots: [], last_img_activity: null }
  t.strictSame(await open('none.json').read(), fresh)
  t.strictSame(lines, [])
  t.strictSame(await open('bad.json').read(), fresh, 'never a reason not to start')
  t.equal(lines.length, 1)
  t.match(await open('old.json').read(), { mode: 'img', pinned: false, saved_llm_slots: { length: 0 } })
  const file = open('new/gpu.json')
  void file.write({ ...fresh, mode: 'img' as const, last_img_activity: 12.5 })
  await file.write({ ...fresh, mode: 'llm' as const })
  t.match(JSON.parse(await readFile(join(home, 'new/gpu.json'), 'utf8')), fresh, 'the newest write is what stays')
})
