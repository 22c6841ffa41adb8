import { defineRoute, svcError, type AnyRoute, type ConfigService } from 'svc-gateway/plugin'
import { audited } from './audit.js'
import { deleteModel } from './delete-model.js'
import { filledRow } from './filled-row.js'
import { findModel } from './list-routes.js'
import type { ModelApi } from './model-api.js'
import { registryRowSchema } from './record-schema.js'
import { registryRow, storeLayout, type StoreLayout } from './rows.js'
import {
  addBodySchema, deletedSchema, deleteQuerySchema, idParamsSchema, registerBodySchema, updateBodySchema
} from './schemas.js'
import { modelTools } from './tools.js'

/** Rows of the registry: made, changed, removed. */
export function registryRoutes (api: ModelApi): AnyRoute[] {
  const { config, library, models, providers } = api
  const layout = (): StoreLayout => storeLayout(models.store, providers.list())
  const shown = async (id: string) => registryRow(models.get(id)!, layout(), await library.missing())
  return [
    defineRoute({
      method: 'POST',
      url: '/api/models',
      summary: 'Register a model',
      description: 'Missing fields come from the header of the file, if it can be read.',
      schema: { body: registerBodySchema, response: registryRowSchema },
      example: { id: 'qwen3-4b', path: '/srv/models/qwen3-4b.gguf', capabilities: ['chat'] },
      status: 201,
      tool: modelTools.register,
      handler: call => audited(api, call, 'register', call.body.id, async note => {
        const { id, source, ...row } = call.body
        requireProfile(config, row.defaults)
        const model = await library.register(id, await filledRow(library, row, call.signal), { source })
        note({ after: model })
        return await shown(model.id)
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/models/add-from-path',
      summary: 'Register a model file with the facts from its header',
      schema: { body: addBodySchema, response: registryRowSchema },
      example: { path: '/srv/models/qwen3-4b.gguf' },
      status: 201,
      tool: modelTools.add,
      handler: call => audited(api, call, 'add', call.body.path, async note => {
        const { path, id, name, labels, overwrite } = call.body
        const model = await library.add(path, {
          source: 'add-from-path',
          signal: call.signal,
          overwrite,
          ...(id === undefined ? {} : { id }),
          ...(name === undefined ? {} : { name }),
          ...(labels === undefined ? {} : { capabilities: labels })
        })
        note({ after: model, target: model.id })
        return await shown(model.id)
      })
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/models/:id',
      summary: 'Change a model; `defaults` merge, null removes a key',
      schema: { params: idParamsSchema, body: updateBodySchema, response: registryRowSchema },
      example: { name: 'Qwen 3 4B', defaults: { context_size: 8192 } },
      tool: modelTools.edit,
      handler: call => audited(api, call, 'update', call.params.id, async note => {
        const { id } = call.params
        if (models.get(id) === undefined) await refuseForeign(api, id)
        note({ before: models.get(id) })
        requireProfile(config, call.body.defaults ?? {})
        const { path } = call.body
        // the path that a row has may be away for now; another one must lead somewhere
        if (path !== undefined && path !== models.get(id)?.path) await filledRow(library, { path }, call.signal)
        const { model } = await library.update(id, call.body)
        note({ after: model })
        return await shown(id)
      })
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/models/:id',
      summary: 'Remove a model from the registry; its file stays',
      description: 'Slots that run it are unloaded first, and it is removed from slot files.',
      schema: { params: idParamsSchema, querystring: deleteQuerySchema, response: deletedSchema },
      tool: modelTools.remove,
      handler: call => audited(api, call, 'delete', call.params.id, async note => {
        const { params: { id }, query: { force_cascade: cascade } } = call
        if (models.get(id) === undefined) await refuseForeign(api, id)
        note({ before: models.get(id) })
        return { id, deleted: true as const, affected_slots: [...await deleteModel(api, id, { cascade })] }
      })
    })
  ]
}

/** A model that an upstream or the NPU's own runtime keeps is not ours to change. Throws `model.not_found` either way. */
async function refuseForeign (api: ModelApi, id: string): Promise<never> {
  const { owned_by: owner } = await findModel(api, id)
  throw svcError('model.not_found', `model '${id}' belongs to ${owner}, not to the registry, so it cannot be changed here`, { details: { model: id, owned_by: owner } })
}

/** A profile that does not exist would be skipped by every slot, and only the event log would say why. */
function requireProfile ({ snapshot }: ConfigService, defaults: Readonly<Record<string, unknown>>): void {
  const { profile } = defaults
  if (typeof profile !== 'string' || snapshot.profiles.has(profile)) return
  throw svcError('profiles.not_found', `no such profile: '${profile}'; there are: ${[...snapshot.profiles.keys()].join(', ')}`,
    { param: 'defaults.profile', details: { profile } })
}
