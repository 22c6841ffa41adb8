import type { ServerResponse } from 'node:http'
import type { JsonAnswer, SseEvent } from 'svc-gateway/plugin'
import { malformed, type Json } from '../../over-chat/ref.js'
import { responsesError } from '../errors.js'
import type { BackgroundResponses } from './background.js'
import { unpacked } from './event-batch.js'
import type { KeptResponses } from './kept-responses.js'
import type { LiveEvents } from './live-events.js'
import type { HeldResponse, Readers, WholeResponse } from './readers.js'
import { begun, eventsOf, lastEvent, replayed, type ReplayedEvent } from './replay.js'

export interface Kept {
  readonly store: KeptResponses
  readonly background: BackgroundResponses
  readonly readers: Readers
}

/**
 * The events of a kept response that come after a number; they end with the response. One that was made for a stream in the
 * background has the events of that stream, any other those that are made of it.
 */
export async function* told (
  kept: Kept, id: string, after: number, signal: AbortSignal
): AsyncGenerator<SseEvent, void, undefined> {
  const { store, background } = kept
  let release = (): void => {}
  const whole = (): Json => {
    const held = wholeOf(kept, id)
    release = held.release
    return held.response
  }
  try {
    const isTold = store.events(id, 0) !== undefined
    const events = isTold ? toldBefore(kept, id, after, whole, signal) : replayed(headOf(kept, id), async () => {
      await background.over(id, signal)
      return whole()
    })
    for await (const data of events) if (data.sequence_number > after) yield { event: data.type, data }
  } finally {
    release()
  }
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
  if (headOf(kept, id).status === 'in_progress') return null
  const response = standing(kept, id)
  let count = begun(response).length
  for (const _ of eventsOf(response)) count++
  return count
}

async function* toldBefore (
  { store, background }: Kept, id: string, after: number, whole: () => Json, signal: AbortSignal
): AsyncGenerator<ReplayedEvent, void, undefined> {
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
  const response = whole()
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

/** A response as it stands now, without its output. */
export function headOf ({ store, background }: Kept, id: string): Json {
  const response = store.head(id)
  if (response?.object !== 'response') throw notFound(id)
  return background.standing(response)
}

/** A response as it stands now, whole, as the answer for a reader. Throws `responses.busy`. */
export function answered (kept: Kept, id: string, to: ServerResponse): JsonAnswer {
  const { key, read } = asItStands(kept, id)
  return kept.readers.answer(key, read, to)
}

/** As `headOf`, whole. */
function standing ({ store, background }: Kept, id: string): Json {
  const response = store.get(id)
  if (response?.object !== 'response') throw notFound(id)
  return background.standing(response)
}

/** One that is over, for a reader. Throws `responses.busy`. */
function wholeOf (kept: Kept, id: string): HeldResponse {
  const { key, read } = asItStands(kept, id)
  return kept.readers.hold(key, read)
}

/** A response says the same as long as it is in the same state. */
function asItStands (kept: Kept, id: string): { readonly key: string, readonly read: () => WholeResponse } {
  const { status } = headOf(kept, id)
  const read = (): WholeResponse => {
    const { response, bytes } = kept.store.whole(id)!
    return { response: kept.background.standing(response), bytes }
  }
  return { key: `${id} ${String(status)}`, read }
}

export function notFound (id: string): Error {
  return responsesError('responses.not_found', `no response is kept here as '${id}': it was deleted, has expired, was never kept, or is kept by the upstream that created it`)
}
