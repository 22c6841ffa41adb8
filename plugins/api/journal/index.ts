import { core, definePlugin, defineRoute, sse, type EventBus, type SseEvent } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { entryOf, isWanted } from './entry.js'
import { listQuerySchema, listSchema, streamQuerySchema, type JournalEntry, type JournalQuery } from './schemas.js'

/** Entries that a new reader of the stream gets first. */
const REPLAYED = 50

/** `/api/journal`: the events in the envelope of the journal panel. */
export default definePlugin({
  name: 'api-journal',
  kind: 'routes',
  apiVersion: 1,
  requires: { events: core.events },
  register (ctx) {
    const { events } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/journal',
      tag: 'Events and logs',
      summary: 'The latest entries of the journal',
      schema: { querystring: listQuerySchema, response: listSchema },
      handler: ({ query }) => listEntries(events, query)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/journal/stream',
      tag: 'Events and logs',
      summary: 'Stream of new journal entries',
      description: `First the last ${REPLAYED} that match, or with \`since\` those after it.`,
      schema: { querystring: streamQuerySchema },
      produces: 'text/event-stream',
      handler: ({ query }) => sse(signal => frames(events, query, signal))
    }))
  }
})

function listEntries (events: EventBus, query: JournalQuery): { entries: JournalEntry[], next_since: number } {
  const { since, limit } = query
  const { events: all, next_since: newest } = events.list(since === undefined ? {} : { since })
  const wanted = all.map(entryOf).filter(entry => isWanted(entry, query))
  if (since === undefined) return { entries: wanted.slice(-limit), next_since: newest }
  const entries = wanted.slice(0, limit)
  return { entries, next_since: entries.length < wanted.length ? entries.at(-1)!.id : newest }
}

async function* frames (
  events: EventBus, query: z.output<typeof streamQuerySchema>, signal: AbortSignal
): AsyncGenerator<SseEvent> {
  const { since } = query
  const first = since === undefined ? listEntries(events, { ...query, limit: REPLAYED }) : { entries: [], next_since: since }
  // subscribed before the first frame is written, so that nothing falls between the two
  const live = events.subscribe({ since: first.next_since }, signal)
  for (const entry of first.entries) yield { data: entry }
  for await (const event of live) {
    const entry = entryOf(event)
    if (isWanted(entry, query)) yield { data: entry }
  }
}
