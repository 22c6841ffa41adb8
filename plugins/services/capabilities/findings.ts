import { isAbsolute } from 'node:path'
import type { EngineProvider, FileWorld, Finding } from 'svc-gateway/plugin'
import type { CapabilitySelection, CapabilitySelections } from './schema.js'
import { capabilityChildren, capabilityGroupOf, type CapabilityChild } from './words.js'

type Found = Omit<Finding, 'file'>

/** Choices that name what is not there. Pure. */
export function findings (selections: CapabilitySelections, world: FileWorld): readonly Found[] {
  return capabilityChildren.flatMap(child => {
    const selection = selections[child]
    return selection === undefined ? [] : findingsOf(child, selection, world)
  })
}

function findingsOf (
  child: CapabilityChild, { device, provider: name, model, enabled }: CapabilitySelection, world: FileWorld
): Found[] {
  const found: Found[] = []
  const tell = (key: string, severity: Finding['severity'], code: string, message: string): void => {
    found.push({ path: `selections.${capabilityGroupOf(child)}.${child}.${key}`, message, code, severity })
  }
  const provider = name === null ? undefined : world.providers.get(name)
  const serious = enabled ? 'error' : 'warning'
  if (name !== null && provider === undefined) {
    const known = world.providers.list().map(other => other.name).sort()
    tell('provider', serious, 'capability.invalid_selection', `no such provider: '${name}'; there are: ${known.join(', ') || 'none'}`)
  } else if (provider !== undefined && device !== null && !provider.devices.includes(device)) {
    tell('device', serious, 'capability.illegal_backend_model_pair',
      `provider ${provider.name} runs on ${provider.devices.join(', ')}, not ${device}`)
  }
  // one that is off waits for its model, which is asked for when it is switched on
  if (enabled && model !== null && !isHere(model, world)) {
    tell('model', 'warning', 'capability.unknown_model',
      `model '${model}' is not on this host; pull or register it, or choose another with \`svc capabilities set ${child}\``)
  }
  return found
}

/** Registered, a file, on its way to a slot, or of an engine that has models of its own. */
function isHere (id: string, { models, providers, slots }: FileWorld): boolean {
  return isAbsolute(id) || models.get(id) !== undefined || providers.list().some(provider => isOf(provider, id)) ||
    [...slots.values()].some(({ meta }) => meta?.pending_model === id)
}

function isOf ({ children = [], catalogue = [], models }: EngineProvider, id: string): boolean {
  return children.some(({ model }) => model === id) || catalogue.some(model => model.id === id) ||
    (models?.canonical(id) ?? null) !== null
}
