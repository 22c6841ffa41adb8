import type { CallAnswer, Clock } from 'svc-gateway/plugin'
import { readAll } from '../../omni/ref.js'
import { isObject, type Json } from '../../over-chat/ref.js'
import { lastEventOf } from '../last-event.js'
import { failed } from './items.js'
import type { LiveEvents } from './live-events.js'
import { eventsOf } from './replay.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024

/** Those that the gateway tells itself before anything is asked. */
const first: ReadonlySet<unknown> = new Set(['response.created', 'response.queued', 'response.in_progress'])
const last: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/**
 * What an engine or upstream makes of a request in the background, under the id that its client has. Throws for what is no
 * response.
 * @param queued the response before anything has been done
 * @param events take those of its stream, but for the last; null where none was asked for
 */
export async function made (queued: Json, answer: CallAnswer, events: LiveEvents | null, clock: Clock): Promise<Json> {
  const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true
  if (answer.status === 200 && isStream && events !== null) return await followed(queued, answer, events, clock)
  const said = JSON.parse((await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8')) as unknown
  if (answer.status !== 200 || !isObject(said)) return failed(queued, refusalIn(said) ?? `the engine answered with status ${answer.status}`)
  const response = dressed(queued, said)
  if (events !== null) for (const event of eventsOf(response)) events.push(event)
  return response
}

async function followed (queued: Json, { body }: CallAnswer, events: LiveEvents, clock: Clock): Promise<Json> {
  const response = await lastEventOf(body, clock, data => next(queued, data, events))
  return response ?? failed(queued, 'the answer of the engine ended before it was complete')
}

/** The response, where this event ends it. */
function next (queued: Json, data: string, events: LiveEvents): Json | null {
  if (!data.startsWith('{')) return null
  const event = JSON.parse(data) as Json
  const { type, response } = event
  if (type === 'error') return failed(queued, refusalIn(event) ?? 'the engine failed')
  if (last.has(type) && isObject(response)) return dressed(queued, response)
  // clients tell events apart by their type: one without is of no use to them
  if (typeof type === 'string' && !first.has(type)) events.push(event)
  return null
}

/** A response of an engine as the one that its client knows. */
function dressed (queued: Json, said: Json): Json {
  const { id, created_at: at, background, store, previous_response_id: previous, conversation } = queued
  const inside = conversation === undefined ? {} : { conversation }
  return { ...queued, ...said, id, created_at: at, background, store, previous_response_id: previous, ...inside }
}

function refusalIn (said: unknown): string | null {
  if (!isObject(said)) return null
  const { error, message: own } = said
  const message = isObject(error) ? error.message : error ?? own
  return typeof message === 'string' ? message.slice(0, 2000) : null
}
