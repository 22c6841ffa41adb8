import type { SlotRole, SlotType, SurfaceName, UnservedChild } from '../../contract/index.js'
import { choiceOf, type SlotChoice } from './able-slots.js'
import type { RouteSnapshot, SlotRoute } from './route-snapshot.js'
import { onlySlotFor } from './usual-names.js'
import { isLoading, isServing } from '../../slots/schedule/slot-machine.js'

export type { RouteSnapshot, SlotRoute }

/**
 * How a name led to a slot; `usual`: nothing has the name, and it means the only slot of its type; `spelling`: nothing has it
 * in this case, and one name in another.
 */
type Via = 'slot' | 'virtual' | 'registry' | 'usual' | 'spelling'

export type Resolution =
  | { readonly kind: 'slot', readonly slot: string, readonly modelId: string | null, readonly via: Via, readonly choice?: SlotChoice }
  | { readonly kind: 'upstream', readonly upstream: string, readonly modelId: string }
  | { readonly kind: 'not-loaded', readonly reason: string, readonly slot: string | null }
  | { readonly kind: 'unserved', readonly slot: string, readonly anchor: string, readonly enabled: boolean, readonly unserved?: UnservedChild }
  | { readonly kind: 'provider-gone', readonly slot: string, readonly provider: string }
  | { readonly kind: 'no-route', readonly reason: string, readonly slot: string }
  | { readonly kind: 'not-found' }

/** A request that can be sent. */
export type Route = Extract<Resolution, { kind: 'slot' | 'upstream' }>

export type DeadEnd = Exclude<Resolution, Route>

export type ChosenSlot = Extract<Resolution, { kind: 'slot' }>

export function isRoute (resolution: Resolution): resolution is Route {
  return resolution.kind === 'slot' || resolution.kind === 'upstream'
}

/** Whether an upstream whose list is not here yet could have the model. */
export function mayBeRemote (deadEnd: DeadEnd): boolean {
  return deadEnd.kind === 'not-found' || (deadEnd.kind === 'not-loaded' && deadEnd.slot === null)
}

/**
 * Where `<upstream>/<model>` leads while that upstream may know more names than it told: there, and it judges the name
 * itself. Null for any other name. Pure.
 */
export function fullNameRoute (snapshot: RouteSnapshot, name: string): Route | null {
  const { unlisted } = snapshot
  const model = meantBy(snapshot, name)
  const slash = model.indexOf('/')
  const upstream = model.slice(0, slash)
  const modelId = model.slice(slash + 1)
  return slash > 0 && modelId !== '' && unlisted.has(upstream) ? { kind: 'upstream', upstream, modelId } : null
}

const VIRTUAL_PREFIX = 'svc/'

/** Slot types that serve a surface. */
export const surfaceTypes: Readonly<Record<SurfaceName, SlotType>> = {
  'chat': 'llm',
  'completions': 'llm',
  'responses': 'llm',
  'input-tokens': 'llm',
  'compact': 'llm',
  'messages': 'llm',
  'count-tokens': 'llm',
  'embeddings': 'embedding',
  'rerank': 'reranking',
  'transcription': 'transcription',
  'translation': 'transcription',
  'speech': 'tts',
  'image': 'image',
  'image-edit': 'image',
  'image-variation': 'image',
  'fim': 'llm',
  'infill': 'llm',
  'tokenize': 'llm',
  'detokenize': 'llm',
  'score': 'reranking',
  'moderation': 'llm'
}
const surfaces = Object.keys(surfaceTypes) as SurfaceName[]

/** What a name stands for: one hop, so what an alias leads to is never looked up as an alias again. Pure. */
export function meantBy ({ slots, clientAliases }: RouteSnapshot, name: string): string {
  return slots.has(name) ? name : clientAliases.get(name) ?? name
}

/** Where the first kind of request for a model goes that can be served; null when none can. Pure. */
export function resolveAnywhere (snapshot: RouteSnapshot, model: string): Route | null {
  for (const surface of surfaces) {
    const found = resolveModel(snapshot, model, surface)
    if (isRoute(found)) return found
  }
  return fullNameRoute(snapshot, model)
}

/**
 * Where a request for `name` on `surface` goes. Pure. Order: what the name is an alias of, slot name, virtual name,
 * registry ref, model of an engine's own catalogue, upstream model, usual name of a speech model. Never another model than
 * the one asked for; a virtual name's chain is part of what it means, and a usual name means whatever does that work.
 */
export function resolveModel (snapshot: RouteSnapshot, name: string, surface: SurfaceName): Resolution {
  const model = meantBy(snapshot, name)
  const named = snapshot.slots.get(model) ?? snapshot.slots.get(snapshot.aliases.get(model) ?? '')
  if (named !== undefined) return toSlots([named], surface, 'slot')
  if (model.startsWith(VIRTUAL_PREFIX)) {
    const role = model.slice(VIRTUAL_PREFIX.length)
    const virtual = resolveVirtual(snapshot, role, surfaceTypes[surface])
    if (virtual.length > 0) return toSlots(virtual, surface, 'virtual', othersOf(snapshot, role, virtual))
  }
  const owners = ownersOf(snapshot.byModel.get(model) ?? [], surface)
  if (owners.length > 0) return toSlots(owners, surface, 'registry')
  const [host] = ownersOf(snapshot.byCatalogue.get(model) ?? [], surface)
  if (host !== undefined) {
    const resolution = toSlot(host, surface, 'registry')
    return resolution.kind === 'slot' ? { ...resolution, modelId: model } : resolution
  }
  const otherwise = [...snapshot.slots.values()].find(slot => slot.enabled && slot.configuredModel === model)
  if (otherwise !== undefined) {
    return {
      kind: 'not-loaded',
      slot: otherwise.name,
      reason: `slot '${otherwise.name}' is configured with it but runs '${otherwise.modelId}' now; \`svc slot swap ${otherwise.name} --model ${model}\` loads it`
    }
  }
  const remote = snapshot.upstreamModels.get(model)
  if (remote !== undefined) return { kind: 'upstream', ...remote }
  if (snapshot.registry.has(model)) {
    return { kind: 'not-loaded', slot: null, reason: `no slot has it as its model; assign it with \`svc slot swap <slot> --model ${model}\`` }
  }
  const only = onlySlotFor(snapshot, model, surface)
  if (only !== null) return toSlot(only, surface, 'usual')
  const off = switchedOff(snapshot, model)
  if (off === null) return { kind: 'not-found' }
  return { kind: 'not-loaded', slot: null, reason: `upstream '${off}' is disabled; enable it with \`svc upstream edit ${off} --enable\`` }
}

/** The upstream that would have the model, were it not switched off. */
function switchedOff ({ switchedOff: off }: RouteSnapshot, model: string): string | null {
  for (const [upstream, models] of off) if (model.startsWith(`${upstream}/`) || models.includes(model)) return upstream
  return null
}

/** Which roles a virtual name asks, one after the other. Any other name is that of a slot. */
const chains: ReadonlyMap<string, readonly SlotRole[]> = new Map([
  ['agent', ['primary']], ['utility', ['utility', 'primary']], ['npu', ['npu', 'utility', 'primary']]
])

/**
 * Slots that a virtual name stands for among those of a type, best first: those that play the roles
 * of its chain, then the operator's default.
 */
export function virtualChain (snapshot: RouteSnapshot, role: string, type: SlotType): readonly SlotRoute[] {
  const usable = [...snapshot.slots.values()]
    .filter(slot => slot.type === type && slot.enabled && (slot.modelId !== null || !slot.needsModel))
  const roles = chains.get(role)
  if (roles === undefined) return usable.filter(slot => slot.name === role)
  const players = roles.flatMap(wanted => usable.filter(slot => playsRole(slot, wanted)))
  return [...new Set([...players, ...usable.filter(slot => slot.isDefault)])]
}

/**
 * A role goes to the first member of its chain that is up, else to the first that there is. A slot asked for
 * by its own name is that slot, cold or not: another model would be a silent fallback.
 */
function resolveVirtual (snapshot: RouteSnapshot, role: string, type: SlotType): readonly SlotRoute[] {
  const chain = chains.has(role) ? virtualChain(snapshot, role, type) : []
  const named = snapshot.slots.get(role)
  if (chain.length === 0) return named === undefined ? [] : [named]
  return [...chain.filter(slot => isServing(slot.state)), ...chain.filter(slot => !isServing(slot.state))]
}

/** Slots that do a role's work where those of its chain cannot. A slot that was asked for by its name has none. */
function othersOf ({ slots }: RouteSnapshot, role: string, chain: readonly SlotRoute[]): readonly SlotRoute[] {
  return chains.has(role) ? [...slots.values()].filter(slot => !chain.includes(slot)) : []
}

function playsRole (slot: SlotRoute, role: SlotRole): boolean {
  return slot.role === role || (role === 'npu' && slot.isNpu)
}

/** Of several slots with the same model, those that fit the surface, the one closest to serving first. */
function ownersOf (owners: readonly SlotRoute[], surface: SurfaceName): readonly SlotRoute[] {
  const usable = owners.filter(slot => slot.enabled)
  const fitting = usable.filter(slot => slot.type === surfaceTypes[surface] && slot.surfaces.has(surface))
  const candidates = fitting.length > 0 ? fitting : usable.length > 0 ? usable : owners
  return [...candidates].sort((a, b) => distance(a) - distance(b))
}

function distance (slot: SlotRoute): number {
  if (isServing(slot.state)) return 0
  if (isLoading(slot.state)) return 1
  if (slot.anchor !== null) return 4
  return slot.state === 'error' ? 3 : 2
}

/**
 * To the first of the slots; where it depends on the request which of them, or whether any, the choice stands beside it.
 * @param others stand in for what all of them lack
 */
function toSlots (
  slots: readonly SlotRoute[], surface: SurfaceName, via: Via, others: readonly SlotRoute[] = []
): Resolution {
  const resolution = toSlot(slots[0]!, surface, via)
  if (resolution.kind !== 'slot') return resolution
  const serves = (slot: SlotRoute): boolean => toSlot(slot, surface, via).kind === 'slot'
  const among = slots.filter(serves)
  const choice = choiceOf(among, others.filter(serves))
  return choice === null ? resolution : { ...resolution, choice }
}

function toSlot (slot: SlotRoute, surface: SurfaceName, via: Via): Resolution {
  if (slot.anchor !== null && (!slot.enabled || slot.state === 'offline')) {
    const { name, anchor, enabled, unserved } = slot
    return { kind: 'unserved', slot: name, anchor, enabled, ...(unserved === undefined ? {} : { unserved }) }
  }
  if (!slot.enabled) {
    const { name, waitsFor } = slot
    const problem = waitsFor === undefined ? `is disabled; enable it with \`svc slot edit ${name} --enable\`` : `waits for its model; download it with \`svc model pull ${waitsFor}\``
    return { kind: 'not-loaded', slot: name, reason: `slot '${name}' ${problem}` }
  }
  if (slot.missingProvider !== undefined) return { kind: 'provider-gone', slot: slot.name, provider: slot.missingProvider }
  if (slot.type !== surfaceTypes[surface] || !slot.surfaces.has(surface)) {
    return { kind: 'no-route', slot: slot.name, reason: `slot '${slot.name}' is of type ${slot.type} and does not serve ${surface} requests` }
  }
  if (slot.modelId === null && slot.needsModel) {
    return { kind: 'not-loaded', slot: slot.name, reason: `slot '${slot.name}' has no model; pick one with \`svc slot edit ${slot.name} --model <id>\`` }
  }
  return { kind: 'slot', slot: slot.name, modelId: slot.modelId, via }
}
