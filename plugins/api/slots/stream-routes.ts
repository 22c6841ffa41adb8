import { defineRoute, sse, type AnyRoute } from 'svc-gateway/plugin'
import { audited } from './audit.js'
import { followLog, readTail } from './log/log-reader.js'
import { logQuerySchema, logsSchema, logStreamQuerySchema, nameParamsSchema, pullStartedSchema, pullStatusSchema } from './schemas.js'
import type { SlotApi } from './slot-api.js'
import { requireSlot } from './record/slot-lookup.js'
import { stateFrames } from './state-frames.js'
import { slotTools } from './tools.js'

const EVENTS = 'text/event-stream'

/** Logs, states and image pulls, at once and as they happen. Streams end when the slot is deleted. */
export function streamRoutes (api: SlotApi): AnyRoute[] {
  const { slots } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/logs',
      summary: 'Last lines of the engine\'s log',
      schema: { params: nameParamsSchema, querystring: logQuerySchema, response: logsSchema },
      tool: slotTools.logs,
      handler: async ({ params: { name }, query, signal }) => {
        requireSlot(api, name)
        const { lines, hint } = await readTail(slots, name, query, signal)
        return { name, logs: lines, ...(hint === undefined ? {} : { hint }) }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/logs/stream',
      summary: 'Stream of the engine\'s log, one JSON text per line',
      description: 'Continues across restarts. The event `degraded` means that the log cannot be read.',
      schema: { params: nameParamsSchema, querystring: logStreamQuerySchema },
      produces: EVENTS,
      handler: ({ params: { name }, query: { backfill, quiet } }) => {
        requireSlot(api, name)
        return sse(signal => followLog(slots, name, { lines: backfill, quiet }, signal))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/state/stream',
      summary: 'Stream of the states of a slot; the first event is the current one',
      schema: { params: nameParamsSchema },
      produces: EVENTS,
      handler: ({ params: { name } }) => {
        requireSlot(api, name)
        return sse(signal => stateFrames(slots, name, signal))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/slots/:name/pull',
      summary: 'Pull the container image of a slot, or join the running pull',
      schema: { params: nameParamsSchema, response: pullStartedSchema },
      status: 202,
      handler: async call => {
        const { name } = call.params
        requireSlot(api, name)
        const { resumed, status } = await audited(api, call, 'pull', name, () => slots.pullImage(name))
        return { resumed, ...status }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/pull/status',
      summary: 'Progress of the pull, or whether the image is present',
      schema: { params: nameParamsSchema, response: pullStatusSchema },
      handler: async ({ params: { name } }) => {
        requireSlot(api, name)
        return await slots.pullStatus(name)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/pull/stream',
      summary: 'Stream of the progress of the pull',
      schema: { params: nameParamsSchema },
      produces: EVENTS,
      handler: async ({ params: { name } }) => {
        requireSlot(api, name)
        // a slot without an image is refused here, while there still is a status line to do it with
        await slots.pullStatus(name)
        return sse(async function* (signal) {
          for await (const data of slots.watchPull(name, signal)) yield { data }
        })
      }
    })
  ]
}
