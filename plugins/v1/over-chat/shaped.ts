import type { DispatchService, SurfaceName } from 'svc-gateway/plugin'

/** A chat completion request, or another one of a slot that chats. */
export interface ShapedRequest {
  readonly body: object
  /** Default: `chat`. */
  readonly to?: SurfaceName
}

/** A request in the form that the slot which will serve it wants. */
export interface Shaped<T extends ShapedRequest> {
  readonly request: T
  /** The JSON of its body. */
  readonly body: Buffer
  /** Null for an upstream, and for what nothing serves. */
  readonly slot: string | null
}

/**
 * Shapes a request for the slot that will serve it. Which of several slots that is depends on what is asked, so the request is
 * made for the first of them, and anew where it goes to another.
 */
export function shaped<T extends ShapedRequest> (
  dispatch: Pick<DispatchService, 'target'>, model: string, shape: (slot: string | null) => T
): Shaped<T> {
  const first = dispatch.target(model, 'chat')?.slot ?? null
  const request = shape(first)
  const body = jsonOf(request.body)
  if (first === null) return { request, body, slot: null }
  const slot = dispatch.target(model, 'chat', { body, surface: request.to ?? 'chat' })?.slot ?? null
  if (slot === first) return { request, body, slot }
  const again = shape(slot)
  return { request: again, body: jsonOf(again.body), slot }
}

function jsonOf (body: object): Buffer {
  return Buffer.from(JSON.stringify(body))
}
