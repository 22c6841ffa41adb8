import {
  messageOf, svcError, type Clock, type ConfigService, type EventBus, type GpuArbiter, type GpuInfo, type GpuMode,
  type GpuStatus, type Logger, type NamedSlotConfig, type SlotGate
} from '../../contract/index.js'
import { Changes } from '../../async/changes.js'
import { decideGpu, isSettled, mayStart, modeOf, newGpuCore, type GpuCore, type GpuEffect, type GpuInput } from './gpu-arbiter-core.js'
import type { GpuStateFile } from './gpu-arbiter-file.js'
import { gpuPinned, imageMode, imageModeEnded, noImageSlot, pinNotKept, switchFailed } from './gpu-errors.js'
import { GpuIdle } from './gpu-idle.js'
import type { GpuSlots } from './arbitrated-slots.js'
import { enabledImageSlots, idleRestoreMinutes, type GpuGroups, type GpuSide } from './gpu-groups.js'
import { GpuRecord } from './gpu-record.js'
import { GpuSides } from './gpu-sides.js'
import { ImageActivity } from './image-activity.js'

export interface GpuArbiterDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly file: GpuStateFile
  readonly slots: GpuSlots
  /** GPUs of this host as they were probed. */
  readonly gpus: () => readonly GpuInfo[]
}

/**
 * Runs the GPU's state machine: the only code that starts or stops slots for a mode, keeps the state file, and arms the
 * timer that ends image mode. Everything it starts ends in `close`.
 */
export class SlotGpuArbiter implements GpuArbiter, SlotGate {
  readonly #deps: GpuArbiterDeps
  readonly #closing = new AbortController()
  #core: GpuCore = newGpuCore('llm', false, [])
  readonly #activity: ImageActivity
  readonly #record: GpuRecord
  readonly #idle: GpuIdle
  readonly #work = new Set<Promise<void>>()
  readonly #sides: GpuSides
  /** The slots know their engines. */
  #resumed = false
  readonly #changes: Changes
  #reloading: AbortController | null = null

  constructor (deps: GpuArbiterDeps) {
    this.#deps = deps
    this.#sides = new GpuSides(deps)
    this.#activity = new ImageActivity(deps.clock, deps.slots)
    this.#changes = new Changes(this.#closing.signal)
    this.#record = new GpuRecord(deps, () => this.#core, () => this.#activity.shown(this.#activity.at(this.#sides.groups())))
    this.#idle = new GpuIdle({
      clock: deps.clock,
      dueAt: () => this.#restoreAt(this.#sides.groups()),
      busy: signal => this.#imageWork(signal),
      used: () => this.#activity.used(),
      keep: () => this.#record.keepActivity(),
      end: () => this.#feed({ type: 'want-llm', force: false })
    })
  }

  /** Reads what the last run left. Comes before any engine is adopted. */
  async open (): Promise<void> {
    const { mode, pinned, saved_llm_slots: saved, last_img_activity: activity } = await this.#record.open()
    this.#core = newGpuCore(mode, pinned, saved)
    this.#activity.open(activity)
  }

  /** Goes on where the last run stopped, once the slots know their engines. */
  resume (): void {
    this.#resumed = true
    if (this.#core.phase === 'reloading') this.#run({ type: 'reload', slots: this.#core.saved })
    this.follow()
  }

  /** The configuration changed: groups and times are read again. */
  follow (): void {
    if (!this.#resumed) return
    const { phase } = this.#core
    const up = this.#sides.up('llm')
    if (modeOf(this.#core) === 'img' && enabledImageSlots(this.#sides.groups()).length === 0) this.#feed({ type: 'want-llm', force: true })
    else if (phase === 'img' ? up.length > 0 : phase === 'llm' && this.#sides.up('img').length > 0) this.#feed({ type: 'intruder', up })
    this.#idle.arm()
  }

  /** Decides nothing more, lets no request wait; a switch under way is left to the next run. Comes before the slots close. */
  halt (): void {
    this.#closing.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    this.#reloading?.abort(this.#closing.signal.reason)
    this.#idle.close()
    this.#changes.wake()
  }

  /** Resolves when nothing of it is left. Comes after the slots have closed. */
  async close (): Promise<void> {
    await this.#record.keepActivity()
    await this.#record.written()
    await Promise.all(this.#work)
  }

  allows (name: string): boolean {
    const side = this.#side(name)
    return side === null || side === modeOf(this.#core)
  }

  /** Asked on the path of every request: in LLM mode it costs nothing, because no image slot is up then. */
  lends (name: string): boolean {
    if (this.#core.phase === 'llm' || this.#core.phase === 'reloading') return true
    const side = this.#side(name)
    return side === null || mayStart(this.#core, side) === 'yes'
  }

  /** For the last moment before an engine is started: its slot's file may have changed since it was admitted. */
  assertAllows (name: string): void {
    if (!this.allows(name)) throw modeOf(this.#core) === 'img' ? imageMode(name, this.#restoreIn()) : imageModeEnded()
  }

  admit (name: string, signal: AbortSignal): Promise<void> | null {
    const side = this.#side(name)
    if (side === null) return null
    const answer = mayStart(this.#core, side)
    if (answer === 'yes') return null
    if (side === 'img') return this.#enter(signal)
    if (answer === 'no') throw imageMode(name, this.#restoreIn())
    return this.#changes.next(signal)
  }

  released (name: string): void {
    if (this.#side(name) !== 'img' || this.#core.pinned || this.#sides.up('img').length > 0) return
    this.#feed({ type: 'want-llm', force: false })
  }

  status (): GpuStatus {
    const groups = this.#sides.groups()
    const names = (slots: readonly NamedSlotConfig[]): string[] => slots.map(slot => slot.name)
    return {
      mode: modeOf(this.#core),
      switching: !isSettled(this.#core),
      error: this.#core.failure.message,
      pinned: this.#core.pinned,
      image_slots: names(enabledImageSlots(groups)),
      llm_slots: names(groups.llm),
      saved_llm_slots: this.#core.saved,
      last_img_activity: this.#activity.shown(this.#activity.at(groups)),
      idle_restore_minutes: idleRestoreMinutes(groups),
      idle_restore_at: this.#activity.shown(this.#restoreAt(groups))
    }
  }

  switchTo (mode: GpuMode, { force = false, pin }: { readonly force?: boolean, readonly pin?: boolean } = {}): boolean {
    const there = modeOf(this.#core) === mode
    if (mode === 'llm') {
      if (!there && this.#core.pinned && !force) throw gpuPinned()
      if (!there) this.#feed({ type: 'want-llm', force })
      return !there
    }
    const image = enabledImageSlots(this.#sides.groups()).find(({ name }) => this.#deps.config.snapshot.slots.has(name))
    if (image === undefined) throw noImageSlot()
    if (pin !== undefined) this.#feed({ type: 'pin', pinned: pin })
    if (!there) this.#feed({ type: 'want-img', up: this.#sides.up('llm') })
    this.#background(this.#startImage(image.name))
    return !there
  }

  async settled (signal: AbortSignal): Promise<void> {
    while (!isSettled(this.#core)) await this.#changes.next(signal)
  }

  async pin (value: boolean): Promise<void> {
    const { count } = this.#core.failure
    this.#feed({ type: 'pin', pinned: value })
    await this.#record.written()
    const { failure } = this.#core
    if (failure.count > count) throw pinNotKept(failure.message)
  }

  /** Resolves in image mode. */
  async #enter (signal: AbortSignal): Promise<void> {
    const { count } = this.#core.failure
    this.#feed({ type: 'want-img', up: this.#sides.up('llm') })
    while (this.#core.phase !== 'img') {
      const { failure, turn } = this.#core
      if (failure.count > count) throw switchFailed(failure.message)
      // a request of higher priority wants the GPU back
      if (modeOf(this.#core) === 'llm' && !turn) throw imageModeEnded()
      await this.#changes.next(signal)
    }
  }

  async #startImage (name: string): Promise<void> {
    try {
      const { signal } = this.#closing
      for (let wait = this.admit(name, signal); wait !== null; wait = this.admit(name, signal)) await wait
      await this.#deps.slots.start(name, signal)
    } catch {
      // told by the slot's own state and by the arbiter's
    }
  }

  #feed (input: GpuInput): void {
    if (this.#closing.signal.aborted) return
    const before = this.#core
    const { core, effects } = decideGpu(before, input)
    this.#core = core
    if (core.phase === 'img' && before.phase !== 'img') this.#activity.used()
    for (const effect of effects) this.#run(effect)
    if (core === before) return
    if (core.phase !== before.phase) this.#announce(before)
    this.#changes.wake()
    this.#idle.arm()
    // what became of the configuration while the GPU changed hands
    if (isSettled(core) && !isSettled(before)) this.follow()
  }

  #run (effect: GpuEffect): void {
    switch (effect.type) {
      case 'write': return this.#background(this.#write(effect.write))
      case 'turn-away': return this.#sides.up('llm').forEach(name => this.#deps.slots.turnAway(name))
      case 'stop': return this.#background(this.#stop(effect.side, effect.force))
      case 'reload': return this.#background(this.#reload(effect.slots))
      case 'stop-reload': return this.#reloading?.abort(new Error('the GPU is needed for images'))
    }
  }

  async #write (write: number): Promise<void> {
    try {
      await this.#record.write()
    } catch (error) {
      this.#feed({ type: 'write-failed', write, message: messageOf(error) })
      return
    }
    this.#feed({ type: 'written', write })
  }

  async #stop (side: GpuSide, force: boolean): Promise<void> {
    const { slots, config } = this.#deps
    const drainMs = config.snapshot.svc.slots.gpu_drain_timeout_s * 1000
    const names = this.#sides.up(side)
    const outcomes = await Promise.allSettled([...names.map(name => slots.stop(name, force, drainMs)), slots.departed()])
    const failed = outcomes.find(outcome => outcome.status === 'rejected')
    if (failed === undefined) this.#feed({ type: 'stopped' })
    else this.#feed({ type: 'stop-failed', message: messageOf(failed.reason) })
  }

  /** One after the other, as at the start of the gateway. A slot that fails is left to its next request. */
  async #reload (names: readonly string[]): Promise<void> {
    const controller = this.#reloading = new AbortController()
    for (const name of names) {
      if (controller.signal.aborted) return
      if (this.#deps.config.snapshot.slots.get(name)?.enabled !== true) continue
      await this.#deps.slots.start(name, controller.signal).catch(() => undefined)
    }
    if (!controller.signal.aborted) this.#feed({ type: 'reloaded' })
  }

  #announce (before: GpuCore): void {
    const { events, log } = this.#deps
    const { phase, saved, failure, pinned: isPinned } = this.#core
    const data = { mode: modeOf(this.#core), phase, from: before.phase, pinned: isPinned, saved_llm_slots: saved }
    const failed = failure.count > before.failure.count
    const message = failed ? `GPU: ${before.phase} -> ${phase}: ${failure.message}` : `GPU: ${before.phase} -> ${phase}`
    events.emit({ type: 'gpu.mode', severity: failed ? 'error' : 'info', source: 'system', message, data })
    if (failed) log.error(data, message)
    else log.info(data, message)
  }

  async #imageWork (signal: AbortSignal): Promise<boolean> {
    const { slots } = this.#deps
    const names = this.#sides.groups().img.map(slot => slot.name)
    const busy = await Promise.all(names.map(async name => slots.isBusy(name) || await slots.engineBusy(name, signal)))
    return busy.includes(true)
  }

  #restoreAt (groups: GpuGroups): number | null {
    return this.#core.phase !== 'img' || this.#core.pinned ? null : this.#activity.restoreAt(groups)
  }

  #restoreIn (): number | null {
    const at = this.#restoreAt(this.#sides.groups())
    return at === null ? null : at - this.#deps.clock.monotonic()
  }

  #side (name: string): GpuSide | null {
    return this.#sides.of(name, mayStart(this.#core, 'llm') === 'yes')
  }

  #background (work: Promise<void>): void {
    const tracked = work.catch((error: unknown) => {
      this.#deps.log.error({ err: error }, `the GPU arbiter failed: ${messageOf(error)}`)
    }).finally(() => { this.#work.delete(tracked) })
    this.#work.add(tracked)
  }
}
