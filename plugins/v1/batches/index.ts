import { join } from 'node:path'
import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import { fileStoreRef, pageOf } from '../files/ref.js'
import { Batches } from './batches.js'
import { batchesError } from './errors.js'
import { batchBodySchema, batchListSchema, batchParamsSchema, batchQuerySchema, batchSchema, shownBatch } from './schemas.js'
import { SlotTurns } from './slot-turns.js'

const configSchema = z.strictObject({
  parallel: z.int().min(1).max(32).default(2).meta({ description: 'Requests of one batch that run at a time' }),
  active: z.int().min(1).max(32).default(4).meta({ description: 'Batches that run at a time' })
})

/** `/v1/batches`: many requests, answered in the idle time of slots. See README.md. */
export default definePlugin({
  name: 'v1-batches',
  kind: ['routes', 'service'],
  apiVersion: 1,
  errors: batchesError,
  requires: {
    clock: core.clock, dispatch: core.dispatch, files: fileStoreRef, info: core.info, requests: core.requests, slots: core.slots
  },
  configSchema,
  register (ctx) {
    const { clock, dispatch, files, info, requests, slots } = ctx.services
    const batches = new Batches({
      ...ctx.config,
      clock,
      files,
      log: ctx.log,
      table: ctx.table,
      folder: join(ctx.stateDir, 'work'),
      turns: new SlotTurns({ clock, dispatch, requests, slots }),
      baseUrl: () => info.baseUrl!
    })
    ctx.onStart(() => batches.load())
    ctx.onStop(() => batches.stop())
    const shared = { tag: 'Files and batches' } as const
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'POST',
      url: '/v1/batches',
      summary: 'Create a batch: slots answer the requests of a file while they are idle',
      schema: { body: batchBodySchema, response: batchSchema },
      example: { input_file_id: 'file-0123456789abcdef01234567', endpoint: '/v1/chat/completions', completion_window: '24h' },
      handler: async ({ body, request }) => {
        const agent = request.headers['x-svc-agent']
        return shownBatch(await batches.create(body, typeof agent === 'string' ? agent : null))
      }
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1/batches',
      summary: 'Batches of this gateway, newest first',
      schema: { querystring: batchQuerySchema, response: batchListSchema },
      handler: ({ query: { after, limit } }) => {
        const { data, ...page } = pageOf(batches.list(), after, limit)
        return { object: 'list', data: data.map(shownBatch), ...page }
      }
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1/batches/:batch_id',
      summary: 'Status and progress of a batch',
      schema: { params: batchParamsSchema, response: batchSchema },
      handler: ({ params }) => shownBatch(batches.get(params.batch_id))
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'POST',
      url: '/v1/batches/:batch_id/cancel',
      summary: 'Cancel a batch',
      description: 'Results so far are kept.',
      schema: { params: batchParamsSchema, response: batchSchema },
      handler: ({ params }) => shownBatch(batches.cancel(params.batch_id))
    }))
  }
})
