import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { imageCacheRef } from '../../api/images/ref.js'
import { imageError } from './errors.js'
import { generate } from './generate.js'
import { make } from './make.js'
import { imageRequest } from './image-request.js'
import { assertUsable } from './model-check.js'
import { imageMakerRef } from './ref.js'
import { imageAnswerSchema, imageBodySchema } from './schemas.js'

/** Images from text. See README.md. */
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
      description: 'Takes the GPU from language models while it lasts, so the first image may take its time.',
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
  }
})
