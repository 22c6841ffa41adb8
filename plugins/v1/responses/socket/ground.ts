import type { Json } from '../../over-chat/ref.js'
import type { Ground } from '../kept/continued.js'
import type { OwnResponses } from './made-responses.js'

/**
 * What a request of a connection may go on from: what the connection has made, and what is kept.
 * @param store null where nothing is kept
 */
export function groundOf (own: OwnResponses, store: Ground | null): Ground {
  return {
    get: id => own.get(id) === undefined ? store?.get(id) : { object: 'response' },
    context: id => own.get(id)?.items ?? store?.context(id),
    output: id => store?.output(id),
    assertRoom: (id, bytes) => { if (own.get(id) === undefined) store?.assertRoom(id, bytes) },
    thinker: id => own.get(id)?.thinker ?? null
  }
}

/** Whether a request can do without what is kept: it names nothing, or what its connection has made. Pure. */
export function standsAlone ({ previous_response_id: previous, conversation, input }: Json, own: OwnResponses): boolean {
  if (conversation != null) return false
  if (previous != null && !(typeof previous === 'string' && own.get(previous) !== undefined)) return false
  return !Array.isArray(input) || !input.some(item => (item as Json | null)?.type === 'item_reference')
}
