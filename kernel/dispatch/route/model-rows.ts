import {
  slotAbilities, slotRoleOf, type Model, type ModelCapability, type ModelObject, type ModelRegistry, type ModelStatus,
  type SlotType, type SvcConfig
} from '../../contract/index.js'
import { isLoading, isServing } from '../../slots/schedule/slot-machine.js'
import type { SlotManager } from '../../slots/slot-manager.js'
import { endpoints } from './resolution-errors.js'
import { resolveAnywhere, resolveModel, surfaceTypes, virtualChain, type RouteSnapshot, type SlotRoute } from './resolve.js'
import type { UpstreamPool } from '../upstream/upstream-pool.js'
import { isoOf, listedUpstreamRow } from '../upstream/upstream-row.js'

export interface ModelRowsDeps {
  readonly snapshot: RouteSnapshot
  readonly models: Pick<ModelRegistry, 'get'>
  readonly slots: Pick<SlotManager, 'config' | 'device'>
  readonly upstreams: Pick<UpstreamPool, 'listed'>
  readonly settings: Pick<SvcConfig['dispatcher'], 'list_unloaded' | 'list_virtual'>
  /** Epoch seconds, for what has no date of its own. */
  readonly since: number
}

const OWNER = 'svc'
const roles = ['agent', 'utility', 'npu']

const purposes: Readonly<Record<SlotType, ModelCapability>> = {
  llm: 'chat', embedding: 'embed', reranking: 'rerank', transcription: 'asr', tts: 'tts', image: 'image'
}

/**
 * The rows of `GET /v1/models`: slots by name, model ids of other slots, client aliases, upstream models, virtual names; the
 * first of an id wins. A slot is listed while it serves, or always where the settings say so.
 */
export function modelRows (deps: ModelRowsDeps): readonly ModelObject[] {
  const rows = new Map<string, ModelObject>()
  const add = (row: ModelObject): void => {
    if (!rows.has(row.id)) rows.set(row.id, row)
  }
  const slots = [...deps.snapshot.slots.values()]
  const isListed = (slot: SlotRoute): boolean => canServe(slot) && (deps.settings.list_unloaded || isServing(slot.state))
  const named = new Set(slots.filter(slot => isListed(slot) && (slot.type === 'llm' || deps.settings.list_unloaded)))
  for (const slot of named) add(slotRow(deps, slot, slot.name))
  for (const slot of slots.filter(isListed)) for (const row of ownModelRows(deps, slot, named.has(slot))) add(row)
  const listed = deps.upstreams.listed()
  for (const row of aliasRows(deps, listed)) add(row)
  const own = new Set<string | null>(slots.flatMap(slot => slot.type === 'llm' ? [slot.name, slot.modelId] : [slot.name]))
  for (const { upstream, rows: told } of listed) {
    for (const row of told) {
      if (!own.has(row.id) && !isVirtual(deps, row.id)) add(listedUpstreamRow(row, upstream, deps.since))
    }
  }
  for (const row of virtualRows(deps, named)) add(row)
  return [...rows.values()]
}

/** Whether a request for the slot could be served once it is up. */
function canServe (slot: SlotRoute): boolean {
  return slot.enabled && slot.surfaces.size > 0 && (slot.modelId !== null || !slot.needsModel)
}

function slotRow (deps: ModelRowsDeps, slot: SlotRoute, id: string): ModelObject {
  const display = displayName(deps, slot)
  return row(deps, slot, id, OWNER, display === null ? id : `${id} · ${display}`)
}

/**
 * Embedding, rerank, speech and image models go by their own ids; where the slot is listed by its name, only those of an
 * engine that switches between several.
 */
function* ownModelRows (deps: ModelRowsDeps, slot: SlotRoute, isNamed: boolean): Generator<ModelObject> {
  if (slot.type === 'llm') return
  const ids = slot.modelId === null || isNamed ? slot.catalogue : [slot.modelId, ...slot.catalogue]
  for (const id of ids) yield row(deps, slot, id, slot.name, deps.models.get(id)?.name || id)
}

/** Nothing for an alias that leads nowhere. An upstream's model lends its alias everything that the upstream tells. */
function* aliasRows (deps: ModelRowsDeps, listed: ReturnType<UpstreamPool['listed']>): Generator<ModelObject> {
  const { snapshot, since } = deps
  if (snapshot.clientAliases.size === 0) return
  const remote = new Map(listed.map(({ upstream, rows }) => [upstream, new Map(rows.map(({ id, fields }) => [id, fields]))]))
  for (const [alias, target] of snapshot.clientAliases) {
    const route = resolveAnywhere(snapshot, target)
    if (route === null || snapshot.slots.has(alias)) continue
    const name = `${alias} · ${target}`
    const leads = { alias: true, resolves_to: target }
    if (route.kind === 'slot') {
      const _svc = { ...leads, slot: route.slot, upstream: null }
      yield { ...row(deps, snapshot.slots.get(route.slot)!, alias, OWNER, name), _svc }
    } else {
      const fields = remote.get(route.upstream)?.get(route.modelId) ?? {}
      const _svc = { ...leads, slot: null, upstream: route.upstream }
      yield { ...listedUpstreamRow({ id: alias, fields }, OWNER, since), name, display_name: name, _svc }
    }
  }
}

/** Roles that come to one slot are listed once, as the first of them. */
function* virtualRows (deps: ModelRowsDeps, named: ReadonlySet<SlotRoute>): Generator<ModelObject> {
  const { snapshot, settings } = deps
  const told = new Set<SlotRoute>()
  const llm = [...snapshot.slots.values()].filter(slot => slot.type === 'llm' && slot.enabled).map(slot => slot.name)
  for (const role of new Set([...roles, ...llm])) {
    const leader = virtualChain(snapshot, role, 'llm')[0]
    if (leader === undefined) continue
    if (roles.includes(role) && !plays(deps, leader, role) && told.has(leader)) continue
    const resolution = resolveModel(snapshot, `svc/${role}`, 'chat')
    if (resolution.kind !== 'slot') continue
    told.add(leader)
    if (!settings.list_virtual && named.has(leader)) continue
    const slot = snapshot.slots.get(resolution.slot)!
    const id = `svc/${role}`
    const shown = row(deps, slot, id, OWNER, id)
    const { context_length: context } = shown
    yield {
      ...shown,
      context_length: context ?? 0,
      _svc: { virtual: true, kind: 'live-resolve', resolves_to: resolution.modelId ?? slot.name, slot: slot.name, device: deps.slots.device(slot.name) }
    }
  }
}

/** Whether the slot has the role of the virtual name by itself, and not for lack of another. */
function plays ({ slots }: ModelRowsDeps, slot: SlotRoute, role: string): boolean {
  if (role === 'npu' && slot.isNpu) return true
  return slotRoleOf(slots.config(slot.name)) === (role === 'agent' ? 'primary' : role)
}

/** Whether a name leads to a slot of ours, whatever an upstream calls so as well. */
function isVirtual ({ snapshot }: ModelRowsDeps, id: string): boolean {
  return id.startsWith('svc/') && !['upstream', 'not-found'].includes(resolveModel(snapshot, id, 'chat').kind)
}

function row (deps: ModelRowsDeps, slot: SlotRoute, id: string, owner: string, name: string): ModelObject {
  const model = modelOf(deps, slot)
  const context = slot.contextSize
  const created = createdOf(model) ?? deps.since
  return {
    id,
    object: 'model',
    type: 'model',
    created,
    created_at: isoOf(created),
    owned_by: owner,
    name,
    display_name: name,
    ...(context === null ? {} : { context_length: context, max_model_len: context }),
    status: statusOf(slot),
    capabilities: capabilitiesOf(slot),
    supported_endpoints: [...slot.surfaces].filter(name => surfaceTypes[name] === slot.type).map(name => endpoints[name])
  }
}

function statusOf ({ state }: SlotRoute): ModelStatus {
  if (isServing(state)) return 'loaded'
  return isLoading(state) ? 'loading' : 'unloaded'
}

/** What it is for, and what it can do besides for sure. */
function capabilitiesOf ({ type, abilities }: SlotRoute): readonly string[] {
  return [purposes[type], ...slotAbilities.filter(ability => type === 'llm' && abilities[ability] === true)]
}

function modelOf ({ models }: ModelRowsDeps, { modelId }: SlotRoute): Model | null {
  return modelId === null ? null : models.get(modelId) ?? null
}

function displayName (deps: ModelRowsDeps, slot: SlotRoute): string | null {
  return modelOf(deps, slot)?.name || slot.modelId
}

/** When the model came here, as far as the registry knows. */
function createdOf (model: Model | null): number | null {
  const at = model?.metadata.added_at
  return typeof at === 'number' && Number.isInteger(at) && at > 0 && at < 8_640_000_000_000 ? at : null
}
