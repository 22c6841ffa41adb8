import {
  isSvcError, svcError, type AdaptedAnswer, type CallAnswer, type DispatchService, type ProviderCatalog, type SlotService
} from 'svc-gateway/plugin'
import type { ImageCache } from '../../api/images/ref.js'
import { slotEdits, type ImageRequest } from './image-request.js'
import { assertSlotModel, imageModelError } from './model-check.js'
import type { ClientRequest } from './ref.js'
import { renderedSchema } from './schemas.js'

export interface GenerateServices {
  readonly dispatch: DispatchService
  readonly providers: ProviderCatalog
  readonly slots: SlotService
  readonly cache: ImageCache
}

/** Eight images of the largest size, in base64. */
const LONGEST_ANSWER_BYTES = 512 * 1024 * 1024

/** Has the images made and puts the answer together. An upstream's answer passes as it is. */
export async function generate (
  { dispatch, providers, slots, cache }: GenerateServices, request: ImageRequest, body: Buffer,
  { requestId, origin }: ClientRequest, signal: AbortSignal
): Promise<AdaptedAnswer> {
  let isSlot = false
  const answer = await dispatch.call({
    surface: 'image',
    path: '/images/generations',
    body,
    requestId,
    origin,
    signal,
    edit: (_, slot) => {
      const model = dispatch.target(request.model, 'image')?.modelId ?? request.model
      if (slot !== null) assertSlotModel(slots.provider(slot.name), slot, model, providers)
      isSlot = slot !== null
      return slotEdits(request, slot)
    }
  }).catch((error: unknown) => { throw isSvcError(error) ? imageModelError(providers, error, request.model) : error })
  return isSlot ? await slotAnswer(cache, answer, request.format) : answer
}

/** What a slot's provider made, in the form that the client asked for. @param form null for both */
export async function slotAnswer (cache: ImageCache, answer: CallAnswer, form: ImageRequest['format']): Promise<AdaptedAnswer> {
  if (answer.status !== 200) return answer
  const rendered = renderedSchema.parse(JSON.parse((await wholeBody(answer)).toString('utf8')))
  const data = form === 'b64_json'
    ? rendered.data
    : await Promise.all(rendered.data.map(async ({ b64_json: image }) => ({
        url: await cache.put(Buffer.from(image, 'base64')), ...form === null ? { b64_json: image } : {}
      })))
  return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: Buffer.from(JSON.stringify({ ...rendered, data })) }
}

async function wholeBody ({ body }: CallAnswer): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > LONGEST_ANSWER_BYTES) throw svcError('dispatch.upstream_failed', 'the image engine\'s answer is larger than 512 MiB')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
