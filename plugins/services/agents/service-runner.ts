import type { DaemonService } from 'svc-gateway/plugin'
import type { ServiceRunner } from '../../api/services/ref.js'
import type { Lifecycle } from './lifecycle.js'
import { daemonOf } from './home/agent-server.js'

/** An agent with a server, as a service: here while it is installed, and then it starts with the gateway. */
export function serviceRunner (lifecycle: Lifecycle, daemons: DaemonService, id: string): ServiceRunner {
  const daemon = daemonOf(id)
  return {
    daemon,
    brings: `svc agent install ${id}`,
    installed () {
      const status = lifecycle.list().find(({ name, installed_at: at }) => name === id && at !== null)
      return status === undefined ? null : { version: status.version }
    },
    async act (verb) {
      switch (verb) {
        case 'stop':
          await lifecycle.halt(id)
          return `${id} does not run until it is started, or the gateway is`
        case 'enable':
          return `${id} starts with the gateway`
        case 'disable':
          throw new Error(`an installed agent starts with the gateway; \`svc agent uninstall ${id}\` removes it`)
        default:
          if (verb === 'restart' || daemons.status(daemon).state !== 'running') await lifecycle.restart(id)
          return `${id} answers`
      }
    }
  }
}
