import { randomUUID } from 'node:crypto'
import {
  redact, type CleanText, type Clock, type EventBus, type EventFilter, type GatewayEvent, type NewEvent
} from '../contract/index.js'
import { gapEvent, passes } from './event-filter.js'
import { EventQueue } from './event-queue.js'

const RING_SIZE = 500
const QUEUE_SIZE = 256
const MAX_LIMIT = 1000

export interface EventBusOptions {
  readonly clock: Clock
  readonly epoch?: string
  /** Takes the values of secrets out of a text. */
  readonly clean?: CleanText
  /** Told of every event as it is emitted. Must not throw. */
  readonly onEvent?: (event: GatewayEvent) => void
}

/** Keeps the last 500 events and hands new ones to every subscriber. In memory; a new epoch with every run. */
export function createEventBus (options: EventBusOptions): EventBus {
  const { clock, epoch = randomUUID(), clean = text => text, onEvent } = options
  const ring: GatewayEvent[] = []
  const subscribers = new Set<{ readonly filter: EventFilter, readonly queue: EventQueue }>()
  let lastId = 0

  return {
    epoch,
    emit (event) {
      const full = complete(event, ++lastId, clock, clean)
      ring.push(full)
      if (ring.length > RING_SIZE) ring.shift()
      onEvent?.(full)
      for (const { filter, queue } of [...subscribers]) {
        if (passes(full, filter)) queue.push(full)
      }
    },
    list (filter = {}) {
      const limit = Math.min(filter.limit ?? RING_SIZE, MAX_LIMIT)
      const fitting = filter.since === undefined ? ring.filter(event => passes(event, filter)) : replay(filter, filter.since)
      // who asks from a point on gets the next page; who just looks gets the newest
      const events = filter.since === undefined ? fitting.slice(Math.max(0, fitting.length - limit)) : fitting.slice(0, limit)
      const cut = filter.since !== undefined && events.length < fitting.length
      return { events, next_since: cut ? events.at(-1)?.id ?? filter.since : lastId, epoch }
    },
    subscribe (filter, signal) {
      const queue = new EventQueue(filter.since === undefined ? [] : replay(filter, filter.since), QUEUE_SIZE, leave)
      const subscriber = { filter, queue }
      const abort = (): void => { queue.close() }
      function leave (): void {
        subscribers.delete(subscriber)
        signal.removeEventListener('abort', abort)
      }
      subscribers.add(subscriber)
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
      return queue
    }
  }

  /** Events after `since` that the ring still has; those it has not are a gap. An id of another epoch replays nothing. */
  function replay (filter: EventFilter, since: number): readonly GatewayEvent[] {
    const oldest = ring[0]
    if (oldest === undefined || since > lastId) return []
    const missing = oldest.id - 1 - since
    const fitting = ring.filter(event => event.id > since && passes(event, filter))
    return missing > 0 ? [gapEvent(oldest.id - 1, oldest.ts, missing), ...fitting] : fitting
  }
}

function complete (event: NewEvent, id: number, clock: Clock, clean: CleanText): GatewayEvent {
  return Object.freeze({
    id,
    ts: new Date(clock.now()).toISOString(),
    type: event.type,
    severity: event.severity ?? 'info',
    source: event.source,
    message: clean(event.message),
    data: Object.freeze(redact({ ...event.data }, clean) as Record<string, unknown>)
  })
}
