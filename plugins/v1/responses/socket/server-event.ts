import { errorEnvelope, type SvcError } from 'svc-gateway/plugin'
import { isObject, type Json } from '../../over-chat/ref.js'
import { responsesDialect } from '../dialect.js'

/** By this code clients of the API know that they have to send the whole conversation. */
const UNKNOWN_PREVIOUS = {
  code: 'previous_response_not_found',
  message: 'no such response was made on this connection or is kept here, or one that it builds on was deleted: send the whole conversation as input'
}

/** An event as a message, with the lane that it belongs to. @param data a JSON object. Pure. */
export function messageOf (data: string, lane: string | null): string {
  if (lane === null) return data
  const rest = data.slice(data.indexOf('{') + 1)
  return `{"stream_id":${JSON.stringify(lane)}${/^\s*\}/.test(rest) ? '' : ','}${rest}`
}

/** A failure that the connection survives. @param asked what was asked for, as far as it could be read. Pure. */
export function errorEvent (failure: SvcError, asked: Json | null, requestId: string): object {
  const { data } = responsesDialect.failureEvent!(errorEnvelope(failure, requestId)) as { readonly data: Json }
  const known = isOfPrevious(failure, asked) ? { ...UNKNOWN_PREVIOUS, param: 'previous_response_id' } : {}
  return { ...data, ...known, error: { ...data.error as Json, ...known }, status: failure.status }
}

/** What an engine or upstream refuses, in its own words; null where it has none that are known. Pure. */
export function refusalEvent (status: number, body: unknown): object | null {
  const error = isObject(body) ? body.error : null
  if (!isObject(error) || typeof error.message !== 'string') return null
  const { code = null, message, param = null } = error
  return { type: 'error', code, message, param, error: { ...error, code, param }, status }
}

function isOfPrevious ({ code, param }: SvcError, asked: Json | null): boolean {
  if (typeof asked?.previous_response_id !== 'string') return false
  return code === 'responses.context_lost' || (code === 'validation.invalid' && param === 'previous_response_id')
}
