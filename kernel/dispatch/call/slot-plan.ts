import { svcError, type EngineProvider, type SlotLease, type Surface, type SurfaceName } from '../../contract/index.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { CallContext } from './call-context.js'
import { requestHeaders } from '../answer/headers.js'
import { outgoingBody, type Prepared } from './prepared.js'
import type { SlotCallInput } from './slot-call-input.js'

/** A request as a slot gets it, once there is a lease. */
export interface SlotPlan {
  readonly surface: Surface
  readonly body: Buffer
  readonly input: (lease: SlotLease, counter: TokenCount) => SlotCallInput
}

/** Throws `plugin.unavailable` when the slot's provider is gone. */
export function planSlotCall (
  { slots }: CallContext, prepared: Prepared, slot: string, modelId: string | null
): SlotPlan {
  const { asked, options } = prepared
  const provider = slots.provider(slot)
  const surface = surfaceOf(provider, slot, options.surface)
  const name = provider?.modelName?.(slots.config(slot), modelId) ?? modelId ?? prepared.model
  const body = outgoingBody(prepared, name, options.edit === undefined ? null : slots.config(slot), surface)
  const input = (lease: SlotLease, counter: TokenCount): SlotCallInput => ({
    lease,
    surface,
    asked: { model: name, stream: () => prepared.view?.isTrue('stream') === true },
    body,
    requestId: asked.requestId,
    contentType: asked.request.headers['content-type'] ?? 'application/json',
    headers: requestHeaders(asked.request.raw.rawHeaders, asked.requestId),
    throughput: slots.throughput(slot),
    counter
  })
  return { surface, body, input }
}

/** Throws `plugin.unavailable` when the slot's provider is gone, or no longer serves this. */
export function surfaceOf (provider: EngineProvider | null, slot: string, name: SurfaceName): Surface {
  const surface = provider?.surfaces[name]
  if (surface !== undefined) return surface
  throw svcError('plugin.unavailable', `the provider of slot '${slot}' is unavailable at the moment; see GET /api/plugins`)
}
