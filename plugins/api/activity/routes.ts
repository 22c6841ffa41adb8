import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import {
  defineRoute, handled, jsonAnswer, sse, type ActivityFilter, type ActivityLog, type ActivityQuery, type ActivityRow,
  type AnyRoute, type ConfigService, type SseEvent
} from 'svc-gateway/plugin'
import { csvRows, csvTitles } from './csv.js'
import { activityError } from './errors.js'
import { exportQuerySchema, exportSchema, listQuerySchema, listSchema, streamQuerySchema } from './schemas.js'

export interface ActivityServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
}

const MOST_EXPORTED = 5000
/** Rows of one piece of an export: what is read and written before others have their turn. */
const PIECE = 250

export function activityRoutes (services: ActivityServices): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/activity',
      tag: 'Activity',
      summary: 'Audit rows, newest first',
      description: 'Each call searches at most the newest 10,000 rows before `before`. A page may therefore have fewer rows than `limit`, or none: there is more as long as `next_before` is not null.',
      schema: { querystring: listQuerySchema, response: listSchema },
      queryError: activityError.kind('activity.invalid_query'),
      tool: {
        name: 'activity_list',
        title: 'Recent activity',
        description: 'Lists recent actions on the gateway with actor and outcome. Call it to find out what changed before something failed.',
        readOnly: true,
        show: ['limit', 'search', 'actor', 'target', 'outcome'],
        short: ({ records }: { readonly records: readonly ActivityRow[] }) =>
          ({ activity: records.map(shortRow), count: records.length }),
        narrow: 'narrow it with `search`, `target` or `limit`'
      },
      handler: ({ query }) => {
        const activity = enabled(services)
        const { json, next_before: before } = activity.page(query)
        return jsonAnswer(
          `{"records":${json},"next_since":${activity.lastId},"next_before":${before},"epoch":${JSON.stringify(activity.epoch)}}`
        )
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
      queryError: activityError.kind('activity.invalid_query'),
      handler: ({ query: { fmt, ...filter }, reply, requestId }) => {
        const activity = enabled(services)
        const pieces = fmt === 'csv' ? csvPieces(activity, filter) : jsonPieces(activity, filter)
        void reply.headers({
          'content-disposition': `attachment; filename="svc-activity.${fmt}"`,
          'content-type': `${fmt === 'csv' ? 'text/csv' : 'application/json'}; charset=utf-8`,
          'x-request-id': requestId
        }).send(Readable.from(pieces, { objectMode: false }))
        return handled
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/activity/stream',
      tag: 'Activity',
      summary: 'Audit rows as they are written',
      description: 'First the latest rows (of the newest 10,000, where there is a filter), or those after `since` or a browser\'s `Last-Event-ID`, oldest first; then new ones. None is left out.',
      schema: { querystring: streamQuerySchema },
      queryError: activityError.kind('activity.invalid_query'),
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

/** Lists of rows as JSON, none of them empty. Others have their turn between two. */
async function* pages (activity: ActivityLog, filter: ActivityFilter): AsyncGenerator<string> {
  let before: number | null | undefined
  for (let left = MOST_EXPORTED; left > 0 && before !== null; await turn()) {
    const page = activity.page({ ...filter, before, limit: Math.min(PIECE, left) })
    before = page.next_before
    left -= page.count
    if (page.count > 0) yield page.json
  }
}

async function* jsonPieces (activity: ActivityLog, filter: ActivityFilter): AsyncGenerator<string> {
  let lead = '{"records":['
  for await (const json of pages(activity, filter)) {
    yield lead + json.slice(1, -1)
    lead = ','
  }
  yield lead === ',' ? ']}' : `${lead}]}`
}

async function* csvPieces (activity: ActivityLog, filter: ActivityFilter): AsyncGenerator<string> {
  yield csvTitles
  for await (const json of pages(activity, filter)) yield csvRows(JSON.parse(json) as ActivityRow[])
}

/** Where a browser that lost its stream goes on; undefined when its id is of another epoch, or none of ours. */
function resumePoint (header: string | readonly string[] | undefined, epoch: string): number | undefined {
  const match = typeof header === 'string' ? /^(.+):(\d{1,15})$/.exec(header) : null
  return match?.[1] === epoch ? Number(match[2]) : undefined
}

function enabled ({ activity, config }: ActivityServices): ActivityLog {
  if (config.snapshot.svc.activity.enabled) return activity
  throw activityError('activity.unavailable', 'the activity log is off; switch it on with `[activity] enabled = true` in svc.toml')
}

/** For a model: without what was there before and after. */
function shortRow ({ ts, actor, action, target, outcome, message, error }: ActivityRow): Record<string, unknown> {
  return { ts, actor, action, target, outcome, ...(message === '' ? {} : { message }), ...(error === null ? {} : { error }) }
}
