import type { Clock, ConfigService, Logger, SlotWish } from '../../../kernel/contract/index.js'
import type { WithLock } from '../../../kernel/config/locker.js'
import type { LaidProviders } from '../../../kernel/config/parts/laid-providers.js'
import { layManifest } from '../../../kernel/config/schema/json-files.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { createModelRegistry } from '../../../kernel/models/registry.js'
import { resolveImage } from '../../../kernel/runtime/image/image-manifest.js'
import { misfitOf } from '../../../kernel/slots/plan/slot-misfit.js'
import type { CandidateSource } from '../../../plugins/api/capabilities/candidates.js'
import { hostBackends } from '../../../plugins/api/capabilities/host-backends.js'
import { CliFailure } from '../../failure.js'
import { curated, declaredPlugins, layPlugins, type OfflineKernel as Declaring } from '../declared-plugins.js'

export interface OfflineKernel extends Declaring {
  readonly config: ConfigService
  readonly clock: Clock
  readonly log: Logger
  readonly withLock: WithLock
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What selections are judged by, gathered without a gateway: nothing is started, nothing is written. */
export async function offlineSource (kernel: OfflineKernel): Promise<CandidateSource> {
  const { config, clock, log, withLock, env } = kernel
  const { paths } = config
  const models = await createModelRegistry({ paths, env, log, clock, withLock, settings: () => config.snapshot.svc.models })
  const cached = config.snapshot.hardware
  const hardware = cached.probed_at === '' ? await probeHardware({ root: '/', clock, diskPath: models.store }) : cached
  const providers = await declaredProviders(kernel)
  const hosts = hostBackends(hardware, providers)
  const misfit = (wish: SlotWish): string | null => misfitOf(wish, {
    models,
    providers,
    profiles: config.snapshot.profiles,
    runtime: { form: config.snapshot.svc.runtime.driver === 'process' ? 'process' : 'container' },
    image: name => resolveImage(name, layManifest(providers.images, config.snapshot.manifest), env)
  })
  return { models: models.list(), curated, providers: providers.list(), catalog: providers, hosts, hardware, misfit }
}

/** Rejects when one of them cannot be had: a choice of it would be taken for one that is not legal. */
async function declaredProviders (kernel: OfflineKernel): Promise<LaidProviders> {
  const plugins = await declaredPlugins(kernel)
  for (const { name, trouble } of plugins) {
    if (trouble === null) continue
    throw new CliFailure(`without a gateway the engines of plugin ${name} are unknown: ${trouble}`, {
      hints: ['Start the gateway and run it again, or list the plugin in [plugins] disabled.']
    })
  }
  return layPlugins(plugins)
}
