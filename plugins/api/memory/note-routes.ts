import { defineRoute, whileConnected, type ActivityLog, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import { committedSignal, identityOf, RAN_ON, type MemoryIdentity, type MemoryService, type RecalledNotes } from '../../services/memory/ref.js'
import { tag } from './bank-routes.js'
import { dialect } from './dialect.js'
import {
  addedSchema, addSchema, deletedSchema, deleteSchema, foundSchema, listSchema, pageSchema, recallSchema, searchSchema
} from './note-schemas.js'

export interface NoteDeps {
  readonly activity: ActivityLog
  readonly memory: MemoryService
}

const LONGEST_TARGET = 200
const identityHelp = '`X-svc-Agent` names the agent; with `X-svc-Private: 1` it writes to its private memory and ' +
  'also reads from it.'
const ranOnHelp = `\`ran_on\` and the header \`${RAN_ON}\`, such as \`text+vectors+rerank\`, name the methods used.`

/** Memories by dataset, the same for every engine. */
export function noteRoutes ({ activity, memory: { notes } }: NoteDeps): AnyRoute[] {
  const who = ({ request }: Pick<RouteCall, 'request'>): MemoryIdentity => identityOf(request.headers)
  const place = { tag, dialect } as const
  return [
    defineRoute({
      ...place,
      method: 'POST',
      url: '/api/memory/add',
      summary: 'Remember something',
      description: `Answers when the text is durable. On the embedded engine, without \`document_id\`, the same text and tags of the same agent create no second memory: the answer names the existing one. ${identityHelp}`,
      schema: { body: addSchema, response: addedSchema },
      example: { text: 'Alice works at Acme Corp in Berlin.', tags: ['people'] },
      handler: call => {
        const { metadata, ...note } = call.body
        const texts = metadata === undefined ? {} : { metadata: mapped(metadata, String) }
        return notes.add(who(call), { ...note, ...texts }, call.signal)
      }
    }),
    defineRoute({
      ...place,
      method: 'POST',
      url: '/api/memory/search',
      summary: 'Search memories',
      description: `Best match first. ${ranOnHelp} ${identityHelp}`,
      schema: { body: searchSchema, response: foundSchema },
      example: { query: 'Where does Alice work?', limit: 5 },
      handler: async call => found(call, await notes.search(who(call), call.body, call.signal))
    }),
    defineRoute({
      ...place,
      method: 'POST',
      url: '/api/memory/recall',
      summary: 'Memories about a subject, up to a number of tokens',
      description: `${ranOnHelp} ${identityHelp}`,
      schema: { body: recallSchema, response: foundSchema },
      example: { query: 'Where does Alice work?', max_tokens: 1024 },
      handler: async call => found(call, await notes.recall(who(call), call.body, call.signal))
    }),
    defineRoute({
      ...place,
      method: 'GET',
      url: '/api/memory/list',
      summary: 'List memories page by page',
      description: identityHelp,
      schema: { querystring: listSchema, response: pageSchema },
      handler: call => {
        const { dataset, bank, cursor, limit } = call.query
        return notes.list(who(call), { dataset: dataset ?? bank, cursor, limit }, call.signal)
      }
    }),
    defineRoute({
      ...place,
      method: 'POST',
      url: '/api/memory/delete',
      summary: 'Delete documents by their ids',
      description: `Unknown ids are ignored. ${identityHelp}`,
      schema: { body: deleteSchema, response: deletedSchema },
      example: { ids: ['3caefa3a-163d-4d16-a3fd-ad4f8cd00dc4'] },
      handler: async call => {
        const { body: { ids, dataset }, actor, requestId } = call
        const identity = who(call)
        const target = ids.join(',').slice(0, LONGEST_TARGET)
        return await whileConnected(call, activity.audited({
          category: 'memory', action: 'memory.items.delete', target, actor, request_id: requestId, outcome: 'pending'
        }, async note => {
          const noted = (deleted: number): void => note({ after: { deleted, ids: ids.length } })
          noted(0)
          return { deleted: await notes.remove(identity, ids, dataset, committedSignal(), noted) }
        }))
      }
    })
  ]
}

function found ({ reply }: Pick<RouteCall, 'reply'>, { notes: items, ranOn }: RecalledNotes): object {
  if (ranOn.length > 0) void reply.header(RAN_ON, ranOn.join('+'))
  return { items, ran_on: ranOn }
}

function mapped<A, B> (table: Readonly<Record<string, A>>, of: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, of(value)]))
}
