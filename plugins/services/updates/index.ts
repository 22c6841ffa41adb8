import { core, definePlugin } from 'svc-gateway/plugin'
import { updateError } from './errors.js'
import { updatesRef } from './ref.js'
import { Releases } from './releases.js'
import { updatesConfigSchema } from './settings.js'

/** Releases of the gateway itself: what the channel has, and whether it is for this installation. */
export default definePlugin({
  name: 'updates',
  kind: 'service',
  apiVersion: 1,
  errors: updateError,
  requires: { clock: core.clock, config: core.config, info: core.info, installation: core.installation },
  provides: [updatesRef],
  configSchema: updatesConfigSchema,
  register (ctx) {
    const releases = new Releases({ ...ctx.services, log: ctx.log, settings: ctx.config })
    for (const [key, schema] of Object.entries(updatesConfigSchema.shape)) {
      ctx.addSetting({ key, schema, description: schema.meta()?.description ?? key, apply: 'gateway-restart' })
    }
    ctx.provide(updatesRef, releases)
    ctx.onStart(() => releases.start())
    ctx.onStop(() => releases.close())
  }
})
