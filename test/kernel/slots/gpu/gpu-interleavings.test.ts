import assert from 'node:assert/strict'
import t from 'tap'
import type { SlotLease } from '../../../../kernel/contract/index.js'
import { FakeClock, settle } from '../../../../kernel/testing/fake-clock.js'
import { FakeRuntime, type EngineBehaviour } from '../../../../kernel/testing/fake-runtime.js'
import { gpuConfigs, GpuDisk, gpuRig, runningSlots, type GpuRig } from './gpu-rig.js'
import { Random } from '../random.js'

// on a busy machine the scripts take their time
t.setTimeout(300_000)

const SCRIPTS = 150
const STEPS = 40
const SLOTS = ['chat', 'embed', 'talk', 'img']
const LLM = ['chat', 'embed']

function behaviourOf (random: Random): EngineBehaviour {
  const ms = (): number => random.pick([0, 1, 40, 400, 3_000])
  return {
    createMs: ms(),
    createFails: random.chance(0.05),
    startMs: ms(),
    warmMs: random.chance(0.05) ? Infinity : ms(),
    ...(random.chance(0.1) ? { diesAfterMs: random.pick([1, 500, 60_000]), exitCode: random.pick([0, 1]) } : {}),
    stopMs: random.pick([0, 1, 100, 2_000]),
    removeMs: random.pick([0, 5, 500]),
    removeFails: random.chance(0.03) ? 1 : 0
  }
}

class Script {
  readonly random: Random
  readonly clock = new FakeClock()
  readonly disk = new GpuDisk()
  readonly runtime: FakeRuntime
  readonly clashes: string[] = []
  calm = false
  rig: GpuRig
  asked = 0
  answered = 0
  images = 0
  refused = 0

  constructor (seed: number) {
    this.random = new Random(seed)
    this.runtime = new FakeRuntime(this.clock, () => this.calm ? {} : behaviourOf(this.random))
    const start = this.runtime.start.bind(this.runtime)
    this.runtime.start = async (id, signal) => {
      await start(id, signal)
      this.look()
    }
    this.disk.writeMs = () => this.calm ? 0 : this.random.pick([0, 1, 50])
    this.disk.writeFails = () => !this.calm && this.random.chance(0.04)
    this.rig = this.newRig()
  }

  newRig (): GpuRig {
    return gpuRig(this.clock, this.runtime, this.disk, { gpu_drain_timeout_s: 20 }, this.random.pick([null, 1, 2]))
  }

  /** Never an image engine and one of those that it shares the GPU with at the same time. */
  look (): void {
    const running = runningSlots(this.runtime)
    if (running.includes('img') && running.some(name => LLM.includes(name))) this.clashes.push(running.join(' + '))
  }

  async start (): Promise<void> {
    await this.rig.arbiter.open()
    await this.over(this.rig.fleet.start(), 'start')
    this.rig.arbiter.resume()
  }

  async use (slot: string): Promise<void> {
    this.asked++
    const { rig } = this
    const controller = new AbortController()
    if (this.random.chance(0.3)) this.clock.setTimer(this.random.int(8_000), () => controller.abort(new Error('the client left')))
    const holdMs = this.random.pick([0, 10, 1_000, 15_000, 60_000])
    try {
      const { signal } = controller
      const lease = rig.lend(slot) ?? await rig.admitted(slot, signal, owner => owner.acquire(signal))
      if (LLM.includes(slot) && rig.arbiter.status().mode === 'img') this.clashes.push(`${slot} was lent in image mode`)
      if (slot === 'img') this.images++
      this.hold(lease, holdMs)
    } catch (error) {
      if ((error as { code?: string }).code === 'gpu.image_mode') this.refused++
    }
    this.answered++
  }

  hold (lease: SlotLease, ms: number): void {
    this.clock.setTimer(ms, () => lease.release())
  }

  async verb (slot: string): Promise<void> {
    this.asked++
    const { rig } = this
    const { signal } = new AbortController()
    try {
      const what = this.random.int(4)
      if (what === 0) await rig.admitted(slot, signal, owner => owner.load(signal))
      else if (what === 1) await rig.admitted(slot, signal, owner => owner.restart(false, signal))
      else {
        await rig.fleet.owner(slot).unload(this.random.chance(0.3))
        rig.arbiter.released(slot)
      }
    } catch {
      // an answer too
    }
    this.answered++
  }

  mode (): void {
    try {
      const what = this.random.int(5)
      if (what === 0) this.rig.arbiter.switchTo('img', { pin: this.random.chance(0.3) })
      else if (what < 3) this.rig.arbiter.switchTo('llm', { force: this.random.chance(0.5) })
      else void this.rig.arbiter.pin(what === 3)
    } catch (error) {
      assert.ok(['gpu.pinned', 'gpu.img_slot_missing'].includes((error as { code: string }).code))
    }
  }

  edit (): void {
    const slot = this.random.pick(['chat', 'img'])
    const there = this.rig.config.snapshot.slots.has(slot)
    const what = this.random.int(3)
    if (there && what === 0) this.rig.configure({ [slot]: null })
    else if (there && what === 1) this.rig.configure({ [slot]: { ...gpuConfigs[slot], enabled: false } })
    else this.rig.configure({ [slot]: gpuConfigs[slot]! })
  }

  async step (): Promise<void> {
    const slot = this.random.pick(SLOTS)
    const what = this.random.int(24)
    if (what < 9) void this.use(slot).catch(this.gone)
    else if (what < 12) void this.verb(slot).catch(this.gone)
    else if (what === 12) this.mode()
    else if (what === 13) this.crash(slot)
    else if (what === 14 && this.random.chance(0.4)) await this.restart()
    else if (what === 15 && this.random.chance(0.4)) this.edit()
    else await this.clock.advance(this.random.pick([0, 1, 10, 100, 1_000, 7_000, 40_000, 2_000_000]))
    await settle()
    this.look()
  }

  readonly gone = (error: unknown): void => {
    this.answered++
    if ((error as { code?: string }).code !== 'slot.not_found') throw error
  }

  crash (slot: string): void {
    const engine = this.runtime.running(slot)
    if (engine !== undefined) this.runtime.exit(engine.id, 1)
  }

  /** The gateway dies in the middle of whatever it does; engines stay, and so does what was on disk. */
  async restart (): Promise<void> {
    this.rig.die()
    this.rig.arbiter.halt()
    await this.over(this.rig.fleet.close(() => true), 'close')
    await this.over(this.rig.arbiter.close(), 'close of the arbiter')
    this.rig = this.newRig()
    await this.start()
  }

  async over (work: Promise<unknown>, what: string): Promise<void> {
    let over = false
    const done = work.then(() => { over = true })
    for (let i = 0; i < 50 && !over; i++) await this.clock.advance(10_000)
    assert.ok(over, `${what} ended`)
    await done
  }

  async finish (): Promise<void> {
    this.calm = true
    for (const engine of this.runtime.engines.values()) engine.removeFails = 0
    this.rig.configure(gpuConfigs)
    await this.clock.advance(1_000_000)
    assert.equal(this.answered, this.asked, 'everybody was answered')
    await this.arrives('img')
    await this.arrives('llm')
    this.rig.arbiter.halt()
    await this.over(this.rig.fleet.close(() => false), 'close')
    await this.over(this.rig.arbiter.close(), 'close of the arbiter')
    assert.deepEqual([...this.runtime.engines.keys()], [], 'no orphan engine')
    assert.equal(this.clock.pending, 0, 'no timer left')
    assert.deepEqual(this.clashes, [], 'the GPU was never shared')
    assert.deepEqual(this.runtime.doubles, [])
  }

  /** Whatever happened, either mode can be entered, and then only its own slots run. */
  async arrives (mode: 'llm' | 'img'): Promise<void> {
    for (let attempt = 0; attempt < 4; attempt++) {
      this.rig.arbiter.switchTo(mode, { force: true, pin: false })
      await this.clock.advance(100_000)
      if (this.rig.arbiter.status().mode === mode && !this.rig.arbiter.status().switching) break
    }
    const { mode: now, switching, error, saved_llm_slots: saved } = this.rig.arbiter.status()
    assert.deepEqual({ now, switching }, { now: mode, switching: false })
    if (mode === 'llm') assert.equal(error, null, 'a switch that works takes the error away')
    assert.equal(this.disk.state.mode, mode, 'and it is on disk')
    if (mode === 'llm') assert.deepEqual([saved, this.disk.state.saved_llm_slots], [[], []], 'nothing is left to bring back')
    const running = runningSlots(this.runtime)
    assert.deepEqual(running.filter(name => mode === 'img' ? LLM.includes(name) : name === 'img'), [])
    const wanted = mode === 'img' ? 'img' : 'chat'
    const lease = this.rig.admitted(wanted, new AbortController().signal, owner => owner.load(new AbortController().signal))
    await this.clock.advance(100_000)
    await lease
    assert.ok(runningSlots(this.runtime).includes(wanted), `${wanted} can be used in ${mode} mode`)
  }
}

t.test(`${SCRIPTS} random scripts of requests, verbs, switches, edits, crashes and kills`, async t => {
  const first = Number(process.env.SVC_TEST_SEED ?? 1)
  const last = process.env.SVC_TEST_SEED === undefined ? SCRIPTS : first
  let images = 0
  let refused = 0
  for (let seed = first; seed <= last; seed++) {
    const script = new Script(seed)
    try {
      await script.start()
      for (let i = 0; i < STEPS; i++) {
        await script.step()
        assert.deepEqual(script.clashes, [], 'the GPU is not shared')
      }
      await script.finish()
    } catch (error) {
      t.fail(`seed ${seed}: ${(error as Error).message}`, { stack: (error as Error).stack ?? '', lines: script.rig.lines.slice(-20), ev: script.rig.events.slice(-25).map(e => e.message) })
      return
    }
    images += script.images
    refused += script.refused
  }
  if (last > first) t.ok(images > SCRIPTS && refused > SCRIPTS / 4, `${images} images, ${refused} refusals`)
})
