import { core, definePlugin, svcError } from 'svc-gateway/plugin'
import { hostDisplayRef } from '../stats/ref.js'
import { proxmoxError } from './errors.js'
import { slimHost } from './host-status.js'
import { HostWatch } from './host-watch.js'
import { proxmoxRoutes } from './routes.js'
import { SettingsFile } from './settings-file.js'

/**
 * `/api/settings/proxmox`: the virtualization host that this machine is a guest of. The host is asked while
 * a page is open and not otherwise; `/api/stats/hardware` shows what is known and never waits for it.
 */
export default definePlugin({
  name: 'api-proxmox',
  kind: 'routes',
  apiVersion: 1,
  errors: proxmoxError,
  requires: { activity: core.activity, clock: core.clock, config: core.config, display: hostDisplayRef, events: core.events },
  register (ctx) {
    const { activity, clock, config, display, events } = ctx.services
    const file = new SettingsFile(config)
    const watch = new HostWatch({ clock, events })
    const stopping = new AbortController()
    for (const route of proxmoxRoutes({ activity, clock, events, file, watch, stopping: stopping.signal })) ctx.addRoute(route)
    ctx.onStart(() => display.show(async () => {
      const stored = await file.read()
      if (stored.kind === 'none') return null
      if (stored.kind === 'broken') return { configured: true, ok: false, error: stored.problem }
      return slimHost(watch.latest(stored.settings))
    }))
    ctx.onStop(async () => {
      stopping.abort(svcError('plugin.unavailable', 'the plugin is stopping; try again when it is back'))
      display.show(null)
      await watch.close()
    })
  }
})
