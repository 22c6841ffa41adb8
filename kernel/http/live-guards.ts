import { hostname } from 'node:os'
import type { ConfigService } from '../contract/index.js'
import { createGuards, type Guards } from './guards.js'

/** Guards that are made anew when the configuration changes, so that an added name counts at once. */
export function liveGuards (config: ConfigService, listensOn: string | undefined): Guards {
  const make = (): Guards => {
    const { allowed_hosts: allowedHosts, allowed_origins: allowedOrigins, host } = config.snapshot.svc.server
    const own = hostname().toLowerCase()
    return createGuards({ allowedHosts, allowedOrigins, ownNames: [own, `${own}.local`, listensOn ?? host] })
  }
  let guards = make()
  config.onChange(() => { guards = make() })
  return { host: visit => guards.host(visit), origin: visit => guards.origin(visit) }
}
