import Fastify from 'fastify'
import type { MountDeps } from '../http/mount-route.js'
import { acceptAnyBody } from '../http/app.js'
import { routeKey } from './conflicts.js'
import { mountPlugin } from './mount.js'
import type { PluginRecord } from './record.js'
import type { Services } from './services.js'

/**
 * Mounts one plugin on a scratch instance, so that what would take the real one down is found first: a plugin's
 * failure inside Fastify cannot be caught once it has happened. Resolves with the
 * routes that it really makes; rejects with what is wrong.
 */
export async function preflight (record: PluginRecord, services: Services, deps: MountDeps): Promise<ReadonlySet<string>> {
  const scratch = Fastify({ logger: false, routerOptions: { maxParamLength: 1024, ignoreDuplicateSlashes: true } })
  const routes = new Set<string>()
  acceptAnyBody(scratch, deps.bodies)
  scratch.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) {
      if (each !== 'HEAD') routes.add(routeKey(each, url))
    }
  })
  try {
    await mountPlugin(scratch, record, services, deps)
    await scratch.ready()
    return routes
  } finally {
    // what the plugin opened for its scope ends with the scratch instance; a failure to end is told at the real one
    await scratch.close().catch(() => {})
  }
}
