import Fastify from 'fastify'
import type { MountDeps } from '../../http/mount-route.js'
import { acceptAnyBody } from '../../http/app.js'
import { schemaController } from '../../http/schema-compilers.js'
import { routeKey } from './conflicts.js'
import { mountPlugin } from './mount.js'
import type { PluginRecord } from '../record/record.js'
import type { Services } from './services.js'

/** What a plugin that only declares routes makes, by its declarations; null when it has scopes of its own. */
export function declaredKeys ({ stage }: PluginRecord): ReadonlySet<string> | null {
  if (stage === null || stage.scopes.length > 0) return null
  return new Set(stage.routes.flatMap(({ method, url, alsoAt = [] }) => [url, ...alsoAt].map(each => routeKey(method, each))))
}

/**
 * Mounts plugins on a scratch instance, so that what would take the real one down is found first: a plugin's
 * failure inside Fastify cannot be caught once it has happened. Resolves with the
 * routes that each really makes; rejects with what is wrong, which does not tell whose fault it is.
 */
export async function preflight (
  records: readonly PluginRecord[], services: Services, deps: MountDeps
): Promise<ReadonlyMap<PluginRecord, ReadonlySet<string>>> {
  const scratch = Fastify({
    logger: false, schemaController, routerOptions: { maxParamLength: 1024, ignoreDuplicateSlashes: true }
  })
  const made = new Map<PluginRecord, Set<string>>()
  let routes = new Set<string>()
  acceptAnyBody(scratch, deps.bodies)
  scratch.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) {
      if (each !== 'HEAD') routes.add(routeKey(each, url))
    }
  })
  try {
    for (const record of records) {
      made.set(record, routes = new Set())
      await mountPlugin(scratch, record, services, deps)
    }
    await scratch.ready()
    return made
  } finally {
    // what the plugin opened for its scope ends with the scratch instance; a failure to end is told at the real one
    await scratch.close().catch(() => {})
  }
}

/**
 * Of plugins that declare routes and nothing else, as nearly all do. The gateway's own are taken at their word: one that
 * could not be mounted would fall then. The others share a scratch instance, and only when that fails does each have
 * one of its own, which finds the culprit.
 */
export async function preflightTogether (
  records: readonly PluginRecord[], services: Services, deps: MountDeps
): Promise<ReadonlyMap<PluginRecord, ReadonlySet<string>>> {
  const declared = records.flatMap(record => {
    const keys = declaredKeys(record)
    return keys === null ? [] : [[record, keys] as const]
  })
  const own = declared.filter(([{ candidate }]) => candidate.origin === 'builtin')
  const others = declared.map(([record]) => record).filter(({ candidate }) => candidate.origin !== 'builtin')
  if (others.length === 0) return new Map(own)
  const checked = await preflight(others, services, deps).catch(() => [])
  return new Map([...own, ...checked])
}
