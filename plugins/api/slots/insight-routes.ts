import { defineRoute, isSvcError, type AnyRoute, type ResolvedArgv } from 'svc-gateway/plugin'
import { nameParamsSchema, resolvedSchema, stateSchema, voicesSchema } from './schemas.js'
import type { SlotApi } from './slot-api.js'
import { requireSlot } from './record/slot-lookup.js'
import { slotCapacity, slotMetrics } from './slot-usage.js'
import { stateOf } from './state-frames.js'
import { capacitySchema, metricsSchema } from './usage-schemas.js'
import { slotTools } from './tools.js'

/** What slots are made of and what they do. Changes nothing. */
export function insightRoutes (api: SlotApi): AnyRoute[] {
  const { slots, config } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/slots/metrics',
      summary: 'Counters of every slot',
      schema: { response: metricsSchema },
      tool: slotTools.metrics,
      handler: ({ signal }) => slotMetrics(api, signal)
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/capacity',
      summary: 'Memory of every slot, and the limit of slots',
      schema: { response: capacitySchema },
      tool: slotTools.capacity,
      handler: () => slotCapacity(api, config.snapshot.svc.slots)
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/resolved',
      summary: 'Command line of the next launch, with the source of each flag',
      schema: { params: nameParamsSchema, response: resolvedSchema },
      handler: ({ params: { name } }) => ({ name, ...resolvedOf(api, name) })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/voices',
      summary: 'Voices of a speech slot; empty if it is not running',
      schema: { params: nameParamsSchema, response: voicesSchema },
      handler: ({ params: { name }, signal }) => {
        requireSlot(api, name)
        return slots.voices(name, signal)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/state',
      summary: 'State of a slot',
      schema: { params: nameParamsSchema, response: stateSchema },
      handler: ({ params: { name } }) => {
        requireSlot(api, name)
        return stateOf(slots, name)
      }
    })
  ]
}

/** A slot without a profile that is no llm slot has no command line to show, whatever else is wrong with it. */
function resolvedOf (api: SlotApi, name: string): ResolvedArgv {
  const { type, profile } = requireSlot(api, name)
  try {
    return api.slots.resolved(name)
  } catch (error) {
    if (type !== 'llm' && profile === null && isSvcError(error)) return { argv: null, provenance: [], removed: 0 }
    throw error
  }
}
