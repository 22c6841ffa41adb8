import { isAbsolute } from 'node:path'
import {
  capabilityChildren, capabilityGroupOf, type CapabilityChild, type CapabilitySelection, type ConfigSnapshot, type EngineProvider,
  type ErrorCode, type Finding, type ModelRegistry, type ProviderCatalog
} from '../../contract/index.js'
import { configFiles } from '../../config/parts.js'

export interface CapabilityFacts {
  readonly config: Pick<ConfigSnapshot, 'capabilities' | 'slots'>
  readonly providers: ProviderCatalog
  readonly models: Pick<ModelRegistry, 'get'>
}

/** Choices of capabilities.toml that name what is not there. Pure. */
export function capabilityFindings (facts: CapabilityFacts): readonly Finding[] {
  return capabilityChildren.flatMap(child => {
    const selection = facts.config.capabilities[child]
    return selection === undefined ? [] : findingsOf(child, selection, facts)
  })
}

function findingsOf (
  child: CapabilityChild, { device, provider: name, model, enabled }: CapabilitySelection, facts: CapabilityFacts
): Finding[] {
  const found: Finding[] = []
  const tell = (key: string, severity: Finding['severity'], code: ErrorCode, message: string): void => {
    found.push({ file: configFiles.capabilities, path: `selections.${capabilityGroupOf(child)}.${child}.${key}`, message, code, severity })
  }
  const provider = name === null ? undefined : facts.providers.get(name)
  const serious = enabled ? 'error' : 'warning'
  if (name !== null && provider === undefined) {
    const known = facts.providers.list().map(other => other.name).sort()
    tell('provider', serious, 'capability.invalid_selection', `no provider is named '${name}'; there are: ${known.join(', ') || 'none'}`)
  } else if (provider !== undefined && device !== null && !provider.devices.includes(device)) {
    tell('device', serious, 'capability.illegal_backend_model_pair',
      `provider ${provider.name} runs on ${provider.devices.join(', ')}, not ${device}`)
  }
  if (model !== null && !isHere(model, facts)) {
    tell('model', 'warning', 'capability.unknown_model',
      `model '${model}' is not on this host; pull or register it, or choose another with \`svc capabilities set ${child}\``)
  }
  return found
}

/** Registered, a file, on its way to a slot, or of an engine that has models of its own. */
function isHere (id: string, { config, models, providers }: CapabilityFacts): boolean {
  return isAbsolute(id) || models.get(id) !== undefined || providers.list().some(provider => isOf(provider, id)) ||
    [...config.slots.values()].some(({ meta }) => meta?.pending_model === id)
}

function isOf ({ children = [], catalogue = [], models }: EngineProvider, id: string): boolean {
  return children.some(({ model }) => model === id) || catalogue.some(model => model.id === id) ||
    (models?.canonical(id) ?? null) !== null
}
