import { errorType, type SvcError } from 'svc-gateway/plugin'
import { textOr, type Json } from '../over-chat/ref.js'
import type { ServerEvent } from './response.js'

/** What clients of the API look for, by the gateway's code; where it depends on the event, by that too. */
const apiCodes: Readonly<Record<string, string>> = {
  'realtime.response_active': 'conversation_already_has_active_response',
  'realtime.no_response': 'response_cancel_not_active',
  'realtime.too_little_audio': 'input_audio_buffer_commit_empty',
  'realtime.expired': 'session_expired',
  'realtime.item_not_found conversation.item.delete': 'item_delete_invalid_item_id',
  'realtime.item_not_found conversation.item.truncate': 'item_truncate_invalid_item_id',
  'realtime.item_not_found conversation.item.retrieve': 'item_retrieve_invalid_item_id'
}

/**
 * A failure that the session survives.
 * @param event of the client, that led to it; null without any. Pure.
 */
export function errorEvent (error: SvcError, event: Json | null): ServerEvent {
  return { type: 'error', error: errorWords(error, event) }
}

/** Pure. */
export function errorWords ({ code, status, message, param }: SvcError, event: Json | null): Json {
  return {
    type: status >= 500 ? 'server_error' : status === 400 || status === 413 ? 'invalid_request_error' : errorType(status),
    code: apiCodes[code] ?? apiCodes[`${code} ${textOr(event?.type, '')}`] ?? code,
    message,
    param,
    event_id: typeof event?.event_id === 'string' ? event.event_id.slice(0, 512) : null
  }
}
