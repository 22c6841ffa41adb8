import { core, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
import { personaError } from './errors.js'
import { PersonaBook } from './personas.js'
import { agentPersonasRef } from './ref.js'
import { reloadPersona } from './reload.js'
import { reloadSocket } from './reload-url.js'
import { personasFile } from './schema.js'

const configSchema = z.strictObject({
  reload_hosts: z.array(z.string().min(1).max(253)).max(20).default([])
    .meta({ description: 'Hosts besides this machine that reload addresses may have' })
})

/** Who agents are: built-in personas, those of personas.toml, and which of them is active. */
export default definePlugin({
  name: 'agent-personas',
  kind: 'service',
  apiVersion: 1,
  errors: personaError,
  configSchema,
  requires: { agents: core.agents, clock: core.clock, config: core.config },
  provides: [agentPersonasRef],
  register (ctx) {
    const { agents, clock, config } = ctx.services
    const file = ctx.addConfigFile(personasFile)
    const hosts = ctx.config.reload_hosts
    ctx.provide(agentPersonasRef, new PersonaBook({
      agents,
      file,
      config,
      requireReloadable: url => { reloadSocket(url, hosts) },
      reload: (url, id, signal) => reloadPersona({ clock, hosts }, url, id, AbortSignal.any([signal, ctx.signal]))
    }))
  }
})
