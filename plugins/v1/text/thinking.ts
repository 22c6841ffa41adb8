import type { BodyEdits, JsonBody, NamedSlotConfig } from 'svc-gateway/plugin'

const KWARGS = 'chat_template_kwargs'
/** Short forms that clients use and engines do not know; they mean the template's `enable_thinking`. */
const shortForms = ['enable_thinking', 'thinking']
/** Other ways of a request to say how much to reason: then the slot has nothing to add. */
const otherForms = ['reasoning_effort', 'reasoning']

/**
 * Whether the model reasons before it answers. What a request says wins, in whichever form it says it: as
 * `chat_template_kwargs.enable_thinking`, which stays as it is, or as a boolean `enable_thinking` or `thinking` at the
 * top, which moves there. A request that says nothing gets the slot's `enable_thinking`; when that is unset too, the
 * body stays as it came. Upstreams get what the client sent. Pure.
 */
export function thinkingEdits (body: JsonBody, slot: NamedSlotConfig | null): BodyEdits | null {
  if (slot === null) return null
  const form = shortForms.find(key => body.has(key))
  if (form === undefined) {
    if (slot.enable_thinking === null || otherForms.some(key => body.has(key))) return null
    return { add: { [KWARGS]: { enable_thinking: slot.enable_thinking } } }
  }
  const asked = body.value(form)
  if (typeof asked !== 'boolean' || (body.has(KWARGS) && !mayTake(body.value(KWARGS)))) return null
  return { add: { [KWARGS]: { enable_thinking: asked } }, drop: shortForms }
}

/** Whether the request's own kwargs leave the question open. */
function mayTake (kwargs: unknown): boolean {
  if (typeof kwargs !== 'object' || kwargs === null || Array.isArray(kwargs)) return false
  return (kwargs as { readonly enable_thinking?: unknown }).enable_thinking == null
}
