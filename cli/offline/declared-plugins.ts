import { join } from 'node:path'
import {
  core, type AnyPlugin, type Clock, type ConfigFileDefinition, type ConfigService, type EngineProvider, type ErrorCode,
  type Logger, type RuntimeDefinition, type UpstreamTemplate
} from '../../kernel/contract/index.js'
import { LaidProviders } from '../../kernel/config/parts/laid-providers.js'
import { createEventBus } from '../../kernel/events/event-bus.js'
import { withDeadline } from '../../kernel/host/start/deadline.js'
import { failureText } from '../../kernel/host/watch/failure-text.js'
import { builtinCandidates, descriptorCandidates, packageCandidates } from '../../kernel/host/packages/discover.js'
import { checkPluginTable, type KnownPlugin } from '../../kernel/host/record/plugin-findings.js'
import { isMissing, type Candidate } from '../../kernel/host/record/record.js'
import { checkPluginShape } from '../../kernel/host/record/shape.js'
import { createContext, type PluginState } from '../../kernel/host/record/stage.js'
import type { RuntimeChoice } from '../../kernel/slots/plan/slot-runtime.js'
import { version } from '../../kernel/version.js'
import builtins from '../../plugins/index.js'
import { curatedMedia } from '../../plugins/services/library/curated-media.js'
import { curatedText } from '../../plugins/services/library/curated-text.js'
import { curatedRef } from '../../plugins/services/library/ref.js'

export interface OfflineKernel {
  readonly config: Pick<ConfigService, 'snapshot' | 'paths'>
  readonly clock: Clock
  readonly log: Logger
}

export interface DeclaredPlugin extends KnownPlugin {
  readonly providers: readonly EngineProvider[]
  readonly runtimes: readonly RuntimeDefinition[]
  readonly files: readonly ConfigFileDefinition[]
  readonly templates: readonly UpstreamTemplate[]
  /** Why its providers and runtimes are not known without a gateway; null when they are. */
  readonly trouble: string | null
}

export const curated = [...curatedText, ...curatedMedia]

/** As long as a gateway waits. */
const IMPORT_MS = 5_000

/**
 * The plugins that a gateway on this home would have. Declaring has no effect, so it can be done here: that of
 * engines, and of what has a table in svc.toml. Of the other plugins of the release only the name is known. Never rejects.
 */
export async function declaredPlugins (kernel: OfflineKernel): Promise<readonly DeclaredPlugin[]> {
  const { config: { paths, snapshot } } = kernel
  const { allow, disabled, config: tables } = snapshot.svc.plugins
  const isAsked = (name: string): boolean => !/^(api|v1|mcp)-/.test(name) || Object.hasOwn(tables, name)
  const candidates = [
    ...builtinCandidates(builtins),
    ...await descriptorCandidates(join(paths.etc, 'engines')),
    ...await packageCandidates({ folder: paths.plugins, generations: null, gateway: version }, allow)
  ]
  // the clock keeps no process alive, and an import that hangs does not either
  const alive = setInterval(() => {}, IMPORT_MS)
  try {
    return await Promise.all(candidates.map(candidate =>
      disabled.includes(candidate.name) || (candidate.origin === 'builtin' && !isAsked(candidate.name))
        ? nameOnly(candidate)
        : declare(candidate, kernel, disabled)))
  } finally {
    clearInterval(alive)
  }
}

/** The facts of their providers, laid over each other as a gateway does. */
export function layPlugins (plugins: readonly DeclaredPlugin[]): LaidProviders {
  return new LaidProviders(plugins.flatMap(({ origin, providers }) =>
    providers.map(provider => ({ provider, isBuiltin: origin === 'builtin' }))), plugins.flatMap(({ templates }) => templates))
}

/** What slots may ask for by name; without those of plugins where one of them cannot tell. */
export function declaredRuntimes (plugins: readonly DeclaredPlugin[]): Pick<RuntimeChoice, 'formOf' | 'names' | 'isElsewhere' | 'optionsOf'> {
  const isUnknown = plugins.some(({ plugin, trouble }) => trouble !== null && [plugin?.kind ?? 'runtime'].flat().includes('runtime'))
  if (isUnknown) return {}
  const runtimes = plugins.flatMap(plugin => plugin.runtimes)
  const forms = new Map(runtimes.map(({ name, form }) => [name, form] as const))
  const known = ['docker', 'podman', ...forms.keys()]
  return {
    names: () => known,
    isElsewhere: name => runtimes.some(runtime => runtime.name === name && runtime.elsewhere === true),
    optionsOf: name => runtimes.find(runtime => runtime.name === name)?.slotOptions,
    formOf: name => forms.get(name) ?? (name === 'docker' || name === 'podman' ? 'container' : null)
  }
}

function nameOnly ({ name, origin }: Candidate): DeclaredPlugin {
  return { name, origin, plugin: null, fault: null, providers: [], runtimes: [], files: [], templates: [], trouble: null }
}

async function declare (candidate: Candidate, kernel: OfflineKernel, disabled: readonly string[]): Promise<DeclaredPlugin> {
  const known = nameOnly(candidate)
  const fallen = (code: ErrorCode, message: string): DeclaredPlugin => ({
    ...known, fault: { code, message, isMissing: isMissing(candidate) }, trouble: message
  })
  const { problem, manifest } = candidate
  if (problem !== null) return fallen(problem.code as ErrorCode, problem.message)
  try {
    const module = await withDeadline(kernel.clock, IMPORT_MS, `importing '${candidate.name}'`, () => candidate.load())
    const plugin = checkPluginShape(module, candidate.name, manifest)
    if ('code' in plugin) return fallen(plugin.code, plugin.message)
    const named = { ...known, name: plugin.name }
    return disabled.includes(plugin.name) ? named : await staged({ ...named, plugin }, kernel, candidate.root())
  } catch (error) {
    return fallen('plugin.import_failed', await failureText(error, candidate.root()))
  }
}

async function staged (
  known: DeclaredPlugin & { readonly plugin: AnyPlugin }, { config, clock, log }: OfflineKernel, root: string | null
): Promise<DeclaredPlugin> {
  const { plugin } = known
  const brings = [plugin.kind].flat().some(kind => kind === 'provider' || kind === 'runtime')
  // of others their configuration files are wanted, where what they need is here
  if (!brings && Object.values(plugin.requires ?? {}).some(({ id }) => !offlineServices.has(id))) return known
  const { value, problems } = checkPluginTable(plugin, config.snapshot.svc.plugins.config[plugin.name] ?? {})
  if (problems.length > 0) return { ...known, trouble: `[plugins.config.${plugin.name}] is not valid` }
  try {
    const context = createContext(plugin, value, servicesOf(plugin, config, clock), log, stateless(plugin.name), {
      signal: new AbortController().signal, traced: false
    })
    await withDeadline(clock, IMPORT_MS, `register of '${plugin.name}'`, () => plugin.register(context.context as never))
    context.seal()
    const { providers, runtimes, files, templates } = context.stage
    return { ...known, providers, runtimes, files, templates }
  } catch (error) {
    return { ...known, trouble: await failureText(error, root) }
  }
}

const offlineServices: ReadonlySet<string> = new Set([core.clock.id, core.config.id, core.events.id, curatedRef.id])

/** Nothing is kept where no gateway runs. */
function stateless (plugin: string): PluginState {
  const refuse = (): never => { throw new Error(`plugin '${plugin}' reads and writes its state in a gateway only`) }
  return {
    folder: refuse,
    file: ({ schema }) => ({ value: schema.parse({}), onChange: () => () => {}, patch: refuse }),
    table: { get: () => undefined, set: refuse, delete: refuse, keys: () => [] }
  }
}

/** A driver is handed it for the time that it opens, which is never here. */
const untold = new Proxy({}, { get: () => { throw new Error(`it asks ${core.info.id}, which only a gateway has`) } })

function servicesOf ({ requires = {} }: AnyPlugin, config: OfflineKernel['config'], clock: Clock): Record<string, unknown> {
  const services = new Map<string, unknown>([
    [core.clock.id, clock], [core.config.id, config], [core.events.id, createEventBus({ clock })],
    [curatedRef.id, curated], [core.info.id, untold]
  ])
  return Object.fromEntries(Object.entries(requires).map(([key, { id }]) => {
    if (!services.has(id)) throw new Error(`it requires ${id}, which only a gateway has`)
    return [key, services.get(id)]
  }))
}
