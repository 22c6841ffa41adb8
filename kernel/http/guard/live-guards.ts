import { hostname } from 'node:os'
import type { ConfigService } from '../../contract/index.js'
import { createGuards, type Guards } from './guards.js'

type Env = Readonly<Record<string, string | undefined>>

/** Guards that are made anew when the configuration changes, so that an added name counts at once. */
export function liveGuards (config: ConfigService, env: Env, listensOn: string | undefined): Guards {
  const make = (): Guards => {
    const { server: { allowed_hosts: allowedHosts, allowed_origins: allowedOrigins, host }, mcp } = config.snapshot.svc
    const own = hostname().toLowerCase()
    return createGuards({
      allowedHosts: [...allowedHosts, ...words(env.SVC_ALLOWED_HOSTS)],
      allowedOrigins: [...allowedOrigins, ...words(env.SVC_ALLOWED_ORIGINS)],
      ownNames: [own, `${own}.local`, listensOn ?? host],
      mcp: {
        allowedHosts: [...mcp.allowed_hosts, ...words(env.SVC_MCP_ALLOWED_HOSTS)],
        allowedOrigins: [...mcp.allowed_origins, ...words(env.SVC_MCP_ALLOWED_ORIGINS)]
      }
    })
  }
  let guards = make()
  config.onChange(() => { guards = make() })
  return { host: visit => guards.host(visit), origin: visit => guards.origin(visit) }
}

function words (list = ''): readonly string[] {
  return list.split(',').map(word => word.trim()).filter(word => word !== '')
}
