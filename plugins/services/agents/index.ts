import { core, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
import { agentPrograms } from './builtin/programs.js'
import { hermes } from './builtin/hermes.js'
import { pi } from './builtin/pi.js'
import { agentError } from './errors.js'
import { KnownAgents } from './known-agents.js'
import { agentsRef } from './ref.js'

const configSchema = z.strictObject({
  model: z.string().min(1).max(256).default('svc/agent').meta({ description: 'The model that agents are told to ask for' })
})

/** Agents: what plugins describe, pointed at this gateway. */
export default definePlugin({
  name: 'agents',
  kind: 'service',
  apiVersion: 1,
  errors: agentError,
  requires: { catalog: core.agents, config: core.config, dispatch: core.dispatch, slots: core.slots },
  provides: [agentsRef],
  configSchema,
  register (ctx) {
    for (const agent of [pi, hermes, ...agentPrograms]) ctx.addAgent(agent)
    ctx.provide(agentsRef, new KnownAgents({ ...ctx.services, model: ctx.config.model }))
  }
})
