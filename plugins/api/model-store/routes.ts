import { defineRoute, type ActivityLog, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { migrateBodySchema, sectionSchemas, storeBodySchema, storeSchema, type SectionSchemas } from './schemas.js'
import { asInvalid, type ModelStore, type StoreServices } from './store.js'
import { storeTools } from './tools.js'

export interface StoreApi extends StoreServices {
  readonly activity: ActivityLog
  readonly store: ModelStore
}

const STORE = '/api/settings/models/store'

export function storeRoutes (api: StoreApi): AnyRoute[] {
  const { activity, config, library, models, store } = api
  let kept: SectionSchemas | null = null
  const ofSection = (): SectionSchemas => kept ??= sectionSchemas(config.schema.shape.models.unwrap())
  /** A client that leaves ends its own wait and not the change: the row is written when that is over. */
  const change = async (
    call: Pick<RouteCall, 'actor' | 'requestId'>, path: string, how: { readonly migrate: boolean, readonly keep: boolean }
  ): Promise<z.output<SectionSchemas['changed']>> => await activity.audited({
    category: 'model', action: 'model.store', target: path, actor: call.actor, request_id: call.requestId
  }, async note => {
    note({ before: { store: models.store } })
    const result = await store.change(path, how)
    note(result.status === 'ok' ? { after: { store: models.store, migration: result.migration } } : { message: 'nothing was changed: there are models to move' })
    return result
  })
  return [
    defineRoute({
      method: 'GET',
      url: STORE,
      tag: 'Models',
      summary: 'The model store, and other places for it',
      schema: { response: storeSchema },
      tool: storeTools.read,
      handler: () => store.read()
    }),
    defineRoute({
      method: 'POST',
      url: STORE,
      tag: 'Models',
      summary: 'Make a folder the model store',
      description: 'If the current store has models, set `migrate` or `keep`; otherwise the answer is the plan of a move and nothing is done. ' +
        'Running slots use it from their next start.',
      schema: { body: storeBodySchema, get response () { return ofSection().changed } },
      example: { path: '/srv/models', keep: true },
      tool: storeTools.set,
      handler: call => change(call, call.body.path, call.body)
    }),
    defineRoute({
      method: 'POST',
      url: `${STORE}/migrate`,
      tag: 'Models',
      summary: 'Make a folder the model store and move the models there',
      description: 'The events `store.progress` report the progress.',
      schema: { body: migrateBodySchema, get response () { return ofSection().changed } },
      example: { path: '/srv/models' },
      tool: storeTools.migrate,
      handler: call => change(call, call.body.path, { migrate: true, keep: false })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/config/models',
      tag: 'Models',
      summary: 'The [models] section of svc.toml',
      schema: { get response () { return ofSection().section } },
      tool: storeTools.probe,
      handler: () => config.snapshot.svc.models
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/config/models',
      tag: 'Models',
      summary: 'Change the [models] section and scan again',
      schema: { get body () { return ofSection().patch }, get response () { return ofSection().saved } },
      example: { auto_scan_on_start: true, file_extensions: ['.gguf'] },
      handler: call => activity.audited({
        category: 'settings', action: 'settings.update', target: 'svc.toml', actor: call.actor, request_id: call.requestId
      }, async note => {
        note({ before: { models: config.snapshot.svc.models } })
        await config.patchSvc({ models: call.body }).catch(asInvalid)
        note({ after: { models: config.snapshot.svc.models } })
        const { added, skipped, scanned_roots: roots } = await library.scan()
        return { ...config.snapshot.svc.models, scan: { added: [...added], skipped: [...skipped], scanned_roots: [...roots] } }
      })
    })
  ]
}
