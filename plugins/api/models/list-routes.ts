import { defineRoute, jsonAnswer, KeptBytes, svcError, type AnyRoute } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { catalogueFit } from './catalogue-fit.js'
import type { ModelApi } from './model-api.js'
import { modelListRowSchema, type ModelListRow, type UpstreamModelRow } from './record-schema.js'
import { composed, npuRows, registryRow, storeLayout, upstreamRows, type NpuSlot, type NpuStore } from './rows.js'
import { catalogueSchema, idParamsSchema, listQuerySchema, listSchema } from './schemas.js'
import { modelTools } from './tools.js'

/** What there is: registered models, those of upstreams and of the NPU, and what could be pulled. */
export function listRoutes (api: ModelApi): AnyRoute[] {
  const { dispatch, files, hardware, library, models, providers } = api
  const upstreams = (): UpstreamModelRow[] => upstreamRows(dispatch.upstreams(), id => files.guess(id))
  const kept = new KeptBytes()
  return [
    defineRoute({
      method: 'GET',
      url: '/api/models',
      summary: 'Registered models, then those of the NPU and of upstreams',
      schema: { querystring: listQuerySchema, response: listSchema },
      tool: modelTools.list,
      handler: async ({ query: { search } }) => {
        const { store } = models
        const stores = await npuStores(api)
        const registered = models.list()
        const missing = await library.missing()
        const onNpu = npuSlots(api)
        const parts = [
          registered,
          missing,
          store,
          ...providers.list(),
          ...stores.flatMap(({ provider, models: kept }) => [provider, kept.filter(({ installed }) => installed).map(({ id }) => id).join('\n')]),
          ...onNpu.flatMap(({ config, provider }) => [config, provider]),
          ...dispatch.upstreams().flatMap(({ name, enabled, models: ids }) => [name, enabled, ids.join('\n')])
        ]
        const all = kept.of(parts, () => {
          const layout = storeLayout(store, providers.list())
          const own = registered.map(model => registryRow(model, layout, missing))
          const { models: rows, filtered } = composed(own, npuRows(stores, onNpu), upstreams())
          return { models: rows, count: rows.length, filtered_aliases: filtered }
        })
        return search === undefined ? jsonAnswer(all) : found(all, search)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/models/catalogue',
      summary: 'Models that are known to work well and can be pulled, and those of upstreams',
      schema: { response: catalogueSchema },
      tool: modelTools.catalogue,
      handler: async () => {
        const missing = await library.missing()
        const facts = { hardware: hardware.info, defaultDevice: hardware.defaultDevice, providers: providers.list() }
        const pullable = library.curated.map(model => {
          const { reasons, ...fit } = catalogueFit(model, facts)
          const installed = models.get(model.id) !== undefined && !missing.has(model.id)
          return { ...model, tags: [...model.tags], installed, fit: { ...fit, reasons: [...reasons] } }
        })
        const own = new Set(pullable.map(({ id }) => id))
        const upstream = dispatch.upstreams().filter(({ enabled }) => enabled).flatMap(({ name, models: ids }) => ids
          .filter(id => !own.has(id))
          .map(id => ({ id, owned_by: name, upstream: name, capability: files.guess(id)?.[0] ?? 'chat' as const })))
        const counts = { pullable: pullable.length, upstream: upstream.length, total: pullable.length + upstream.length }
        return { pullable, upstream, counts }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/models/:id',
      summary: 'One model of the list',
      schema: { params: idParamsSchema, response: modelListRowSchema },
      tool: modelTools.show,
      handler: ({ params: { id } }) => findModel(api, id)
    })
  ]
}

/** Rows whose id or name has the text. */
function found (all: Buffer, search: string): z.output<typeof listSchema> {
  const { models, filtered_aliases: filtered } = JSON.parse(all.toString()) as z.output<typeof listSchema>
  const text = search.toLowerCase()
  const rows = models.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(text))
  return { models: rows, count: rows.length, filtered_aliases: filtered }
}

/** Of the NPU's runtime in any spelling. Throws `model.not_found`. */
export async function findModel (api: ModelApi, id: string): Promise<ModelListRow> {
  const model = api.models.get(id)
  if (model !== undefined) {
    return registryRow(model, storeLayout(api.models.store, api.providers.list()), await api.library.missing())
  }
  const upstreams = upstreamRows(api.dispatch.upstreams(), name => api.files.guess(name))
  const stores = await npuStores(api)
  const spellings = new Set([id, ...stores.flatMap(({ provider }) => provider.models?.canonical(id) ?? [])])
  const onNpu = npuRows(stores, npuSlots(api)).find(row => spellings.has(row.id) || spellings.has(row.name))
  const other = onNpu ?? upstreams.find(row => row.id === id)
  if (other !== undefined) return other
  throw svcError('model.not_found', `no such model: '${id}'; GET /api/models lists all models`, { details: { model: id } })
}

async function npuStores ({ providers, models }: ModelApi): Promise<NpuStore[]> {
  const own = providers.list().filter(({ devices, models: kept }) => kept !== undefined && devices.includes('npu'))
  return await Promise.all(own.map(async provider =>
    ({ provider, models: await provider.models!.list(models.engineStore(provider)) })))
}

function npuSlots ({ slots }: ModelApi): NpuSlot[] {
  const onNpu = slots.names().filter(name => slots.device(name) === 'npu' && slots.config(name).served_by === null)
  return onNpu.map(name => {
    const config = slots.config(name)
    return { config, provider: slots.provider(name), modelId: config.model.default }
  })
}
