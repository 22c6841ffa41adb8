import {
  isSvcError, type Clock, type ConfigCheck, type ConfigFileDefinition, type ConfigSnapshot, type Diagnostic, type ErrorCode,
  type Finding, type GpuInfo, type ModelRegistry, type ProviderCatalog, type ToolCatalogue
} from '../../contract/index.js'
import { requireModelStore } from '../../config/check/model-store-check.js'
import { configFiles } from '../../config/parts/config-parts.js'
import { aliasFindings } from '../../dispatch/route/alias-findings.js'
import { upstreamFindings } from '../../dispatch/upstream/upstream-findings.js'
import { policyFindings } from '../../tools/policy-findings.js'
import { ownedFindings } from '../../slots/write/owned-findings.js'
import { ruleContext } from '../../slots/write/slot-draft.js'
import { slotFindings } from '../../slots/write/slot-findings.js'
import type { SlotPlans } from '../../slots/plan/slot-plans.js'
import { withDeadline } from './deadline.js'
import { pluginFindings, type KnownPlugin } from '../record/plugin-findings.js'

export interface CheckedConfig {
  readonly config: ConfigSnapshot
  readonly models: Pick<ModelRegistry, 'get'>
  readonly providers: ProviderCatalog
  readonly plans: SlotPlans
  readonly plugins: readonly KnownPlugin[]
  /** Files of plugins. */
  readonly owned: readonly ConfigFileDefinition[]
  /** Null without a gateway: then the tools are unknown. */
  readonly tools: Pick<ToolCatalogue, 'all'> | null
}

/** Everything that is wrong in the files and between them. Never rejects. */
export async function findingsOf (
  { config, models, providers, plans, plugins, owned, tools }: CheckedConfig
): Promise<readonly Finding[]> {
  const gpus = (): readonly GpuInfo[] => config.hardware.gpus
  const { runtime } = plans
  const context = ruleContext({ providers, models, gpus, runtime, defaultDevice: slot => plans.device(slot) }, config)
  const catalogue = providers.list().flatMap(provider => (provider.catalogue ?? []).map(({ id }) => id))
  return [
    ...config.diagnostics.map(findingOfFile),
    ...await storeFindings(config.svc.models.store),
    ...pluginFindings(plugins, config.svc.plugins.config),
    ...await slotFindings([...config.slots.values()], context, plans),
    ...ownedFindings(config, owned, { providers, models }),
    ...upstreamFindings({ config, models, catalogue }),
    ...aliasFindings({ config, models, catalogue }),
    ...tools === null ? [] : policyFindings(config, tools)
  ]
}

/** A store that was written by hand, past the check of every writer, or whose disk is away. */
async function storeFindings (store: string): Promise<Finding[]> {
  const error: unknown = store === '' ? null : await requireModelStore(store).then(() => null, (reason: unknown) => reason)
  if (!isSvcError(error)) return []
  return [{ file: configFiles.svc, path: 'models.store', message: error.message, code: error.code as ErrorCode, severity: 'error' }]
}

/** A problem of one file by itself: what concerns the file as a whole keeps it from being read. Pure. */
export function findingOfFile (diagnostic: Diagnostic): Finding {
  return { ...diagnostic, code: diagnostic.path === '' ? 'config.parse_error' : 'validation.invalid', severity: 'error' }
}

export interface GatewayCheckDeps extends Omit<CheckedConfig, 'config' | 'models' | 'plugins' | 'owned'> {
  readonly clock: Clock
  readonly config: { readonly snapshot: ConfigSnapshot, readonly owned: readonly ConfigFileDefinition[] }
  readonly models: Pick<ModelRegistry, 'get' | 'list'>
  readonly plugins: () => readonly KnownPlugin[]
}

/** A health check must not wait for a disk that hangs. */
const PATIENCE_MS = 1_000

/** The findings of a gateway that runs, kept as long as nothing changes that they come from. */
export class GatewayConfigCheck implements ConfigCheck {
  readonly #deps: GatewayCheckDeps
  #seen: readonly unknown[] = []
  #running: Promise<readonly Finding[]> = Promise.resolve([])
  #last: readonly Finding[] = []

  constructor (deps: GatewayCheckDeps) {
    this.#deps = deps
  }

  findings (): Promise<readonly Finding[]> {
    const { clock, config: { snapshot: config, owned }, models, plugins, providers, plans, tools } = this.#deps
    const known = plugins()
    const seen = [config, models.list(), ...known.map(({ plugin, fault }) => plugin ?? fault?.message), ...providers.list()]
    if (seen.length !== this.#seen.length || seen.some((part, i) => part !== this.#seen[i])) {
      this.#seen = seen
      this.#running = findingsOf({ config, models, providers, plans, plugins: known, owned, tools })
    }
    const running = this.#running
    return withDeadline(clock, PATIENCE_MS, 'the check of the configuration', () => running)
      .then(found => this.#last = found, () => this.#last)
  }
}
