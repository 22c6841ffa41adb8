import {
  deviceBackends, memoryFit, type Device, type EngineModel, type EngineProvider, type HardwareInfo,
  type MemoryFit, type Model, type ModelCapability, type ProviderCatalog, type SlotType, type SlotWish
} from 'svc-gateway/plugin'
import type { Use } from './children.js'
import { providerFor, providersFor } from './host-backends.js'
import type { HostBackend } from './ref.js'

/** A model that could serve a use: registered, in the catalogue, or built into an engine. */
export interface Candidate {
  readonly id: string
  readonly capabilities: readonly ModelCapability[]
  readonly sizeBytes: number
  /** Runtimes that run it, as registry rows name them; empty is any. */
  readonly backends: readonly string[]
  readonly downloaded: boolean
  readonly pullable: boolean
  /** Name or path of its file; empty if unknown. */
  readonly file: string
  /** Engine that brings it along; it runs nowhere else. */
  readonly builtIn: string | null
}

/** A device and an engine that a model may run on. */
export interface LegalPair {
  readonly device: Device
  readonly provider: EngineProvider
  readonly fit: MemoryFit
}

/** An entry of the curated catalogue, as far as it matters here. */
export interface CatalogModel {
  readonly id: string
  readonly capability: ModelCapability
  readonly size_gb: number
  readonly backend: string
  readonly bundle_only: boolean
  readonly hf_file: string
}

export interface CandidateSource {
  readonly models: readonly Model[]
  readonly curated: readonly CatalogModel[]
  readonly providers: readonly EngineProvider[]
  /** The same, with what they are to slots that name none. */
  readonly catalog: Pick<ProviderCatalog, 'list' | 'defaultFor' | 'aliases'>
  readonly hosts: readonly HostBackend[]
  readonly hardware: HardwareInfo
  /** Models of engines that have their own, by engine; only what is shown needs them. */
  readonly engineModels?: ReadonlyMap<string, readonly EngineModel[]>
  /** Why such a slot could not start here; null when it could. */
  readonly misfit: (wish: SlotWish) => string | null
}

/** Models for a use, registered ones first; of two with one id the registered one counts. Pure. */
export function candidatesFor (use: Use, { models, curated, providers, engineModels }: CandidateSource): readonly Candidate[] {
  const { capability } = use
  const registered = models.filter(model => model.capabilities.includes(capability)).map(registeredCandidate)
  const known = new Set(models.map(({ id }) => id))
  const offered = curated
    .filter(model => model.capability === capability && !known.has(model.id) && (!model.bundle_only || capability === 'vision'))
    .map(offeredCandidate)
  const inside = providers.flatMap(provider => insideOf(provider, use, engineModels?.get(provider.name) ?? []))
  return [...registered, ...offered, ...inside.filter(({ id }) => !known.has(id))]
}

/** What an engine brings along for a use: the models of its children, and those of its own that chat. */
function insideOf ({ name, children = [] }: EngineProvider, { type, capability }: Use, own: readonly EngineModel[]): Candidate[] {
  const served = children.filter(child => child.type === type).map(({ model: id }): Candidate => {
    const known = own.find(model => model.id === id)
    return known === undefined
      ? { id, capabilities: [capability], sizeBytes: 0, backends: [], downloaded: true, pullable: false, file: '', builtIn: name }
      : engineCandidate(known, name)
  })
  return capability === 'chat' ? [...served, ...own.filter(model => model.capabilities.includes('chat')).map(model => engineCandidate(model, name))] : served
}

function engineCandidate ({ id, capabilities, sizeBytes, installed }: EngineModel, engine: string): Candidate {
  return { id, capabilities, sizeBytes, backends: [], downloaded: installed, pullable: !installed, file: '', builtIn: engine }
}

/** One model for a use by its id; a registered one that tells nothing of its capabilities is trusted. Null for no such. Pure. */
export function candidateById (use: Use, id: string, source: CandidateSource): Candidate | null {
  const model = source.models.find(other => other.id === id)
  if (model !== undefined) {
    const fits = model.capabilities.length === 0 || model.capabilities.includes(use.capability)
    return fits ? registeredCandidate(model) : null
  }
  const known = candidatesFor(use, { ...source, models: [] }).find(candidate => candidate.id === id)
  return known ?? fetchedCandidate(use, id, source.providers)
}

/** A model that an engine fetches by itself once it is named. */
function fetchedCandidate ({ type, capability }: Use, id: string, providers: readonly EngineProvider[]): Candidate | null {
  const able = providers.filter(({ slotTypes, fetches }) => slotTypes.includes(type) && fetches?.(id) === true)
  const backends = able.map(({ name }) => name)
  return backends.length === 0
    ? null
    : { id, capabilities: [capability], sizeBytes: 0, backends, downloaded: false, pullable: false, file: '', builtIn: null }
}

/** What decides where a model may run. Without an `id` it is any model of that size. */
type Placed = Pick<Candidate, 'sizeBytes' | 'backends' | 'builtIn'> & { readonly id: string | null, readonly file: string }

/** Where a model may run, best device first; of each device the usual engine first. Pure. */
export function legalPairs ({ type }: Pick<Use, 'type'>, candidate: Placed, source: CandidateSource): readonly LegalPair[] {
  return pairsOf(type, candidate, source)
    .filter(({ device, provider }) => problemOf(type, candidate, device, provider, source) === null)
    .map(pair => ({ ...pair, fit: memoryFit(candidate.sizeBytes, pair.device, source.hardware) }))
}

/** Why a model does not run where it otherwise would, once each: on these devices, or anywhere here. Pure. */
export function misfitsOf (
  { type }: Pick<Use, 'type'>, candidate: Placed, only: Device | null, source: CandidateSource
): readonly string[] {
  const pairs = pairsOf(type, candidate, source).filter(({ device }) => only === null || device === only)
  return [...new Set(pairs.flatMap(({ device, provider }) => problemOf(type, candidate, device, provider, source) ?? []))]
}

function pairsOf (type: SlotType, candidate: Placed, { hosts, providers, catalog }: CandidateSource): ReadonlyArray<Omit<LegalPair, 'fit'>> {
  return hosts.flatMap(({ id: device }) => {
    const usual = providerFor(type, device, catalog)
    return providersFor(type, device, providers)
      .filter(provider => runs(candidate, provider, device, catalog.aliases))
      .sort((a, b) => Number(b === usual) - Number(a === usual))
      .map(provider => ({ device, provider }))
  })
}

/** What is part of another slot's engine needs no image of its own. */
function problemOf (
  type: SlotType, { id, file, builtIn }: Placed, device: Device, { name, slotTypes }: EngineProvider, { misfit }: CandidateSource
): string | null {
  if (builtIn !== null || !slotTypes.includes(type)) return null
  return misfit({ type, device, provider: name, model: id === null ? null : { id, file } })
}

function registeredCandidate (model: Model): Candidate {
  return {
    id: model.id,
    capabilities: model.capabilities,
    sizeBytes: model.size_bytes,
    backends: model.backends,
    downloaded: true,
    pullable: model.hf_repo !== '' && model.hf_filename !== '',
    file: model.path,
    builtIn: null
  }
}

function offeredCandidate (model: CatalogModel): Candidate {
  return {
    id: model.id,
    capabilities: [model.capability],
    sizeBytes: Math.round(model.size_gb * 1e9),
    backends: model.backend === '' ? [] : [model.backend],
    downloaded: false,
    pullable: true,
    file: model.hf_file,
    builtIn: null
  }
}

/**
 * The NPU runs only what was made for it, an engine with models of its own none of the registry; everything else runs
 * anywhere unless its row says where.
 */
function runs (
  { backends, builtIn }: Pick<Candidate, 'backends' | 'builtIn'>, provider: EngineProvider, device: Device, aliases: ReadonlyMap<string, string>
): boolean {
  if (builtIn !== null) return builtIn === provider.name && device === 'npu'
  if (provider.models !== undefined) return false
  if (backends.length === 0) return device !== 'npu'
  const here: readonly string[] = [device, deviceBackends[device], provider.name, provider.family]
  return backends.some(backend => here.includes(aliases.get(backend) ?? backend))
}
