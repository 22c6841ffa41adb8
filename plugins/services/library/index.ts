import { core, definePlugin, isSvcError, messageOf } from 'svc-gateway/plugin'
import { modelError } from './errors.js'
import { Library } from './library.js'
import { curatedRef, libraryRef } from './ref.js'

/** The model library: curated models, files on disk, changes of the registry with their events. */
export default definePlugin({
  name: 'library',
  kind: 'service',
  apiVersion: 1,
  errors: modelError,
  requires: {
    clock: core.clock,
    config: core.config,
    events: core.events,
    files: core.modelFiles,
    models: core.models,
    providers: core.providers
  },
  provides: [libraryRef, curatedRef],
  register (ctx) {
    const { config } = ctx.services
    const library = new Library(ctx.services)
    ctx.provide(libraryRef, library)
    ctx.provide(curatedRef, library.curated)
    ctx.onStart(() => {
      if (!config.snapshot.svc.models.auto_scan_on_start) return
      // it is not waited for: headers of many new files take their time
      void library.scan().then(
        ({ added }) => { if (added.length > 0) ctx.log.info({ models: added }, 'found models on disk and registered them') },
        (error: unknown) => { if (!isSvcError(error) || error.code !== 'gateway.stopping') ctx.log.warn({ err: error }, `the scan for models failed: ${messageOf(error)}`) }
      )
    })
    ctx.onStop(() => library.close())
  }
})
