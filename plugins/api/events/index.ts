import { core, definePlugin, defineRoute, sse, type EventBus, type EventFilter, type SseEvent } from 'svc-gateway/plugin'
import { eventsError } from './errors.js'
import { resumePoint } from './resume-point.js'
import { eventListSchema, followFilterSchema, listFilterSchema } from './schemas.js'

/** `/api/events`: what happened lately, and what happens. */
export default definePlugin({
  name: 'api-events',
  kind: 'routes',
  apiVersion: 1,
  errors: eventsError,
  requires: { events: core.events },
  register (ctx) {
    const { events } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/events',
      tag: 'Events and logs',
      summary: 'The latest events',
      schema: { querystring: listFilterSchema, response: eventListSchema },
      queryError: eventsError.kind('events.invalid_query'),
      handler: ({ query }) => events.list(query)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/events/stream',
      tag: 'Events and logs',
      summary: 'Events as they happen',
      description: 'With `since`, or a browser\'s `Last-Event-ID`, missed events come first; `events.gap` reports lost ones.',
      schema: { querystring: followFilterSchema },
      queryError: eventsError.kind('events.invalid_query'),
      produces: 'text/event-stream',
      handler: ({ query, request }) => {
        const since = query.since ?? resumePoint(request.headers['last-event-id'], events.epoch)
        return sse(signal => frames(events, since === null ? query : { ...query, since }, signal))
      }
    }))
  }
})

async function* frames (events: EventBus, filter: EventFilter, signal: AbortSignal): AsyncGenerator<SseEvent> {
  for await (const event of events.subscribe(filter, signal)) yield { id: `${events.epoch}:${event.id}`, data: event }
}
