import { core, definePlugin } from 'svc-gateway/plugin'
import { updateError } from './errors.js'
import { updatesRef, type Updates } from './ref.js'
import { Releases } from './releases.js'
import { telemetrySettings, updatesConfigSchema } from './settings.js'
import { settle } from './settling.js'
import { Updater } from './updater.js'

/** Releases of the gateway itself: what the channel has, and how it gets here. */
export default definePlugin({
  name: 'updates',
  kind: 'service',
  apiVersion: 1,
  errors: updateError,
  requires: {
    activity: core.activity,
    clock: core.clock,
    config: core.config,
    info: core.info,
    installation: core.installation,
    plugins: core.plugins
  },
  provides: [updatesRef],
  settings: telemetrySettings,
  configSchema: updatesConfigSchema,
  register (ctx) {
    const { log, signal, config: settings } = ctx
    const releases = new Releases({ ...ctx.services, log, settings })
    const deps = { ...ctx.services, log, signal, settings, releases }
    const updater = new Updater(deps)
    for (const [key, schema] of Object.entries(updatesConfigSchema.shape)) {
      ctx.addSetting({ key, schema, description: schema.meta()?.description ?? key, apply: 'gateway-restart' })
    }
    const updates: Updates = {
      get available () { return releases.available },
      get autoCheck () { return releases.autoCheck },
      get channel () { return releases.channel },
      standing: () => releases.standing(),
      check: (target, stop) => releases.check(target, stop),
      apply: version => updater.apply(version),
      rollBack: () => updater.rollBack(),
      job: id => {
        const job = updater.jobs.get(id)
        if (job === undefined) throw updateError('system.update_job_not_found', `there is no update ${id.slice(0, 40)}`)
        return job
      }
    }
    ctx.provide(updatesRef, updates)
    ctx.onStart(async () => {
      await settle({ ...deps, updater })
      await releases.start()
    })
    ctx.onStop(() => releases.close())
  }
})
