import { isObject, malformed, requestObject, stringIn, typeName, type Json } from '../../over-chat/ref.js'

const LONGEST_LANE = 256

/** A response is asked for. */
export interface CreateEvent {
  readonly kind: 'create'
  /** What a POST would have for its body. */
  readonly asked: Json
  /** Requests of a lane are answered one after the other; null for the one without a name. */
  readonly lane: string | null
  /** False for one that is remembered and not answered. */
  readonly generates: boolean
}

/** Something is to be said to a response while it is made. */
export interface SteerEvent {
  readonly kind: 'steer'
  readonly previous: string
  readonly input: unknown
}

/**
 * What a client sends. Throws `validation.invalid`, `request.invalid_json`, `request.not_an_object`, `request.too_complex`. Pure.
 */
export function clientEvent (message: string | Buffer): CreateEvent | SteerEvent {
  if (typeof message !== 'string') throw malformed('type', 'cannot be read: events are JSON in text messages')
  const { type, ...members } = requestObject(Buffer.from(message))
  if (type === 'response.steer') {
    return { kind: 'steer', previous: stringIn(members.previous_response_id, 'previous_response_id'), input: members.input }
  }
  if (type !== 'response.create') throw malformed('type', `is ${typeName(type)}: send response.create, with the body of POST /v1/responses beside it`)
  const { stream_id: lane = null, generate = true, stream: _, background, ...asked } = members
  if (background === true) throw malformed('background', 'is not supported over WebSockets: POST the request')
  if (typeof generate !== 'boolean') throw malformed('generate', 'must be true or false')
  return { kind: 'create', asked: { ...asked, stream: true }, lane: laneOf(lane), generates: generate }
}

/** The lane of a message that cannot be taken, as far as it names one. Pure. */
export function laneIn (message: string | Buffer): string | null {
  try {
    const said = JSON.parse(String(message)) as unknown
    return isObject(said) ? laneOf(said.stream_id ?? null) : null
  } catch {
    return null
  }
}

function laneOf (lane: unknown): string | null {
  if (lane === null || (typeof lane === 'string' && lane !== '' && lane.length <= LONGEST_LANE)) return lane
  throw malformed('stream_id', `must be a string of 1 to ${LONGEST_LANE} characters`)
}
