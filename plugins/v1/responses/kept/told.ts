import type { SseEvent } from 'svc-gateway/plugin'
import type { Json } from '../../over-chat/ref.js'
import { responsesError } from '../errors.js'
import type { BackgroundResponses } from './background.js'
import { unpacked } from './event-batch.js'
import type { KeptResponses } from './kept-responses.js'
import { lastEvent, replayed, type ReplayedEvent } from './replay.js'

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

async function* toldBefore (
  kept: Kept, id: string, after: number, signal: AbortSignal
): AsyncGenerator<ReplayedEvent, void, undefined> {
  const { store, background } = kept
  const live = background.events(id)
  let last = after
  for (;;) {
    const batch = store.events(id, last + 1)
    const lines = batch === undefined ? live?.behind(last) ?? [] : []
    const events = batch === undefined ? lines.map(line => JSON.parse(line) as ReplayedEvent) : unpacked(batch)
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

function standing ({ store, background }: Kept, id: string): Json {
  const response = store.get(id)
  if (response?.object !== 'response') throw notFound(id)
  return background.standing(response)
}

export function notFound (id: string): Error {
  return responsesError('responses.not_found', `no response is kept here as '${id}': it was deleted or is too old, never was kept, or is kept by the upstream that made it`)
}
