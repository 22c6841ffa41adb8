import {
  defineRoute, handled, sse, svcError, type ActivityLog, type ActivityQuery, type AnyRoute, type ConfigService, type SseEvent
} from 'svc-gateway/plugin'
import { toCsv } from './csv.js'
import { exportQuerySchema, exportSchema, listQuerySchema, listSchema, streamQuerySchema } from './schemas.js'

export interface ActivityServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
}

const MOST_EXPORTED = 5000

export function activityRoutes (services: ActivityServices): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/activity',
      tag: 'Activity',
      summary: 'Audit rows, newest first',
      schema: { querystring: listQuerySchema, response: listSchema },
      queryError: 'activity.invalid_query',
      handler: ({ query }) => {
        const activity = enabled(services)
        const records = activity.list(query)
        return {
          records,
          next_since: activity.lastId,
          next_before: records.length < query.limit ? null : records.at(-1)!.id,
          epoch: activity.epoch
        }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/activity/export',
      tag: 'Activity',
      summary: 'Audit rows as a file',
      description: `At most the newest ${MOST_EXPORTED}; \`fmt=csv\` gives RFC 4180.`,
      schema: { querystring: exportQuerySchema, response: exportSchema },
      answers: [{ type: 'text/csv' }],
      queryError: 'activity.invalid_query',
      handler: ({ query: { fmt, ...filter }, reply, requestId }) => {
        const records = enabled(services).list({ ...filter, limit: MOST_EXPORTED })
        void reply.header('content-disposition', `attachment; filename="svc-activity.${fmt}"`)
        if (fmt === 'json') return { records }
        void reply.headers({ 'content-type': 'text/csv; charset=utf-8', 'x-request-id': requestId }).send(toCsv(records))
        return handled
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/activity/stream',
      tag: 'Activity',
      summary: 'Audit rows as they are written',
      description: 'First the latest rows, or those after `since` or a browser\'s `Last-Event-ID`, oldest first; then new ones. None is left out.',
      schema: { querystring: streamQuerySchema },
      queryError: 'activity.invalid_query',
      produces: 'text/event-stream',
      handler: ({ query, request }) => {
        const activity = enabled(services)
        const since = query.since ?? resumePoint(request.headers['last-event-id'], activity.epoch)
        return sse(signal => frames(activity, { ...query, since }, signal))
      }
    })
  ]
}

async function* frames (activity: ActivityLog, query: ActivityQuery, signal: AbortSignal): AsyncGenerator<SseEvent> {
  const { epoch } = activity
  for await (const record of activity.follow(query, signal)) yield { id: `${epoch}:${record.id}`, data: { record, epoch } }
}

/** Where a browser that lost its stream goes on; undefined when its id is of another epoch, or none of ours. */
function resumePoint (header: string | readonly string[] | undefined, epoch: string): number | undefined {
  const match = typeof header === 'string' ? /^(.+):(\d{1,15})$/.exec(header) : null
  return match?.[1] === epoch ? Number(match[2]) : undefined
}

function enabled ({ activity, config }: ActivityServices): ActivityLog {
  if (config.snapshot.svc.activity.enabled) return activity
  throw svcError('activity.unavailable', 'the activity log is off; switch it on with `[activity] enabled = true` in svc.toml')
}
