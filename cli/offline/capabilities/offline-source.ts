import { join } from 'node:path'
import {
  core, messageOf, type AnyPlugin, type Clock, type ConfigService, type EngineProvider, type Logger
} from '../../../kernel/contract/index.js'
import { checkShape } from '../../../kernel/config/problems.js'
import type { WithLock } from '../../../kernel/config/locker.js'
import { createEventBus } from '../../../kernel/events/event-bus.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { builtinCandidates, descriptorCandidates, packageCandidates } from '../../../kernel/host/discover.js'
import type { Candidate } from '../../../kernel/host/record.js'
import { checkPluginShape } from '../../../kernel/host/shape.js'
import { createContext } from '../../../kernel/host/stage.js'
import { createModelRegistry } from '../../../kernel/models/registry.js'
import type { CandidateSource } from '../../../plugins/api/capabilities/candidates.js'
import { hostBackends } from '../../../plugins/api/capabilities/host-backends.js'
import builtins from '../../../plugins/index.js'
import { curatedMedia } from '../../../plugins/services/library/curated-media.js'
import { curatedText } from '../../../plugins/services/library/curated-text.js'
import { curatedRef } from '../../../plugins/services/library/ref.js'
import { CliFailure } from '../../failure.js'

export interface OfflineKernel {
  readonly config: ConfigService
  readonly clock: Clock
  readonly log: Logger
  readonly withLock: WithLock
  readonly env: Readonly<Record<string, string | undefined>>
}

const curated = [...curatedText, ...curatedMedia]

/** What selections are judged by, gathered without a gateway: nothing is started, nothing is written. */
export async function offlineSource (kernel: OfflineKernel): Promise<CandidateSource> {
  const { config, clock, log, withLock, env } = kernel
  const { paths } = config
  const models = await createModelRegistry({ paths, env, log, clock, withLock, settings: () => config.snapshot.svc.models })
  const cached = config.snapshot.hardware
  const hardware = cached.probed_at === '' ? await probeHardware({ root: '/', clock, diskPath: models.store }) : cached
  const providers = await declaredProviders(kernel)
  const hosts = hostBackends(hardware, providers)
  return { models: models.list(), curated, providers, hosts, hardware }
}

/**
 * The providers that a gateway on this home would have. Declaring has no effect (DESIGN 3), so it can be done here. Rejects
 * when one of them cannot be had: a choice of it would be taken for one that is not legal.
 */
async function declaredProviders (kernel: OfflineKernel): Promise<readonly EngineProvider[]> {
  const { config: { paths, snapshot } } = kernel
  const { allow, disabled } = snapshot.svc.plugins
  const candidates = [
    ...builtinCandidates(builtins.filter(({ name }) => !/^(api|v1)-/.test(name))),
    ...await descriptorCandidates(join(paths.etc, 'engines')),
    ...await packageCandidates(paths.plugins, allow)
  ]
  const wanted = candidates.filter(({ name }) => !disabled.includes(name))
  const staged = await Promise.all(wanted.map(candidate => providersOf(candidate, kernel)))
  return staged.flat()
}

async function providersOf (candidate: Candidate, kernel: OfflineKernel): Promise<readonly EngineProvider[]> {
  try {
    if (candidate.problem !== null) throw candidate.problem
    if (candidate.manifest !== null && candidate.manifest.kind !== 'provider') return []
    const plugin = checkPluginShape(await candidate.load(), candidate.name, candidate.manifest)
    if ('code' in plugin) throw new Error(plugin.message)
    if (plugin.kind !== 'provider') return []
    const context = createContext(plugin, configOf(plugin, kernel.config), servicesOf(plugin, kernel), kernel.log)
    await plugin.register(context.context as never)
    context.seal()
    return context.stage.providers
  } catch (error) {
    throw new CliFailure(`without a gateway the engines of plugin ${candidate.name} are not known: ${messageOf(error)}`, {
      cause: error, hints: ['Start the gateway and run it again, or list the plugin in [plugins] disabled.']
    })
  }
}

function servicesOf ({ requires = {} }: AnyPlugin, { config, clock }: OfflineKernel): Record<string, unknown> {
  const known = new Map<string, unknown>([
    [core.clock.id, clock], [core.config.id, config], [core.events.id, createEventBus({ clock })],
    [curatedRef.id, curated]
  ])
  return Object.fromEntries(Object.entries(requires).map(([key, { id }]) => {
    if (!known.has(id)) throw new Error(`it requires ${id}, which only a gateway has`)
    return [key, known.get(id)]
  }))
}

function configOf ({ name, configSchema }: AnyPlugin, { snapshot }: ConfigService): unknown {
  const table = snapshot.svc.plugins.config[name] ?? {}
  if (configSchema === undefined) return table
  const { value, problems } = checkShape(configSchema, table, { audience: 'file' })
  if (problems.length > 0) throw new Error(`[plugins.config.${name}] is not valid`)
  return value
}
