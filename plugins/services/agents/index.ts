import { join } from 'node:path'
import { core, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
import { environmentsRef, runnersRef } from '../../api/services/ref.js'
import { agentPersonasRef } from '../agent-personas/ref.js'
import { agentPrograms } from './builtin/programs.js'
import { hermes } from './builtin/hermes.js'
import { pi } from './builtin/pi.js'
import { agentError } from './errors.js'
import { KnownAgents } from './known-agents.js'
import { Lifecycle } from './lifecycle.js'
import { Offers } from './offers.js'
import { agentLifecycleRef, agentOffersRef, agentsRef } from './ref.js'
import { serviceRunner } from './service-runner.js'

const configSchema = z.strictObject({
  model: z.string().min(1).max(256).default('svc/agent').meta({ description: 'Model that agents are configured to use' })
})

/** Agents: what plugins describe, pointed at this gateway. */
export default definePlugin({
  name: 'agents',
  kind: 'service',
  apiVersion: 1,
  errors: agentError,
  requires: {
    catalog: core.agents,
    clock: core.clock,
    config: core.config,
    daemons: core.daemons,
    dispatch: core.dispatch,
    environments: environmentsRef,
    info: core.info,
    jobs: core.jobs,
    personas: agentPersonasRef,
    programs: core.programs,
    runners: runnersRef,
    slots: core.slots
  },
  provides: [agentsRef, agentLifecycleRef, agentOffersRef],
  configSchema,
  register (ctx) {
    for (const agent of [pi, hermes, ...agentPrograms]) ctx.addAgent(agent)
    const known = new KnownAgents({ ...ctx.services, model: ctx.config.model })
    const { config, info, personas } = ctx.services
    const lifecycle = new Lifecycle({
      ...ctx.services,
      known,
      version: info.version,
      configOf: id => join(config.paths.etc, 'agents', `${id}.toml`),
      port: () => config.snapshot.svc.server.port,
      root: () => ctx.stateDir,
      signal: ctx.signal,
      log: ctx.log
    })
    ctx.provide(agentsRef, known)
    ctx.provide(agentLifecycleRef, lifecycle)
    const { catalog, clock, daemons, environments, runners } = ctx.services
    const root = (): string => ctx.stateDir
    ctx.provide(agentOffersRef, new Offers({ clock, daemons, environments, known, lifecycle, root, signal: ctx.signal }))
    // those with a server are services as well, where a plugin describes them as such
    runners.add(id => catalog.get(id)?.server === undefined ? undefined : serviceRunner(lifecycle, daemons, id))
    let [forget, unfollow] = [(): void => {}, (): void => {}]
    ctx.onStart(async () => {
      forget = personas.findRunning(async agent => (await lifecycle.socket(agent, true))?.href ?? null)
      await lifecycle.supervision.start()
      unfollow = catalog.onChange(() => lifecycle.supervision.follow())
    })
    ctx.onStop(async () => {
      forget()
      unfollow()
      await lifecycle.stop()
    })
  }
})
