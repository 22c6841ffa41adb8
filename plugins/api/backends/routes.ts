import {
  defineRoute, whileConnected, type ActivityLog, type AnyRoute, type ProviderCatalog, type RouteCall
} from 'svc-gateway/plugin'
import { z } from 'zod'
import { backendView, type BackendServices } from './backend-view.js'
import { backendError } from './errors.js'
import { loadOnNpu, unloadFromNpu } from './npu-slots.js'
import { backendSchema, idParamsSchema, loadBodySchema, loadedSchema, unloadBodySchema, unloadedSchema } from './schemas.js'

export interface BackendApi extends BackendServices {
  readonly activity: ActivityLog
  readonly providers: ProviderCatalog
}

export function backendRoutes (api: BackendApi): AnyRoute[] {
  const { overlay, slots } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/backends',
      summary: 'Hardware for engines, and the slots that run on it',
      schema: { response: z.array(backendSchema) },
      handler: () => Promise.all(overlay.backends().map(host => backendView(api, host)))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/backends/:id',
      summary: 'One backend',
      schema: { params: idParamsSchema, response: backendSchema },
      handler: async ({ params: { id } }) => {
        const host = overlay.backends().find(backend => backend.id === id)
        if (host !== undefined) return await backendView(api, host)
        const ids = overlay.backends().map(backend => backend.id)
        throw backendError('backend.not_found', `this host has no backend '${id}'; it has ${ids.join(', ')}`, { param: 'id', details: { id, backends: ids } })
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/backends/npu/load',
      summary: 'Load a chat model on the NPU; creates a slot if there is none',
      schema: { body: loadBodySchema, response: loadedSchema },
      example: { model_id: 'qwen3:0.6b' },
      handler: call => {
        const model = call.body.model_id ?? ''
        if (model === '') throw backendError('backend.model_id_required', 'set `model_id` to the model to load', { param: 'model_id' })
        return whileConnected(call, audited(api, call, 'load', model, async () => {
          const { slot, created } = await loadOnNpu(api, model)
          const { state, port, modelId } = slots.status(slot)
          return { slot, state, port, model_id: modelId, backend: 'npu' as const, provider: slots.config(slot).provider, created }
        }))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/backends/npu/unload',
      summary: 'Unload a slot from the NPU',
      schema: { body: unloadBodySchema, response: unloadedSchema },
      example: { slot_name: 'npu' },
      handler: call => {
        const slot = call.body.slot_name ?? ''
        if (slot === '') throw backendError('backend.slot_name_required', 'set `slot_name` to the slot to unload', { param: 'slot_name' })
        return whileConnected(call, audited(api, call, 'unload', slot, async () => {
          await unloadFromNpu(api, slot)
          return { ok: true as const, slot }
        }))
      }
    })
  ]
}

type Caller = Pick<RouteCall, 'actor' | 'requestId'>

function audited<T> (
  { activity }: BackendApi, caller: Caller, action: string, target: string, work: () => Promise<T>
): Promise<T> {
  const row = { category: 'backend', action: `backend.npu_${action}`, target, actor: caller.actor, request_id: caller.requestId }
  return activity.audited(row, work)
}
