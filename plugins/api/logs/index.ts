import { core, definePlugin, defineRoute, sse, type SseEvent } from 'svc-gateway/plugin'
import { z } from 'zod'
import { slotLogsRef } from '../slots/ref.js'
import { systemError } from './errors.js'
import { Journal } from './journal.js'
import { logQuerySchema, logsSchema, type LogQuery } from './schemas.js'
import { slotOfUnit } from './slot-unit.js'

const configSchema = z.strictObject({
  journalctl: z.string().min(1).default('journalctl').meta({ description: 'The tool that reads the journal, by name or path' })
})

const NOT_ALL = 'lines of an engine have no known time or severity: `since` and `level` are ignored'

/** `/api/logs`: what the units of the service wrote. */
export default definePlugin({
  name: 'api-logs',
  kind: 'routes',
  apiVersion: 1,
  errors: systemError,
  requires: {
    clock: core.clock,
    companions: core.services,
    config: core.config,
    logs: slotLogsRef,
    daemons: core.daemons,
    slots: core.slots
  },
  configSchema,
  register (ctx) {
    const { companions, logs, daemons, slots } = ctx.services
    /** What the gateway runs in place of a unit; null for what only the journal knows. */
    const programOf = (unit: string): string | null => {
      const service = companions.list().find(each => each.unit === unit || each.unit === `${unit}.service`)
      // an agent that the gateway installed runs under a name of its own
      const agent = /^svc-agent@([a-z][a-z0-9-]*)(?:\.service)?$/.exec(unit)?.[1]
      return [service?.id, agent === undefined ? undefined : `agent-${agent}`]
        .find(id => id !== undefined && daemons.status(id).form !== null) ?? null
    }
    const journal = new Journal(ctx.services, ctx.config.journalctl)
    ctx.onStop(() => journal.close())
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/logs',
      tag: 'Events and logs',
      summary: 'The last lines of a unit',
      description: 'Without a journal the answer is empty, with a hint.',
      schema: { querystring: logQuerySchema, response: logsSchema },
      queryError: systemError.kind('system.logs_error'),
      tool: {
        name: 'logs_tail',
        title: 'Read logs',
        description: 'Returns the last log lines of a unit, such as the gateway itself or a slot. Call it when nothing else explains a failure; an operator has to approve it.',
        gated: true,
        readOnly: true,
        primary: 'unit',
        narrow: 'ask for fewer with `n`'
      },
      handler: async ({ query, signal }) => {
        const program = programOf(query.unit)
        if (program !== null) {
          const lines: string[] = []
          for await (const line of daemons.logs(program, { tail: query.n, follow: false, signal })) lines.push(line)
          return { unit: query.unit, lines, count: lines.length, ...(isNarrowed(query) ? { hint: NOT_ALL } : {}) }
        }
        const slot = slotOfUnit(query.unit, slots.names())
        const { lines, hint } = slot === null ? await journal.tail(query, signal) : await logs.tail(slot, tailOf(query), signal)
        const shown = hint ?? (slot !== null && isNarrowed(query) ? NOT_ALL : undefined)
        return { unit: query.unit, lines, count: lines.length, ...(shown === undefined ? {} : { hint: shown }) }
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/logs/stream',
      tag: 'Events and logs',
      summary: 'Stream of the lines of a unit, one JSON text each',
      description: 'Starts with the last `n` lines. The event `error` says why lines are missing.',
      schema: { querystring: logQuerySchema },
      queryError: systemError.kind('system.logs_error'),
      produces: 'text/event-stream',
      handler: ({ query }) => {
        const program = programOf(query.unit)
        if (program !== null) return sse(signal => dataOf(daemons.logs(program, { tail: query.n, follow: true, signal })))
        const slot = slotOfUnit(query.unit, slots.names())
        if (slot === null) {
          journal.requireRoom()
          return sse(signal => journal.follow(query, signal))
        }
        return sse(signal => engineLines(logs.follow(slot, tailOf(query), signal)))
      }
    }))
  }
})

function tailOf ({ n }: LogQuery): { readonly lines: number, readonly quiet: boolean } {
  return { lines: n, quiet: true }
}

function isNarrowed ({ since, level }: LogQuery): boolean {
  return since !== undefined || level !== undefined
}

async function* engineLines (events: AsyncIterable<SseEvent>): AsyncGenerator<SseEvent> {
  for await (const { event, data } of events) yield event === 'degraded' ? { event: 'error', data } : { data }
}

async function* dataOf (lines: AsyncIterable<string>): AsyncGenerator<SseEvent> {
  for await (const line of lines) yield { data: line }
}
