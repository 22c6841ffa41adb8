import { core, definePlugin, defineRuntime, settingsOf } from 'svc-gateway/plugin'
import { kubernetesError } from './errors.js'
import { addedSettings, clusterSettings, isConfigured, slotOptionsSchema } from './settings.js'

/** Slots whose engines run in a Kubernetes cluster. See README.md. */
export default definePlugin({
  name: 'kubernetes',
  kind: 'runtime',
  apiVersion: 1,
  requires: { config: core.config, clock: core.clock, info: core.info },
  errors: kubernetesError,
  settings: clusterSettings,
  register: ctx => {
    const { config, clock, info } = ctx.services
    const settings = (): ReturnType<typeof settingsOf<typeof clusterSettings.schema>>['kubernetes'] =>
      settingsOf(config.snapshot.svc, clusterSettings).kubernetes
    ctx.addRuntime(defineRuntime({
      name: 'kubernetes',
      form: 'container',
      elsewhere: true,
      slotOptions: slotOptionsSchema,
      settingsOf: options => addedSettings(settings(), slotOptionsSchema.parse(options)),
      wanted: () => isConfigured(settings()),
      open: async signal => {
        const { openKubernetes } = await import('./open.js')
        const budgets = (): { startS: number, pullS: number, stopS: number } => {
          const { start_timeout_s: startS, image_pull_timeout_s: pullS, stop_timeout_s: stopS } = config.snapshot.svc.slots
          return { startS, pullS, stopS }
        }
        const home = { folder: ctx.stateDir, instance: info.instance }
        return await openKubernetes({ settings, budgets, clock, log: ctx.log, env: process.env, home }, signal)
      }
    }))
  }
})
