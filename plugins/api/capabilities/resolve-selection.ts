import type { EngineProvider } from 'svc-gateway/plugin'
import type { CapabilityChild, CapabilitySelection } from '../../services/capabilities/ref.js'
import { candidateById, legalPairs, misfitsOf, type CandidateSource } from './candidates.js'
import { illegalFit, illegalPair, invalidSelection, unknownModel } from './capability-errors.js'
import { childKinds } from './children.js'
import { providersFor } from './host-backends.js'

/**
 * A selection with everything that follows from the rest filled in: device and engine from the model, the model from an
 * engine that has one built in. Throws what cannot be. One that is switched off may be incomplete. Pure.
 */
export function resolveSelection (
  child: CapabilityChild, wanted: CapabilitySelection, source: CandidateSource
): CapabilitySelection {
  const { model, provider } = wanted
  if (provider !== null && source.providers.every(({ name }) => name !== provider)) {
    throw invalidSelection(child, `no such provider: '${provider}'; there are: ${source.providers.map(({ name }) => name).join(', ')}`, 'provider')
  }
  if (model !== null) return withModel(child, wanted, model, source)
  return wanted.enabled ? withoutModel(child, wanted, source) : wanted
}

function withModel (
  child: CapabilityChild, wanted: CapabilitySelection, model: string, source: CandidateSource
): CapabilitySelection {
  const kind = childKinds[child]
  const candidate = candidateById(kind, model, source)
  if (candidate === null) throw unknownModel(child, model)
  const pairs = legalPairs(kind, candidate, source)
  const pair = pairs.find(({ device, provider }) =>
    (wanted.device === null || device === wanted.device) && (wanted.provider === null || provider.name === wanted.provider))
  if (pair === undefined) {
    const devices = [...new Set(pairs.map(({ device }) => device))]
    throw illegalPair(child, model, wanted, devices, misfitsOf(kind, candidate, wanted.device, source))
  }
  const { device, provider, fit } = pair
  const profile = provider.defaultProfile?.(device, kind.type) ?? null
  if (fit.status === 'too_large') throw illegalFit(child, model, fit, profile, provider.family)
  return { ...wanted, device, provider: provider.name }
}

/** An engine that needs no model, or one that has a model of its own for this. */
function withoutModel (
  child: CapabilityChild, wanted: CapabilitySelection, { hosts, providers, misfit }: CandidateSource
): CapabilitySelection {
  const { type } = childKinds[child]
  const problems = new Set<string>()
  const own = (provider: EngineProvider): string | null => provider.children?.find(other => other.type === type)?.model ?? null
  for (const { id: device } of hosts) {
    if (wanted.device !== null && device !== wanted.device) continue
    for (const provider of providersFor(type, device, providers)) {
      if (wanted.provider !== null && provider.name !== wanted.provider) continue
      if (own(provider) !== null) return { ...wanted, device, provider: provider.name, model: own(provider) }
      if (provider.needsModel) continue
      const problem = misfit({ type, device, provider: provider.name, model: null })
      if (problem === null) return { ...wanted, device, provider: provider.name }
      problems.add(problem)
    }
  }
  const where = [wanted.device, wanted.provider].filter(part => part !== null).join(' with ')
  if (problems.size > 0) throw invalidSelection(child, [...problems].join('; '), 'device')
  throw invalidSelection(child, `${where === '' ? 'it' : `${where}`} needs a model; choose one of GET /api/capabilities`, 'model')
}
