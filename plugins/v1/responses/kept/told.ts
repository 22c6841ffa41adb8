import type { SseEvent } from 'svc-gateway/plugin'
import { malformed, type Json } from '../../over-chat/ref.js'
import { responsesError } from '../errors.js'
import type { BackgroundResponses } from './background.js'
import { unpacked } from './event-batch.js'
import type { KeptResponses } from './kept-responses.js'
import type { LiveEvents } from './live-events.js'
import { begun, eventsOf, lastEvent, replayed, type ReplayedEvent } from './replay.js'

export interface Kept {
  readonly store: KeptResponses
  readonly background: BackgroundResponses
}

/**
 * The events of a kept response that come after a number; they end with the response. One that was made for a stream in the
 * background has the events of that stream, any other those that are made of it.
 */
export async function* told (
  kept: Kept, id: string, after: number, signal: AbortSignal
): AsyncGenerator<SseEvent, void, undefined> {
  const { store, background } = kept
  const isTold = store.events(id, 0) !== undefined
  const events = isTold ? toldBefore(kept, id, after, signal) : replayed(standing(kept, id), async () => {
    await background.over(id, signal)
    return standing(kept, id)
  })
  for await (const data of events) if (data.sequence_number > after) yield { event: data.type, data }
}

/**
 * Throws `validation.invalid` for a number that no event of a response has had yet. After a `kill -9` a reader may have seen more
 * than is there, so that any number is taken for one that did not come to its end.
 */
export function assertFollows (kept: Kept, id: string, after: number): void {
  const next = kept.background.events(id)?.next
  const end = next === undefined ? endOf(kept, id) : next - 1
  if (end === null || after <= end) return
  throw malformed('starting_after', `must be the sequence_number of an event that was sent: the last one has ${end}`)
}

/** The number of the last event of a response that is over; null where that is not known. */
function endOf (kept: Kept, id: string): number | null {
  if (kept.store.events(id, 0) !== undefined) return kept.store.eventsEnd(id)
  const response = standing(kept, id)
  if (response.status === 'in_progress') return null
  let count = begun(response).length
  for (const _ of eventsOf(response)) count++
  return count
}

async function* toldBefore (
  kept: Kept, id: string, after: number, signal: AbortSignal
): AsyncGenerator<ReplayedEvent, void, undefined> {
  const { store, background } = kept
  const live = background.events(id)
  let last = after
  for (;;) {
    const events = eventsBehind(store, id, live, last)
    for (const event of events) {
      if (event.sequence_number <= last) continue
      last = event.sequence_number
      yield event
    }
    if (events.length > 0) continue
    if (live === null || live.isOver) break
    await live.changed(signal)
  }
  const response = standing(kept, id)
  // where the gateway was killed, a reader may have seen more than was written: what it gets is behind that all the same
  const end = store.eventsEnd(id) ?? last + 1
  if (end > last) yield lastEvent(response, end)
}

/** Some of those that follow a number: the database is read for what is not in memory any more. */
function eventsBehind (store: KeptResponses, id: string, live: LiveEvents | null, number: number): readonly ReplayedEvent[] {
  const lines = live?.behind(number) ?? null
  if (lines !== null) return lines.map(line => JSON.parse(line) as ReplayedEvent)
  const batch = store.events(id, number + 1)
  return batch === undefined ? [] : unpacked(batch)
}

function standing ({ store, background }: Kept, id: string): Json {
  const response = store.get(id)
  if (response?.object !== 'response') throw notFound(id)
  return background.standing(response)
}

export function notFound (id: string): Error {
  return responsesError('responses.not_found', `no response is kept here as '${id}': it was deleted or is too old, never was kept, or is kept by the upstream that made it`)
}
