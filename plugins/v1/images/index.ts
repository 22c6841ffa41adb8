import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { imageCacheRef } from '../../api/images/ref.js'
import { imageError } from './errors.js'
import { generate } from './generate.js'
import { edit, editPaths } from './edit.js'
import { editBody } from './edit-body.js'
import { editForm } from './edit-form.js'
import { make } from './make.js'
import { imageRequest } from './image-request.js'
import { assertUsable } from './model-check.js'
import { imageMakerRef } from './ref.js'
import { editFormSchema, imageAnswerSchema, imageBodySchema, variationFormSchema } from './schemas.js'

/** Images from text and from other images. See README.md. */
export default definePlugin({
  name: 'v1-images',
  kind: 'routes',
  apiVersion: 1,
  errors: imageError,
  requires: { dispatch: core.dispatch, providers: core.providers, slots: core.slots, cache: imageCacheRef },
  provides: [imageMakerRef],
  register (ctx) {
    const { services } = ctx
    ctx.provide(imageMakerRef, { make: (wish, request, signal) => make(services, wish, request, signal) })
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/images/generations',
      tag: 'Images',
      surface: 'image',
      summary: 'Images from text, made by an image slot',
      description: 'Takes the GPU from language models meanwhile, so the first image may take a while.',
      schema: { body: imageBodySchema, response: imageAnswerSchema },
      example: { model: 'sdxl-turbo', prompt: 'A lighthouse at dusk', size: '512x512' },
      handler: call => {
        const request = imageRequest(call.body)
        assertUsable(services.providers, request.model)
        const body = Buffer.from(JSON.stringify({ ...call.body, model: request.model }))
        return services.dispatch.compose(call, { surface: 'image', model: request.model, stream: false }, signal =>
          generate(services, request, body, { requestId: call.requestId, origin: call.request.headers }, signal))
      }
    }))
    for (const [verb, summary, schema, description] of [
      ['edit', 'An image edited as a text describes', editFormSchema, 'With `mask`, only its transparent parts are repainted. Also takes `application/json`: pictures as `images: [{"image_url": "data:image/png;base64,…"}]`, and `mask` in the same form.'],
      ['variation', 'Variations of an image', variationFormSchema, 'The subject stays the same; its rendering is new.']
    ] as const) {
      const surface = verb === 'edit' ? 'image-edit' : 'image-variation'
      ctx.addRoute(defineRoute({
        method: 'POST',
        url: `/v1${editPaths[verb]}`,
        tag: 'Images',
        surface,
        summary,
        description,
        schema: { body: schema, response: imageAnswerSchema },
        answers: [{ type: 'text/event-stream' }],
        example: { image: '@picture.png', model: 'sdxl-turbo', ...(verb === 'edit' ? { prompt: 'The same at night' } : {}) },
        bodyKind: 'buffer',
        consumes: 'multipart/form-data',
        handler: call => {
          const type = call.request.headers['content-type']
          const asked = verb === 'edit' && /^\s*application\/json\b/i.test(type ?? '') ? editBody(call.body) : editForm(call.body, type)
          assertUsable(services.providers, asked.model)
          const stream = asked.fields.get('stream') === 'true'
          return services.dispatch.compose(call, { surface, model: asked.model, stream }, signal =>
            edit(services, asked, verb, { requestId: call.requestId, origin: call.request.headers }, signal))
        }
      }))
    }
  }
})
