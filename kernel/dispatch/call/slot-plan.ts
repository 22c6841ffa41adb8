import { svcError, type SlotLease, type Surface } from '../../contract/index.js'
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
  { slots, config }: CallContext, prepared: Prepared, slot: string, modelId: string | null
): SlotPlan {
  const { asked, options } = prepared
  const provider = slots.provider(slot)
  const surface = provider?.surfaces[options.surface]
  if (surface === undefined) throw svcError('plugin.unavailable', `the provider of slot '${slot}' is not there at the moment; see GET /api/plugins`)
  const name = provider?.modelName?.(slots.config(slot), modelId) ?? modelId ?? prepared.model
  const body = outgoingBody(prepared, name, options.edit === undefined ? null : slots.config(slot), surface)
  const { dispatcher: times, slots: slotTimes } = config.snapshot.svc
  const input = (lease: SlotLease, counter: TokenCount): SlotCallInput => ({
    lease,
    surface,
    asked: { model: name, stream: () => prepared.view?.isTrue('stream') === true },
    body,
    requestId: asked.requestId,
    contentType: asked.request.headers['content-type'] ?? 'application/json',
    headers: requestHeaders(asked.request.raw.rawHeaders, asked.requestId),
    throughput: slots.throughput(slot),
    counter,
    firstTokenMs: slotTimes.first_token_timeout_s * 1000,
    silenceMs: times.direct_read_timeout_s * 1000
  })
  return { surface, body, input }
}
