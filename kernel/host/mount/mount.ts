import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { svcError, type SvcError } from '../../contract/index.js'
import { mountRoute, type MountDeps } from '../../http/mount-route.js'
import { whileDeclaring } from '../watch/plugin-scope.js'
import type { PluginRecord } from '../record/record.js'
import type { Services } from './services.js'

/**
 * Puts a plugin's routes and scopes on `app`, inside a named scope of its own, behind a gate.
 * @param readying called before the first `onReady` hook of the plugin's scopes
 */
export async function mountPlugin (
  app: FastifyInstance, record: PluginRecord, services: Services, deps: MountDeps, readying = (): void => {}
): Promise<void> {
  const { stage, plugin } = record
  if (stage === null || plugin === null || (stage.routes.length === 0 && stage.scopes.length === 0)) return
  const scope: FastifyPluginAsync = async scoped => {
    const gate = gateOf(record)
    for (const route of stage.routes) {
      try {
        mountRoute(scoped, route, deps, gate, record.own.signal)
      } catch (error) {
        throw calledFrom(error, stage.calls.get(route))
      }
    }
    if (stage.scopes.length === 0) return
    scoped.addHook('onReady', done => {
      readying()
      done()
    })
    scoped.addHook('onRequest', (_request, _reply, done) => {
      const verdict = gate()
      if (verdict === null) return done()
      verdict.then(refusal => done(refusal ?? undefined), done)
    })
    const { fastifyAwilixPlugin } = await import('@fastify/awilix')
    await scoped.register(fastifyAwilixPlugin, {
      container: services.containerOf(plugin.requires ?? {}) as never,
      disposeOnClose: false,
      disposeOnResponse: false,
      asyncInit: false,
      asyncDispose: false,
      eagerInject: false,
      strictBooleanEnforced: true
    })
    for (const configure of stage.scopes) await whileDeclaring(record, () => configure(scoped))
  }
  await app.register(fp(scope, { name: record.name, encapsulate: true }))
}

/** The router's own stack says nothing of the plugin: where the route was declared is added. */
function calledFrom (error: unknown, call: Error | undefined): unknown {
  if (error instanceof Error && call !== undefined) error.stack = `${error.stack ?? ''}\n${call.stack ?? ''}`
  return error
}

/** Null while the plugin is up; else it settles when it has started, with what refuses calls of one that is not active. */
export function gateOf (record: PluginRecord): () => Promise<SvcError | null> | null {
  return () => record.state === 'active' && record.started === null ? null : passGate(record)
}

/** Requests that come while the plugin starts wait for it; those of one that is not active are refused. */
async function passGate (record: PluginRecord): Promise<SvcError | null> {
  await record.started
  return record.state === 'active' ? null : unavailable(record)
}

export function unavailable (record: PluginRecord): SvcError {
  return svcError('plugin.unavailable',
    `plugin '${record.name}' behind this route is ${record.state}: ${record.message ?? 'see GET /api/plugins'}`,
    // a plugin that ended any other way than by starting comes back only when something is changed
    { details: { plugin: record.name, state: record.state, code: record.code }, heals: record.state === 'active' || record.state === 'booting' })
}
