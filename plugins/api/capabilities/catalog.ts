import { capabilityChildren, capabilityGroupOf, type CapabilityChild } from '../../services/capabilities/ref.js'
import { gigabytes } from '../../services/library/ref.js'
import { candidatesFor, legalPairs, type CandidateSource } from './candidates.js'
import { chatUse, childKinds, type Use } from './children.js'
import type { CatalogRow } from './schemas.js'

type Catalogs = Record<string, Record<string, CatalogRow[]>>

/** What every capability could be served with on this host, and chat for the anchor of an NPU. Pure. */
export function catalogs (source: CandidateSource): Catalogs {
  const all: Catalogs = { chat: { chat: rows(chatUse, source) } }
  for (const child of capabilityChildren) (all[capabilityGroupOf(child)] ??= {})[child] = rows(childKinds[child], source)
  return all
}

/** Models that nothing here can run are left out: there is nothing to choose. */
function rows (use: Use, source: CandidateSource): CatalogRow[] {
  return candidatesFor(use, source).map(candidate => ({
    id: candidate.id,
    capabilities: [...candidate.capabilities],
    size_gb: candidate.sizeBytes === 0 ? null : gigabytes(candidate.sizeBytes),
    backends: legalPairs(use, candidate, source).map(({ device, provider, fit }) => ({
      id: device,
      provider: provider.name,
      downloaded: candidate.downloaded,
      pullable: candidate.pullable,
      fit_status: fit.status,
      fit_reasons: [...fit.reasons],
      profile: provider.defaultProfile?.(device, use.type) ?? null,
      runtime_family: provider.family
    }))
  })).filter(({ backends }) => backends.length > 0)
}

export function byGroup<T> (view: (child: CapabilityChild) => T): Record<string, Record<string, T>> {
  const groups: Record<string, Record<string, T>> = {}
  for (const child of capabilityChildren) (groups[capabilityGroupOf(child)] ??= {})[child] = view(child)
  return groups
}
