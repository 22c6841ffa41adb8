import { defineRoute, handled, whileConnected, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import { auditedVerb, type Caller } from './audit.js'
import { swapError } from './errors.js'
import { slotRecordSchema } from './record/record-schema.js'
import { forceQuerySchema, loadBodySchema, nameParamsSchema, swapBodySchema, unloadBodySchema } from './schemas.js'
import { withProgress } from './load-progress.js'
import type { SlotApi } from './slot-api.js'
import { requireSlot } from './record/slot-lookup.js'
import { slotTools } from './tools.js'

/** Verbs of an operator. Each answers with the slot's record once it is done. */
export function lifecycleRoutes (api: SlotApi): AnyRoute[] {
  const { slots, records } = api
  const verb = async (call: Caller & Pick<RouteCall, 'progress'>, name: string, action: string, run: () => Promise<void>): Promise<unknown> => {
    requireSlot(api, name)
    const work = auditedVerb(api, call, action, name, run)
    const done = await whileConnected(call, call.progress === undefined ? work : withProgress(slots, name, call.progress, work))
    return done === handled ? handled : await records.detail(name)
  }
  return [
    defineRoute({
      method: 'POST',
      url: '/api/slots/:name/load',
      summary: 'Start a slot and wait until it serves',
      description: 'A model other than the configured one is saved once it serves. Loading continues if the client leaves.',
      schema: { params: nameParamsSchema, body: loadBodySchema, response: slotRecordSchema },
      example: {},
      tool: slotTools.load,
      handler: call => {
        const { params: { name }, body } = call
        const model = body.model_id ?? body.model
        return verb(call, name, 'load', () => slots.load(name, model === undefined ? {} : { model }))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/slots/:name/unload',
      summary: 'Stop the engine of a slot',
      description: 'Waits for requests in flight up to `[slots] drain_timeout_s`; `force` does not wait.',
      schema: { params: nameParamsSchema, querystring: forceQuerySchema, body: unloadBodySchema, response: slotRecordSchema },
      example: { force: false },
      tool: slotTools.unload,
      handler: call => {
        const { params: { name }, query, body } = call
        return verb(call, name, 'unload', () => slots.unload(name, { force: query.force || body.force === true }))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/slots/:name/restart',
      summary: 'Stop and start a slot and wait until it serves',
      schema: { params: nameParamsSchema, response: slotRecordSchema },
      tool: slotTools.restart,
      handler: call => verb(call, call.params.name, 'restart', () => slots.restart(call.params.name))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/slots/:name/swap',
      summary: 'Switch to another model and wait until it serves',
      description: 'The slot file does not change. An unknown model does not affect the slot.',
      schema: { params: nameParamsSchema, body: swapBodySchema, response: slotRecordSchema },
      example: { model_id: 'qwen3-4b' },
      tool: slotTools.swap,
      handler: call => {
        const { params: { name }, body } = call
        requireSlot(api, name)
        const model = (body.model_id ?? body.model ?? '').trim()
        if (model === '') throw missingModel(name)
        return verb(call, name, 'swap', () => slots.swap(name, model))
      }
    })
  ]
}

function missingModel (slot: string): Error {
  return swapError('swap.missing_model', `a swap of slot '${slot}' needs \`model_id\`, the model to load`, { param: 'model_id', details: { slot } })
}
