import {
  isSvcError, svcError, type AdaptedAnswer, type BodyEdits, type DispatchTarget, type NamedSlotConfig, type SurfaceName
} from 'svc-gateway/plugin'
import { formOf, withModel, type EditForm } from './edit-form.js'
import { jsonForUpstream, picturesOf, type EditBody } from './edit-body.js'
import { editRequest, type EditRequest, type EditVerb } from './edit-request.js'
import { slotAnswer, type GenerateServices } from './generate.js'
import { fittedSize, slotEdits } from './image-request.js'
import { assertSlotModel, imageModelError } from './model-check.js'
import type { ClientRequest } from './ref.js'

const surfaces = { edit: 'image-edit', variation: 'image-variation' } as const

/** Path below `/v1`. */
export const editPaths = { edit: '/images/edits', variation: '/images/variations' } as const

/**
 * Has a picture changed. A slot whose provider turns requests into engine calls gets the pictures in JSON; engines and upstreams
 * that take the form get it as it came, but for the model's name.
 */
export async function edit (
  services: GenerateServices, asked: EditForm | EditBody, verb: EditVerb, client: ClientRequest, signal: AbortSignal
): Promise<AdaptedAnswer> {
  const { dispatch, providers, slots } = services
  const surface = surfaces[verb]
  const place = { surface, path: editPaths[verb], ...client, signal } as const
  const target = await targetOf(services, asked.model, surface, signal)
  const isAdapted = target !== null && target.slot !== null && slots.provider(target.slot)?.surfaces[surface]?.adapt !== undefined
  const known = (error: unknown): unknown => isSvcError(error) ? imageModelError(providers, error, asked.model) : error
  if (!isAdapted) {
    const sent = await sentOn(services, asked, target, signal)
    return await dispatch.call({ ...place, model: asked.model, ...sent }).catch((error: unknown) => { throw known(error) })
  }
  const request = editRequest('asked' in asked ? await picturesOf(asked, services.cache) : asked, verb)
  const { wish, image, mask } = request
  const answer = await dispatch.call({
    ...place,
    body: Buffer.from(JSON.stringify({ model: asked.model, image, mask })),
    edit: (_, slot) => {
      if (slot === null) throw svcError('dispatch.upstream_unavailable', 'the slot of this model is gone; send the request again')
      assertSlotModel(slots.provider(slot.name), slot, target.modelId ?? asked.model, providers)
      return editEdits(request, slot)
    }
  }).catch((error: unknown) => { throw known(error) })
  return await slotAnswer(services.cache, answer, wish.format)
}

/** The request as engines and upstreams get it that judge it themselves. */
async function sentOn (
  { cache }: GenerateServices, asked: EditForm | EditBody, target: DispatchTarget | null, signal: AbortSignal
): Promise<{ readonly body: Buffer, readonly contentType: string }> {
  const model = target?.modelId ?? asked.model
  if (!('asked' in asked)) return { body: withModel(asked, model), contentType: asked.contentType }
  if (target === null || target.slot === null) return { body: await jsonForUpstream(asked, model, cache), contentType: 'application/json' }
  const wish = await picturesOf(asked, cache)
  signal.throwIfAborted()
  return formOf(wish, model)
}

/** The request as a slot's provider gets it besides its pictures, flat and complete. Pure. */
function editEdits ({ wish, ownSize, strength }: EditRequest, slot: NamedSlotConfig): BodyEdits {
  const { set, ...others } = slotEdits(wish, slot)!
  return { ...others, set: { ...set, size: wish.size ?? fittedSize(ownSize), strength } }
}

/** Who would serve it; waits for the lists of upstreams where they could decide. Null: the call itself says why none does. */
async function targetOf (
  { dispatch }: GenerateServices, model: string, surface: SurfaceName, signal: AbortSignal
): Promise<DispatchTarget | null> {
  const now = dispatch.target(model, surface)
  if (now !== null) return now
  await dispatch.model(model, signal).catch(() => {
    // not listed: the call says what that means
  })
  signal.throwIfAborted()
  return dispatch.target(model, surface)
}
