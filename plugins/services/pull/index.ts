import { join } from 'node:path'
import { core, definePlugin, messageOf } from 'svc-gateway/plugin'
import { hubRef } from '../hub/ref.js'
import { libraryRef } from '../library/ref.js'
import { readDisk } from './file/disk.js'
import { modelError, pullError } from './errors.js'
import { Pulls } from './pulls.js'
import { pullsRef } from './ref.js'
import { pullConfigSchema } from './settings.js'

/** Downloads of models: resumable, checked, one job a model. */
export default definePlugin({
  name: 'pull',
  kind: 'service',
  apiVersion: 1,
  errors: [modelError, pullError],
  requires: {
    clock: core.clock,
    events: core.events,
    home: core.config,
    hub: hubRef,
    info: core.info,
    jobs: core.jobs,
    library: libraryRef,
    models: core.models,
    providers: core.providers,
    tasks: core.tasks
  },
  provides: [pullsRef],
  configSchema: pullConfigSchema,
  register (ctx) {
    const { services, config, log } = ctx
    const pulls = new Pulls({ ...services, config, log, readDisk, instance: () => services.info.instance, imageModels: join(services.home.paths.state, 'comfyui', 'models') })
    for (const [key, schema] of Object.entries(pullConfigSchema.shape)) {
      ctx.addSetting({ key, schema, description: schema.meta()?.description ?? key, apply: 'gateway-restart' })
    }
    ctx.provide(pullsRef, pulls)
    ctx.addHealth(() => pulls.health)
    ctx.onStart(async () => {
      // a pull that cannot go on is no reason for the gateway not to
      await pulls.resume().catch((error: unknown) => log.error({ err: error }, `unfinished pulls could not be resumed: ${messageOf(error)}`))
    })
    ctx.onStop(() => pulls.close())
  }
})
