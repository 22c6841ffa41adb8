import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { core, definePlugin, defineRoute, handled } from 'svc-gateway/plugin'
import { z } from 'zod'
import { filesError } from './errors.js'
import { pageOf } from './page.js'
import { fileStoreRef, type StoredFile } from './ref.js'
import {
  deletedFileSchema, fileFormSchema, fileListSchema, fileParamsSchema, fileQuerySchema, fileSchema, type FileQuery
} from './schemas.js'
import { Store } from './store.js'
import { uploadedFile } from './upload.js'

const configSchema = z.strictObject({
  max_files: z.int().min(1).max(5000).default(1000).meta({ description: 'Maximum number of files' }),
  max_bytes: z.int().min(1024 * 1024).default(2 * 1024 ** 3).meta({ description: 'Maximum total size in bytes' }),
  max_made_bytes: z.int().min(1024 * 1024).default(8 * 1024 ** 3).meta({ description: 'Maximum total size of batch output in bytes; the oldest files are deleted first' })
})

/** `/v1/files`: what batches are made of, and what they made. See README.md. */
export default definePlugin({
  name: 'v1-files',
  kind: ['routes', 'service'],
  apiVersion: 1,
  errors: filesError,
  requires: { clock: core.clock },
  provides: [fileStoreRef],
  configSchema,
  register (ctx) {
    const { max_files: files, max_bytes: bytes, max_made_bytes: madeBytes } = ctx.config
    const { clock } = ctx.services
    const store = new Store({ folder: join(ctx.stateDir, 'files'), table: ctx.table, clock, limits: { files, bytes, madeBytes }, log: ctx.log })
    ctx.provide(fileStoreRef, store)
    ctx.onStart(() => store.load(ctx.signal))
    ctx.addHealth(() => ({ ...store.size }))
    const shared = { tag: 'Files and batches' } as const
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'POST',
      url: '/v1/files',
      summary: 'Upload a file of requests for a batch',
      schema: { body: fileFormSchema, response: fileSchema },
      example: { purpose: 'batch', file: '@requests.jsonl' },
      bodyKind: 'buffer',
      consumes: 'multipart/form-data',
      handler: async ({ body, request }) => shown(await store.add(uploadedFile(body, request.headers['content-type'])))
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1/files',
      summary: 'Files that the gateway keeps',
      description: 'Those of upstreams are not listed.',
      schema: { querystring: fileQuerySchema, response: fileListSchema },
      handler: ({ query }) => list(store.list(), query)
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1/files/:file_id',
      summary: 'Metadata of a file',
      schema: { params: fileParamsSchema, response: fileSchema },
      handler: ({ params }) => shown(store.get(params.file_id))
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'GET',
      url: '/v1/files/:file_id/content',
      summary: 'Content of a file',
      schema: { params: fileParamsSchema },
      produces: 'application/octet-stream',
      handler: ({ params, reply, requestId }) => {
        const file = store.get(params.file_id)
        void reply.headers({
          'x-request-id': requestId,
          'content-type': 'application/octet-stream',
          'content-length': file.bytes,
          'x-content-type-options': 'nosniff'
        })
        void reply.send(createReadStream(store.path(file)))
        return handled
      }
    }))
    ctx.addRoute(defineRoute({
      ...shared,
      method: 'DELETE',
      url: '/v1/files/:file_id',
      summary: 'Delete a file',
      description: 'A batch created from it continues.',
      schema: { params: fileParamsSchema, response: deletedFileSchema },
      handler: async ({ params }) => {
        await store.remove(params.file_id)
        return { id: params.file_id, object: 'file', deleted: true }
      }
    }))
  }
})

function list (files: readonly StoredFile[], { after, limit, order, purpose }: FileQuery): z.input<typeof fileListSchema> {
  const wanted = purpose === undefined ? files : files.filter(file => file.purpose === purpose)
  const { data, ...page } = pageOf(order === 'desc' ? [...wanted].reverse() : wanted, after, limit)
  return { object: 'list', data: data.map(shown), ...page }
}

function shown ({ expires_at: end, seq: _, ...file }: StoredFile): z.input<typeof fileSchema> {
  return { ...file, object: 'file', status: 'processed', ...(end === null ? {} : { expires_at: end }) }
}
