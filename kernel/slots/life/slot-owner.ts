import { svcError, type Clock, type SlotLease, type SvcError, type Timer } from '../../contract/index.js'
import type { SlotActions } from './slot-actions.js'
import { refusalError, revokedError } from '../schedule/slot-errors.js'
import { canLend, lendAnother, takeOneBack } from '../schedule/leases.js'
import {
  newCore, type Engine, type Refusal, type ScheduledSlot, type SlotEffect, type SlotInput,
  type Wants
} from '../schedule/scheduled-slot.js'
import { toLaunchFailure } from './launch-errors.js'
import type { Report } from './launch-report.js'
import { EngineWatch, rethrowLater } from './engine-watch.js'
import { Departures } from './departures.js'
import { IdleTimer } from './idle-timer.js'
import { Loans } from './loans.js'
import { StopAgainTimer } from './watch/stop-again-timer.js'
import { SlotWaiters } from './slot-waiters.js'
import { replicaPlace, replicaWords } from '../schedule/replica-names.js'
import { decide } from '../schedule/slot-scheduler.js'
import { isServing } from '../schedule/slot-machine.js'
import type { InLine } from '../schedule/waiting-line.js'

export interface AcquireTerms {
  /** Wakes no unloaded engine: waits for one that is on its way, brings back one that failed. */
  readonly joins?: boolean
  /** Of the low class. */
  readonly low?: boolean
}

/**
 * Runs one slot: feeds inputs to the scheduler one at a time and runs the effects. The only code that touches
 * the slot's engine. Everything it starts ends in `close`.
 */
export class SlotOwner {
  readonly name: string
  /** Whose engine it is: of replicas, the slot. */
  readonly #slot: string
  #core: ScheduledSlot
  readonly #actions: SlotActions
  readonly #clock: Clock
  readonly #waiters = new SlotWaiters(wants => { this.#feed({ type: 'leave', wants }) })
  readonly #loans = new Loans()
  readonly #departures: Departures
  #launch: AbortController | null = null
  readonly #watch: EngineWatch
  readonly #idle: IdleTimer
  readonly #again: StopAgainTimer
  #drain: Timer | null = null
  /** What the last unload allowed; null takes the configured time. */
  #drainMs: number | null = null
  /** Takes no more requests. */
  #closed = false
  /** Closed, and the engine is left to the next gateway. */
  #keepsEngine = false
  /** Has let go of its engine: whatever is still told to it concerns another owner. */
  #ended = false

  constructor (name: string, clock: Clock, actions: SlotActions, initial?: Partial<ScheduledSlot>) {
    this.name = name
    this.#slot = replicaPlace(name).slot
    this.#departures = new Departures(name)
    this.#clock = clock
    this.#actions = actions
    this.#core = { ...newCore(clock.monotonic()), ...initial }
    this.#watch = new EngineWatch(actions, {
      busy: () => this.#core.inFlight > 0, heard: () => this.#loans.heard
    }, input => { this.#feed(input) })
    this.#idle = new IdleTimer({
      clock, times: actions, core: () => this.#core, isClosed: () => this.#closed, feed: input => this.#feed(input)
    })
    this.#again = new StopAgainTimer(clock, () => { this.#feed({ type: 'stop-again' }) })
  }

  get core (): ScheduledSlot { return this.#core }

  /** A lease when the engine serves and has a free worker at this moment, else null. A light one needs no worker. */
  tryAcquire (light = false): SlotLease | null {
    if (this.#closed || !canLend(this.#core, light ? 'lease' : 'worker')) return null
    if (!this.#shift(lendAnother(this.#core, light, this.#clock.monotonic()))) this.#feed(this.#demand(light ? 'lease' : 'worker'))
    return this.#lease(light)
  }

  async acquire (signal: AbortSignal, light = false, { joins = false, low = false }: AcquireTerms = {}): Promise<SlotLease> {
    signal.throwIfAborted()
    this.#mustBeOpen()
    const wants = light ? 'lease' : 'worker'
    const answer = this.#feed({ ...this.#demand(wants), joins, low })
    if (answer === 'granted') return this.#lease(light)
    return await this.#wait(answer, { wants, low }, signal, () => this.#lease(light))
  }

  ensureReady (signal: AbortSignal): Promise<void> {
    return this.#ask(this.#demand('ready'), signal)
  }

  load (signal: AbortSignal): Promise<void> {
    return this.#ask({ type: 'load' }, signal)
  }

  restart (force: boolean, signal: AbortSignal): Promise<void> {
    this.#drainMs = null
    return this.#ask({ type: 'restart', force }, signal)
  }

  /** Refuses those who wait for it; the slot is about to be unloaded. */
  turnAway (): void { this.#feed({ type: 'turn-away' }) }

  /**
   * Resolves when the engine that runs now, or that is being loaded now, is gone.
   * @param drainMs what requests in flight get when this is what begins the drain
   */
  unload (force: boolean, drainMs: number | null = null): Promise<void> {
    this.#drainMs = drainMs
    this.#feed({ type: 'unload', force })
    return this.#gone()
  }

  /** Stops an idle engine and resolves when it and its memory are gone; false for one that works, or that resists. */
  async evict (reason: string): Promise<boolean> {
    if (this.#core.op !== null) return false
    this.#feed({ type: 'evict', reason })
    if (this.#core.op !== 'stop') return false
    return await this.#gone().then(() => true, () => false)
  }

  /** @param generation of the launch that is found */
  adopt (generation: number): void {
    this.#feed({ type: 'adopt', generation })
  }

  /** Hands over an engine of an earlier run that resisted removal. */
  inherit (engine: Engine, message: string): void {
    this.#feed({ type: 'inherit', engine, message })
  }

  /** Something that a launch looks at has changed. */
  surroundingsChanged (): void {
    this.#feed({ type: 'surroundings' })
  }

  exited (engineId: string, exitCode: number | null): void {
    this.#feed({ type: 'exited', engineId, exitCode })
  }

  /** Configured times changed: the timers are armed anew. */
  retime (): void {
    this.#idle.disarm()
    this.#idle.arm()
  }

  /**
   * Ends everything: waiters are refused, a running load is cancelled, timers and watches stop. The engine
   * stays when `keepEngine`, also one that is still loading its model, so that the next gateway adopts it. Rejects
   * when the engine cannot be removed; everything else has ended anyway.
   */
  async close (keepEngine: boolean): Promise<void> {
    this.#closed = true
    this.#keepsEngine = keepEngine
    this.#again.follow(null)
    this.#waiters.refuse(stopping)
    try {
      // also while an engine goes: nothing may be started once it is gone
      if (!keepEngine || this.#core.op !== null) {
        this.#feed({ type: 'unload', force: true })
        await this.#gone()
      }
      while (this.#core.op !== null) await this.#gone()
    } finally {
      this.#ended = true
      this.#departures.end(stopping())
      this.#idle.disarm()
      this.#drain?.cancel()
      this.#watch.end()
    }
  }

  #mustBeOpen (): void {
    if (this.#closed) throw svcError('gateway.stopping', `slot ${replicaWords(this.name)} is closed: the gateway is shutting down or the slot was deleted`)
  }

  async #ask (input: SlotInput, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    this.#mustBeOpen()
    const answer = this.#feed(input)
    if (answer !== 'granted') await this.#wait(answer, { wants: 'ready', low: false }, signal, () => {})
  }

  #demand (wants: Wants): Extract<SlotInput, { type: 'demand' }> {
    return { type: 'demand', wants, bound: this.#actions.queueBound() }
  }

  #wait<T> (
    answer: 'wait' | Refusal | null, { wants, low }: Omit<InLine, 'since'>, signal: AbortSignal, value: () => T
  ): Promise<T> {
    if (answer !== 'wait') return Promise.reject(answer === null ? new Error('no answer') : refusalError(this.name, answer))
    return this.#waiters.wait({ wants, low, since: this.#clock.monotonic() }, signal, value)
  }

  #lease (light: boolean): SlotLease {
    const { generation, engine } = this.#core
    const facts = {
      slot: this.#slot,
      provider: this.#actions.provider(),
      address: engine!.address,
      modelId: this.#actions.modelId(),
      generation
    }
    return this.#loans.lend(facts, broken => {
      const plain = this.#ended || broken ? null : takeOneBack(this.#core, generation, light, this.#clock.monotonic())
      if (!this.#shift(plain)) this.#feed({ type: 'release', generation, light, broken })
    })
  }

  #gone (): Promise<void> {
    return this.#departures.of(this.#core)
  }

  /** A change of the counts alone: nothing follows from it but that readers see it. */
  #shift (core: ScheduledSlot | null): boolean {
    if (core === null) return false
    const before = this.#core
    this.#core = core
    this.#actions.changed(core, before)
    return true
  }

  #feed (input: SlotInput): ReturnType<typeof decide>['answer'] {
    if (this.#ended) return null
    const before = this.#core
    const { core, effects, answer } = decide(before, input, this.#clock.monotonic())
    this.#core = core
    for (const effect of effects) this.#run(effect)
    this.#follow(before)
    return answer
  }

  /** What follows from the new core without having been decided: watches, timers, those who wait for an end. */
  #follow (before: ScheduledSlot): void {
    const core = this.#core
    if (isServing(core.state) !== isServing(before.state)) this.#watch.follow(isServing(core.state) ? core : null)
    // what was armed for an idle slot is too late for one that was used again
    if (before.state === 'idle' && core.state !== 'idle') this.#idle.disarm()
    if (core.inFlight === 0) this.#idle.follow()
    this.#again.follow(this.#closed ? null : core.stopAgainAt)
    this.#departures.settle(core)
    if (core !== before) this.#actions.changed(core, before)
  }

  #run (effect: SlotEffect): void {
    switch (effect.type) {
      case 'launch': return this.#bringUp(effect.generation, 'launch')
      case 'adopt': return this.#bringUp(effect.generation, 'adopt')
      case 'abort-launch': return this.#launch?.abort(this.#keepsEngine
        ? stopping()
        : svcError('slot.stopped', `slot ${replicaWords(this.name)} was stopped while it was loading`))
      case 'stop': return this.#bringDown(effect.engine, effect.crashed)
      case 'grant': return this.#waiters.letIn(effect.workers, effect.rest)
      case 'refuse': return this.#waiters.refuse(() => refusalError(this.name, effect.refusal))
      case 'probe': return this.#watch.probe(effect.engine, effect.generation)
      case 'revoke': return this.#loans.revoke(revokedError(this.name, effect.why, effect.message))
      case 'arm-drain':
        this.#drain = this.#clock.setTimer(this.#drainMs ?? this.#actions.drainMs(), () => {
          this.#drain = null
          this.#feed({ type: 'drain-due' })
        })
        return
      case 'disarm-drain':
        this.#drain?.cancel()
        this.#drain = null
    }
  }

  #bringUp (generation: number, how: 'launch' | 'adopt'): void {
    const controller = new AbortController()
    this.#launch = controller
    const report: Report = (phase, message, progress = null) => {
      this.#feed({ type: 'phase', generation, phase, message, progress })
    }
    this.#actions[how](generation, controller.signal, report).then(
      engine => { this.#feed({ type: 'launched', generation, engine }) },
      (error: unknown) => { this.#feed({ type: 'launch-failed', generation, failure: toLaunchFailure(this.name, error) }) }
    ).finally(() => { if (this.#launch === controller) this.#launch = null }).catch(rethrowLater)
  }

  #bringDown (engine: Engine, crashed: boolean): void {
    this.#actions.stop(engine, crashed).then(
      logTail => { this.#feed({ type: 'stopped', logTail }) },
      (error: unknown) => { this.#feed({ type: 'stop-failed', message: error instanceof Error ? error.message : String(error) }) }
    ).catch(rethrowLater)
  }
}

function stopping (): SvcError {
  return svcError('gateway.stopping', 'the gateway is shutting down')
}
