import { defineRoute, sse, type AnyRoute } from 'svc-gateway/plugin'
import { malformed, type Json } from '../../over-chat/ref.js'
import { responsesDialect } from '../dialect.js'
import {
  deletedSchema, itemListSchema, itemsQuerySchema, keptAnswerSchema, responseParamsSchema, retrieveQuerySchema
} from '../schemas.js'
import { responsesError } from '../errors.js'
import { answered, assertFollows, headOf, notFound, told, type Kept } from './told.js'

const tag = 'Responses'
/** Of the items of a page, in characters, where there are several. */
const LONGEST_PAGE = 16 * 1024 * 1024

/** Routes for responses that are there. @param open rejects where nothing is kept */
export function keptRoutes (open: () => Promise<Kept>): readonly AnyRoute[] {
  const found = async (id: string): Promise<Kept> => {
    const kept = await open()
    headOf(kept, id)
    return kept
  }
  return [
    defineRoute({
      method: 'GET', url: '/v1/responses/:id', alsoAt: ['/responses/:id'], tag,
      summary: 'A response that was kept, or is being generated in the background',
      description: 'With `stream=true` the answer is `text/event-stream`, with the events of the Responses API.',
      schema: { params: responseParamsSchema, querystring: retrieveQuerySchema, response: keptAnswerSchema },
      answers: [{ type: 'text/event-stream' }],
      dialect: responsesDialect,
      handler: async ({ params: { id }, query: { stream = false, starting_after: after }, reply }) => {
        if (!stream && after !== undefined) throw malformed('starting_after', 'applies to streams only: set stream to true, or omit it')
        const kept = await found(id)
        if (!stream) return answered(kept, id, reply.raw)
        if (after !== undefined) assertFollows(kept, id, after)
        kept.readers.assertRoom()
        return sse(signal => told(kept, id, after ?? -1, signal))
      }
    }),
    defineRoute({
      method: 'DELETE', url: '/v1/responses/:id', alsoAt: ['/responses/:id'], tag,
      summary: 'Deletes a kept response and its input; it and the responses that follow it can no longer be continued',
      schema: { params: responseParamsSchema, response: deletedSchema },
      dialect: responsesDialect,
      handler: async ({ params: { id } }) => {
        const { store, background } = await found(id)
        background.cancel(id)
        if (!store.delete(id)) throw notFound(id)
        return { id, object: 'response' as const, deleted: true as const }
      }
    }),
    defineRoute({
      method: 'GET', url: '/v1/responses/:id/input_items', alsoAt: ['/responses/:id/input_items'], tag,
      summary: 'The input of a kept response, with the whole conversation before it',
      schema: { params: responseParamsSchema, querystring: itemsQuerySchema, response: itemListSchema },
      dialect: responsesDialect,
      handler: async ({ params: { id }, query: { order, limit, after }, reply }) => {
        const { store, readers } = await found(id)
        return readers.answerOnce(page(store.items(id, order, false), limit, after), reply.raw)
      }
    }),
    defineRoute({
      method: 'POST', url: '/v1/responses/:id/cancel', alsoAt: ['/responses/:id/cancel'], tag, bodyKind: 'none',
      summary: 'Cancels a response that is being generated in the background; a finished one stays as it is',
      schema: { params: responseParamsSchema, response: keptAnswerSchema },
      dialect: responsesDialect,
      handler: async ({ params: { id }, reply }) => {
        const kept = await found(id)
        if (headOf(kept, id).background !== true) throw responsesError('responses.not_background', `'${id}' was not created with background: true`, { param: 'id' })
        kept.background.cancel(id)
        return answered(kept, id, reply.raw)
      }
    })
  ]
}

/**
 * A page of a list as JSON, which is read up to its end; one with long items has fewer of them. Throws `validation.invalid` for
 * an `after` that the list does not have.
 */
export function page (items: Iterable<Json>, limit: number, after: string | undefined): string {
  const data: string[] = []
  const ids: unknown[] = []
  let isBehind = after === undefined
  let hasMore = false
  let length = 0
  for (const item of items) {
    if (!isBehind) {
      isBehind = item.id === after
      continue
    }
    const text = JSON.stringify(item)
    length += text.length
    hasMore = data.length === limit || (data.length > 0 && length > LONGEST_PAGE)
    if (hasMore) break
    data.push(text)
    ids.push(item.id)
  }
  if (!isBehind) throw malformed('after', 'must be the id of an item of this list')
  const rest = JSON.stringify({ first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null, has_more: hasMore })
  return `{"object":"list","data":[${data.join(',')}],${rest.slice(1)}`
}
