import type { FastifyInstance } from 'fastify'
import type { AnyRoute } from '../../contract/index.js'
import { sendError } from '../../http/error-handler.js'
import type { MountDeps } from '../../http/mount-route.js'
import { isMountable, routeKey } from './conflicts.js'
import { mountPlugin, unavailable } from './mount.js'
import { isAlive, type PluginRecord } from '../record/record.js'
import type { Services } from './services.js'

/** A plugin that went through its dry run but cannot be mounted. */
export interface Fallen {
  readonly record: PluginRecord
  readonly error: unknown
}

/**
 * Mounts every plugin that stands, and a refusal in place of each route that a fallen one had declared in full:
 * its callers learn that the plugin is down, not that the route does not exist. Resolves with null, or with the
 * first plugin that falls over this: the instance is then of no use.
 */
export async function renderPlugins (
  app: FastifyInstance, records: readonly PluginRecord[],
  { services, mount }: { readonly services: Services, readonly mount: MountDeps }
): Promise<Fallen | null> {
  const taken = new Set<string>()
  const scoped: PluginRecord[] = []
  for (const record of records.filter(isAlive)) {
    try {
      await mountPlugin(app, record, services, mount, () => { scoped.push(record) })
    } catch (error) {
      return { record, error }
    }
    for (const key of record.routeKeys) taken.add(key)
  }
  for (const record of records.filter(candidate => !isAlive(candidate))) {
    for (const route of record.stage?.routes ?? []) {
      const key = routeKey(route.method, route.url)
      if (!isMountable(route.url) || taken.has(key)) continue
      taken.add(key)
      mountRefusal(app, route, record)
    }
  }
  try {
    await app.ready()
  } catch (error) {
    // scopes get ready one after the other: the last that began is the one that failed
    const record = scoped.at(-1)
    if (record === undefined) throw error
    return { record, error }
  }
  return null
}

function mountRefusal (app: FastifyInstance, route: AnyRoute, record: PluginRecord): void {
  app.route({
    method: route.method,
    url: route.url,
    handler: (request, reply) => sendError(reply, unavailable(record), request.id)
  })
}
