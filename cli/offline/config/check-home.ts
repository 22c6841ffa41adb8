import type { ConfigFileDefinition, ConfigSnapshot, Finding, Logger, Paths } from '../../../kernel/contract/index.js'
import { loadParts, type LoadOptions } from '../../../kernel/config/load/load-parts.js'
import { noProviders, type LaidProviders } from '../../../kernel/config/parts/laid-providers.js'
import { allDiagnostics, configFiles, type ConfigParts } from '../../../kernel/config/parts/config-parts.js'
import { snapshotOf } from '../../../kernel/config/snapshot.js'
import { defaultDeviceOf } from '../../../kernel/hardware/default-device.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { findingOfFile, findingsOf } from '../../../kernel/host/start/config-check.js'
import { createModelRegistry } from '../../../kernel/models/registry.js'
import { resolveImage } from '../../../kernel/runtime/image/image-manifest.js'
import { SlotPlans } from '../../../kernel/slots/plan/slot-plans.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { declaredPlugins, declaredRuntimes, layPlugins, type DeclaredPlugin } from '../declared-plugins.js'
import { svcSchema } from '../svc-schema.js'

export interface HomeCheck {
  readonly parts: ConfigParts
  /** Null where svc.toml is broken. */
  readonly snapshot: ConfigSnapshot | null
  readonly findings: readonly Finding[]
  /** False where svc.toml is broken: what stands between the files was not looked at. */
  readonly complete: boolean
  /** Empty where svc.toml is broken. */
  readonly plugins: readonly DeclaredPlugin[]
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * What a gateway on this home would find wrong, found without one: nothing is started, nothing is written.
 * @param change the files as they would be
 */
export async function checkHome (
  paths: Paths, env: Env,
  change: (parts: ConfigParts, read: LoadOptions) => Promise<ConfigParts> = parts => Promise.resolve(parts)
): Promise<HomeCheck> {
  const read = async (providers: LaidProviders, owned: readonly ConfigFileDefinition[] = []): Promise<ConfigParts> => {
    const options = { paths, schema: svcSchema, providers, owned }
    return await change(await loadParts(options, null), options)
  }
  const first = await read(noProviders)
  if (first.svc.value === null) {
    return { parts: first, snapshot: null, findings: allDiagnostics(first).map(findingOfFile), complete: false, plugins: [] }
  }
  const clock = createSystemClock()
  const undeclared = snapshotOf({ ...first, svc: { ...first.svc, value: first.svc.value } }, noProviders, null)
  const plugins = await declaredPlugins({ config: { snapshot: undeclared, paths }, clock, log: quietLog })
  const providers = layPlugins(plugins)
  const owned = plugins.flatMap(({ files }) => files)
  const parts = await read(providers, owned)
  const snapshot: ConfigSnapshot = snapshotOf(parts, providers, null)
  const config = { snapshot, paths }
  const settings = (): typeof snapshot.svc.models => snapshot.svc.models
  const models = await createModelRegistry({ paths, env, clock, log: quietLog, withLock: createWithLock(), settings })
  const info = snapshot.hardware.probed_at === '' ? await probeHardware({ root: '/', clock, diskPath: models.store }) : snapshot.hardware
  const plans = new SlotPlans({
    config,
    models,
    providers,
    hardware: { info, defaultDevice: defaultDeviceOf(info) },
    runtime: { form: 'container', ...declaredRuntimes(plugins) },
    instance: '',
    path: env.PATH ?? '',
    image: name => resolveImage(name, snapshot.manifest, env),
    engineKey: () => '',
    access: () => { throw new Error('engines are not started without a gateway') }
  })
  const found = await findingsOf({ config: snapshot, models, providers, plans, plugins, owned, tools: null })
  return { parts, snapshot, findings: [...found, ...plugins.flatMap(unknownEngines)], complete: true, plugins }
}

/** A plugin that was imported, and declares its engines only to a gateway. */
function unknownEngines ({ name, plugin, providers, trouble }: DeclaredPlugin): Finding[] {
  if (plugin === null || trouble === null || providers.length > 0 || trouble.endsWith('is not valid')) return []
  return [{
    file: configFiles.svc,
    path: 'plugins.allow',
    message: `plugin '${name}' does not list its engines without a gateway: ${trouble}; GET /api/status checks the slots that use them`,
    code: 'plugin.register_failed',
    severity: 'warning'
  }]
}

const quiet = (): void => {}
const quietLog: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
