import { defineRoute, svcError, type AnyRoute, type Clock } from 'svc-gateway/plugin'
import { isObject, type Json } from '../../over-chat/ref.js'
import { responsesDialect } from '../dialect.js'
import { responsesError } from '../errors.js'
import { newId } from '../ids.js'
import {
  conversationBodySchema, conversationItemParamsSchema, conversationItemsBodySchema, conversationItemSchema,
  conversationParamsSchema, conversationSchema, conversationUpdateSchema, deletedConversationSchema, itemListSchema,
  itemsQuerySchema
} from '../schemas.js'
import { inputItems } from './items.js'
import { page } from './routes.js'
import type { Kept } from './told.js'

interface Conversation extends Json {
  readonly id: string
  readonly object: 'conversation'
  readonly created_at: number
  readonly metadata: Record<string, string>
}

interface Found extends Pick<Kept, 'store' | 'readers'> {
  readonly conversation: Conversation
}

const tag = 'Responses'
/** What is written in one go while others wait. */
const MOST_BYTES = 16 * 1024 * 1024

/** Conversations: items that requests for responses name, read and go on with. @param open rejects where nothing is kept */
export function conversationRoutes (open: () => Promise<Kept>, clock: Clock): readonly AnyRoute[] {
  const found = async (id: string): Promise<Found> => {
    const { store, readers } = await open()
    const kept = store.head(id)
    if (kept?.object !== 'conversation') throw noConversation(id)
    return { store, readers, conversation: shown(kept) }
  }
  const common = { tag, dialect: responsesDialect } as const
  return [
    defineRoute({
      ...common, method: 'POST', url: '/v1/conversations', status: 200,
      summary: 'Creates a conversation, whose items responses read and add to',
      schema: { body: conversationBodySchema, response: conversationSchema },
      example: { items: [{ type: 'message', role: 'user', content: 'My name is Ada.' }] },
      handler: async ({ body: { items, metadata } }) => {
        const { store } = await open()
        const now = clock.now()
        const conversation: Conversation = {
          id: newId('conv'), object: 'conversation', created_at: Math.floor(now / 1000), metadata: metadata ?? {}
        }
        store.add({ id: conversation.id, previous: null, input: bounded(items ?? []), response: conversation }, now)
        return conversation
      }
    }),
    defineRoute({
      ...common, method: 'GET', url: '/v1/conversations/:id',
      summary: 'A conversation',
      schema: { params: conversationParamsSchema, response: conversationSchema },
      handler: async ({ params: { id } }) => (await found(id)).conversation
    }),
    defineRoute({
      ...common, method: 'POST', url: '/v1/conversations/:id', status: 200,
      summary: 'Replaces the metadata of a conversation',
      schema: { params: conversationParamsSchema, body: conversationUpdateSchema, response: conversationSchema },
      example: { metadata: { topic: 'names' } },
      handler: async ({ params: { id }, body: { metadata } }) => {
        const { store, conversation } = await found(id)
        const changed = { ...conversation, metadata: metadata ?? {} }
        store.describe(id, { ...changed, output: [] })
        return changed
      }
    }),
    defineRoute({
      ...common, method: 'DELETE', url: '/v1/conversations/:id',
      summary: 'Deletes a conversation with its items; responses created in it stay',
      schema: { params: conversationParamsSchema, response: deletedConversationSchema },
      handler: async ({ params: { id } }) => {
        const { store } = await found(id)
        store.delete(id)
        return { id, object: 'conversation.deleted' as const, deleted: true as const }
      }
    }),
    defineRoute({
      ...common, method: 'POST', url: '/v1/conversations/:id/items', status: 200,
      summary: 'Adds items to a conversation',
      schema: { params: conversationParamsSchema, body: conversationItemsBodySchema, response: itemListSchema },
      example: { items: [{ type: 'message', role: 'user', content: 'And I like ships.' }] },
      handler: async ({ params: { id }, body: { items }, reply }) => {
        const { store, readers } = await found(id)
        const added = bounded(items)
        const { length } = JSON.stringify(added)
        store.assertRoom(id, length)
        // what is refused behind this has been added
        readers.assertRoom(length)
        if (!store.append(id, added, clock.now())) throw noConversation(id)
        return readers.answerOnce(page(added, added.length, undefined), reply.raw)
      }
    }),
    defineRoute({
      ...common, method: 'GET', url: '/v1/conversations/:id/items',
      summary: 'The items of a conversation, newest first',
      schema: { params: conversationParamsSchema, querystring: itemsQuerySchema, response: itemListSchema },
      handler: async ({ params: { id }, query: { order, limit, after }, reply }) => {
        const { store, readers } = await found(id)
        return readers.answerOnce(page(store.items(id, order, true), limit, after), reply.raw)
      }
    }),
    defineRoute({
      ...common, method: 'GET', url: '/v1/conversations/:id/items/:item',
      summary: 'One item of a conversation',
      schema: { params: conversationItemParamsSchema, response: conversationItemSchema },
      handler: async ({ params: { id, item }, reply }) => {
        const { store, readers } = await found(id)
        const kept = store.item(id, item)
        if (kept === undefined) throw noItem(id, item)
        return readers.answerOnce(JSON.stringify(kept), reply.raw)
      }
    }),
    defineRoute({
      ...common, method: 'DELETE', url: '/v1/conversations/:id/items/:item',
      summary: 'Removes an item from a conversation',
      schema: { params: conversationItemParamsSchema, response: conversationSchema },
      handler: async ({ params: { id, item } }) => {
        const { store, conversation } = await found(id)
        if (!store.deleteItem(id, item)) throw noItem(id, item)
        return conversation
      }
    })
  ]
}

function shown ({ id, created_at: createdAt, metadata }: Json): Conversation {
  return {
    id: String(id), object: 'conversation', created_at: Number(createdAt), metadata: isObject(metadata) ? metadata as Record<string, string> : {}
  }
}

/** Items in their full form, each under an id that is its own. Throws `request.too_large`. */
function bounded (items: readonly Json[]): Json[] {
  const full = inputItems(items.map(({ id: _, ...item }) => item))
  if (JSON.stringify(full).length > MOST_BYTES) {
    throw svcError('request.too_large', `the items exceed the limit of ${MOST_BYTES} bytes a request; add them in several requests`)
  }
  return full
}

function noConversation (id: string): Error {
  return responsesError('responses.no_conversation', `no conversation is kept here as '${id}': it was deleted, has expired, or never existed; POST /v1/conversations creates one`)
}

function noItem (id: string, item: string): Error {
  return responsesError('responses.no_conversation', `conversation '${id}' has no item '${item}'; GET /v1/conversations/${id}/items lists them`)
}
