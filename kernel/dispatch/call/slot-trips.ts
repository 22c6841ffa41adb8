import { svcError, type SlotStatus, type SvcError } from '../../contract/index.js'
import { isServing } from '../../slots/schedule/slot-machine.js'
import type { HoldTimes } from '../answer/answer-sink.js'
import { tellLoading } from '../answer/loading-notes.js'
import { embeddingTexts } from '../body/embedding-body.js'
import type { Route } from '../route/resolve.js'
import type { CallContext } from './call-context.js'
import { EmbeddingLine } from './embedding-line.js'
import { Flights } from './flights.js'
import type { Prepared } from './prepared.js'
import { callSlot } from './slot-call.js'
import { planSlotCall, type SlotPlan } from './slot-plan.js'

export interface SlotTripsDeps extends CallContext {
  readonly holdTimes: () => HoldTimes
  /** What a client learns of a failure. */
  readonly told: (error: unknown) => SvcError
}

/**
 * Requests to slots: sent at once while the engine has a free worker, else in the slot's line, where they may share a call.
 * Each settles its request exactly once.
 */
export class SlotTrips {
  readonly #deps: SlotTripsDeps
  readonly #flights: Flights
  readonly #embeddings: EmbeddingLine

  constructor (deps: SlotTripsDeps) {
    this.#deps = deps
    this.#flights = new Flights(deps.told)
    this.#embeddings = new EmbeddingLine(deps.told, () => deps.config.snapshot.svc.dispatcher.embedding_line_bytes)
  }

  /** Throws `plugin.unavailable` when the provider of the slot is gone. */
  start (prepared: Prepared, { slot, modelId }: Extract<Route, { kind: 'slot' }>): void {
    const { slots, clock, holdTimes } = this.#deps
    const { view, sink, settle } = prepared
    prepared.slot = slot
    prepared.attempt = 1
    const plan = planSlotCall(this.#deps, prepared, slot, modelId)
    const { surface, input } = plan
    if (view?.isTrue('stream') === true) sink.hold(clock, holdTimes())
    const lease = slots.tryAcquire(slot, surface.light, view)
    if (lease !== null) {
      prepared.sent = true
      prepared.giveUp = callSlot(this.#deps, input(lease, prepared), sink, settle, () => this.#inLine(prepared, slot, plan, true))
      return
    }
    if (surface.body === 'json' && prepared.surface === 'embeddings' && this.#joinOthers(prepared, slot, plan)) return
    this.#inLine(prepared, slot, plan, false)
  }

  /** Puts texts in the line where they share calls with others; false for a body that is not about texts. */
  #joinOthers (prepared: Prepared, slot: string, { surface, body, input }: SlotPlan): boolean {
    const texts = embeddingTexts(body)
    if (texts === null) return false
    const { slots } = this.#deps
    prepared.giveUp = this.#embeddings.join({
      slot,
      priority: prepared.priority,
      acquire: async (signal, again) => {
        if (again) assertNotStopped(slots.status(slot))
        return await slots.acquire(slot, signal, surface.light, prepared.priority)
      },
      send: (lease, joined, requests, sink, settled, unsent) => {
        const plain = input(lease, { tokens: 0 })
        for (let i = 1; i < requests; i++) plain.throughput.request()
        return callSlot(this.#deps, { ...plain, body: joined }, sink, settled, unsent)
      }
    }, { texts, body, sink: prepared.sink, sent: isSent => { prepared.sent = isSent }, done: prepared.settle })
    return true
  }

  /** @param back it was given to an engine that turned out not to be there, and was told nothing */
  #inLine (prepared: Prepared, slot: string, { surface, body, input }: SlotPlan, back: boolean): void {
    const { slots, config } = this.#deps
    prepared.sent = false
    const endNotes = this.#noteLoading(prepared, slot)
    const seat = this.#flights.board({
      slot,
      path: surface.path,
      body,
      limitBytes: config.snapshot.svc.dispatcher.slow_reader_buffer_kb * 1024,
      shared: !back && !isServing(slots.status(slot).state),
      acquire: async (signal, again) => {
        if (back || again) assertNotStopped(slots.status(slot))
        return await slots.acquire(slot, signal, surface.light, prepared.priority, prepared.view)
      },
      send: (lease, fanOut, settled, unsent) => callSlot(this.#deps, input(lease, fanOut), fanOut, settled, unsent)
    }, prepared.sink, {
      sent: counter => {
        endNotes()
        prepared.sent = true
        prepared.shared = counter
      },
      returned: () => { prepared.sent = false },
      done: () => {
        endNotes()
        prepared.settle()
      }
    })
    prepared.giveUp = seat.leave
  }

  /** Only chat completions have a place for it in their streams; the others are kept alive with comment lines. */
  #noteLoading ({ options, view, sink, id, model }: Prepared, slot: string): () => void {
    const { clock, config, slots } = this.#deps
    const { show_loading: isOn, ping_interval_s: pingS } = config.snapshot.svc.dispatcher
    const isChatStream = options.surface === 'chat' && options.dialect === undefined && view?.isTrue('stream') === true
    if (!isOn || !isChatStream || !sink.isClients || isServing(slots.status(slot).state)) return () => {}
    return tellLoading({
      statuses: signal => slots.watch(slot, signal),
      model,
      requestId: id,
      now: () => clock.now(),
      write: event => sink.note(event, clock, pingS * 1000)
    })
  }
}

/** A request that was on its way to an engine when that was told to stop does not bring it back. */
function assertNotStopped ({ name, state }: SlotStatus): void {
  if (state !== 'unloading' && state !== 'offline') return
  throw svcError('slot.stopped', `slot '${name}' was unloaded before the request reached it`, { details: { slot: name, retry_after_s: 1 } })
}
