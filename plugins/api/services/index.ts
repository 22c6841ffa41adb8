import { core, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
import { Announcements } from './announcements.js'
import { ServiceManager } from './companions.js'
import { servicesError } from './errors.js'
import { KeptServices } from './kept.js'
import { mdnsRoutes } from './mdns-routes.js'
import { createEnvironments } from './environments.js'
import { companionsRef, environmentsRef, runnersRef, type FindRunner } from './ref.js'
import { serviceRoutes } from './routes.js'
import { Systemd } from './systemd.js'

const envSchema = z.record(z.string(), z.string())

const configSchema = z.strictObject({
  systemctl: z.string().min(1).default('systemctl').meta({ description: 'Name or path of systemctl' }),
  downloads: z.boolean().default(true).meta({ description: 'Whether services may be downloaded from registries' }),
  installer_env: envSchema.default({}).meta({ description: 'Additional environment of installers, such as your own registry or a proxy' }),
  announce_on: z.array(z.string().min(1).max(64)).max(16).optional().meta({ description: 'Network interfaces to announce services on if no avahi daemon is running; default is all external ones' }),
  services: z.record(z.string(), z.strictObject({
    port: z.int().min(1).max(65_535).optional(),
    env: envSchema.optional()
  })).default({}).meta({ description: 'By id: port and additional environment of the service' })
})

/** `/api/services`: programs beside the gateway, run by systemd where it has their units and by the gateway elsewhere. */
export default definePlugin({
  name: 'api-services',
  kind: 'routes',
  apiVersion: 1,
  errors: servicesError,
  requires: {
    activity: core.activity,
    catalog: core.services,
    clock: core.clock,
    config: core.config,
    info: core.info,
    daemons: core.daemons,
    slots: core.slots
  },
  provides: [companionsRef, environmentsRef, runnersRef],
  configSchema,
  register (ctx) {
    const { services: settings, systemctl, downloads, installer_env: own, announce_on: interfaces = null } = ctx.config
    const systemd = new Systemd(systemctl, ctx.services.clock)
    const kept = new KeptServices(ctx.table)
    const folder = (): string => ctx.stateDir
    const runners: FindRunner[] = []
    const deps = {
      ...ctx.services, settings, systemd, kept, runners, downloads, log: ctx.log, signal: ctx.signal,
      env: { ...process.env, ...own },
      get folder () { return folder() }
    }
    const manager = new ServiceManager(deps)
    const { clock, config } = ctx.services
    const announcements = new Announcements({
      clock, config, systemd, interfaces, log: ctx.log, portOf: service => manager.portOf(service)
    })
    const api = { ...ctx.services, settings, kept, manager, announcements }
    for (const route of [...serviceRoutes(api), ...mdnsRoutes(api)]) ctx.addRoute(route)
    ctx.provide(companionsRef, manager)
    ctx.provide(runnersRef, { add: find => { runners.push(find) } })
    const clean = (text: string): string => deps.config.withoutSecrets(text)
    ctx.provide(environmentsRef, createEnvironments({ env: deps.env, downloads, clean }))
    ctx.onStart(async signal => {
      // the network takes two seconds to be told, and may not be there yet
      const capable = manager.list().filter(({ mdns }) => mdns)
      void (kept.announces ? announcements.resume(capable) : Promise.resolve(null)).then(why => { if (why !== null) ctx.log.warn({ why }, 'services are not announced') })
      await manager.start(signal)
    })
    // another gateway of this machine may have announced its own
    ctx.onStop(async () => { if (kept.announces) await announcements.withdraw() })
  }
})
