import { core, definePlugin, defineRoute, handled } from 'svc-gateway/plugin'
import { join } from 'node:path'
import { z } from 'zod'
import { ImageFolder } from './cache.js'
import { imageError } from './errors.js'
import { imageCacheRef } from './ref.js'

const configSchema = z.strictObject({
  max_files: z.int().min(1).default(100).meta({ description: 'Maximum number of images to keep' }),
  max_bytes: z.int().min(1024 * 1024).default(1024 ** 3).meta({ description: 'Maximum total size in bytes' })
})

const paramsSchema = z.strictObject({ name: z.string().meta({ description: 'Name of the image, with or without .png', pattern: '^[^/]+$', examples: ['00000000-0000-0000-0000-000000000000.png'] }) })

const CACHE = '/api/images/cache/'
const FOREVER = 'public, max-age=31536000, immutable'

/** The image cache and `/api/images`. */
export default definePlugin({
  name: 'api-images',
  kind: 'routes',
  apiVersion: 1,
  errors: imageError,
  requires: { clock: core.clock, config: core.config },
  provides: [imageCacheRef],
  configSchema,
  register (ctx) {
    const { max_files: files, max_bytes: bytes } = ctx.config
    const folder = new ImageFolder(join(ctx.services.config.paths.state, 'images', 'cache'), ctx.services.clock, { files, bytes })
    ctx.provide(imageCacheRef, {
      put: async png => `${CACHE}${await folder.put(png)}.png`,
      get: path => path.startsWith(CACHE) ? folder.bytes(path.slice(CACHE.length).replace(/\.png$/, '')) : Promise.resolve(null)
    })
    ctx.onStart(() => folder.load())
    ctx.addHealth(() => ({ ...folder.size }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/images/cache/:name',
      tag: 'Image engine',
      summary: 'A generated image, while it is in the cache',
      description: 'It never changes, so it may be cached forever.',
      schema: { params: paramsSchema },
      produces: 'image/png',
      answers: [{ status: 304, description: 'Unchanged' }],
      handler: async ({ params, request, reply, requestId }) => {
        const name = params.name.replace(/\.png$/, '')
        const found = await folder.read(name)
        if (found === null) throw imageError('image.cache_miss', 'the image is not in the cache, which keeps only the newest ones', { details: { name: params.name } })
        const etag = `"${name}"`
        void reply.headers({ 'x-request-id': requestId, 'cache-control': FOREVER, etag })
        if (request.headers['if-none-match'] === etag) {
          await found.file.close()
          void reply.code(304).send()
          return handled
        }
        void reply.headers({ 'content-type': 'image/png', 'content-length': found.bytes, 'x-content-type-options': 'nosniff' })
        void reply.send(found.file.createReadStream())
        return handled
      }
    }))
  }
})
