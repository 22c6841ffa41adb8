import { slotRoleOf, type Clock, type ModelObject, type ModelRegistry, type SurfaceName } from '../contract/index.js'
import { contextSizeFor, hasContext, nativeContext } from '../slots/context-size.js'
import { needsModel } from '../slots/needs-model.js'
import { isServing } from '../slots/slot-machine.js'
import type { SlotManager } from '../slots/slot-manager.js'
import { resolveModel, virtualChain, type Resolution, type RouteSnapshot, type SlotRoute } from './resolve.js'
import type { UpstreamPool } from './upstream-pool.js'

export interface CatalogDeps {
  readonly clock: Clock
  readonly models: ModelRegistry
  readonly slots: SlotManager
  readonly upstreams: () => UpstreamPool
}

const OWNER = 'svc'
const canonicalRoles = ['agent', 'utility', 'npu']

/** Names that mean the same slot, where only one of the two is a slot's. */
const otherNames: Readonly<Record<string, string>> = { 'agent': 'primary', 'primary': 'agent', 'rerank': 'embed-rerank', 'embed-rerank': 'rerank' }

/** What can be asked for, as one immutable snapshot that is rebuilt at the first look after a change. */
export class Catalog {
  readonly #deps: CatalogDeps
  #snapshot: RouteSnapshot | null = null

  constructor (deps: CatalogDeps) {
    this.#deps = deps
  }

  /** Configuration, slots, registry or upstreams changed. */
  invalidate (): void {
    this.#snapshot = null
  }

  get snapshot (): RouteSnapshot {
    return this.#snapshot ??= this.#build()
  }

  resolve (model: string, surface: SurfaceName): Resolution {
    return resolveModel(this.snapshot, model, surface)
  }

  /**
   * The rows of `GET /v1/models`: live aliases, model ids of the other live slots, upstream models, virtual names;
   * the first of an id wins.
   */
  models (): readonly ModelObject[] {
    const rows = new Map<string, ModelObject>()
    for (const row of [...this.#aliases(), ...this.#slotModels(), ...this.#upstreamRows(), ...this.#virtual()]) {
      if (!rows.has(row.id)) rows.set(row.id, row)
    }
    return [...rows.values()]
  }

  * #aliases (): Generator<ModelObject> {
    for (const slot of this.snapshot.slots.values()) {
      if (slot.type !== 'llm' || !this.#isLive(slot)) continue
      const model = slot.modelId === null ? undefined : this.#deps.models.get(slot.modelId)
      const display = model !== undefined && model.name !== '' ? model.name : slot.modelId
      yield {
        id: slot.name,
        object: 'model',
        created: this.#created(),
        owned_by: OWNER,
        name: display === null ? slot.name : `${slot.name} · ${display}`,
        ...this.#context(slot)
      }
    }
  }

  /** Embedding, rerank, speech and image models have no alias: they go by their own ids (SPEC.md "Model object"). */
  * #slotModels (): Generator<ModelObject> {
    for (const slot of this.snapshot.slots.values()) {
      if (slot.type === 'llm' || !this.#isLive(slot)) continue
      const ids = slot.modelId === null ? slot.catalogue : [slot.modelId, ...slot.catalogue]
      for (const id of ids) yield { id, object: 'model', created: this.#created(), owned_by: slot.name }
    }
  }

  * #upstreamRows (): Generator<ModelObject> {
    const { slots } = this.snapshot
    const own = new Set<string | null>([...slots.values()].flatMap(slot => slot.type === 'llm' ? [slot.name, slot.modelId] : [slot.name]))
    for (const { upstream, ids } of this.#deps.upstreams().listed()) {
      for (const id of ids) {
        if (!own.has(id) && !this.#isVirtual(id)) yield { id, object: 'model', created: this.#created(), owned_by: upstream }
      }
    }
  }

  /** Whether a name leads to a slot of ours, whatever an upstream calls so as well. */
  #isVirtual (id: string): boolean {
    return id.startsWith('svc/') && !['upstream', 'not-found'].includes(this.resolve(id, 'chat').kind)
  }

  #isLive (slot: SlotRoute): boolean {
    return slot.enabled && isServing(this.#deps.slots.status(slot.name).state)
  }

  * #virtual (): Generator<ModelObject> {
    const { slots } = this.snapshot
    const llm = [...slots.values()].filter(slot => slot.type === 'llm' && slot.enabled).map(slot => slot.name)
    for (const role of new Set([...canonicalRoles, ...llm])) {
      const resolution = this.resolve(`svc/${role}`, 'chat')
      if (resolution.kind !== 'slot' || virtualChain(this.snapshot, role, 'llm').length === 0) continue
      const slot = slots.get(resolution.slot)!
      yield {
        id: `svc/${role}`,
        object: 'model',
        created: this.#created(),
        owned_by: OWNER,
        context_length: this.#context(slot).context_length ?? 0,
        _svc: { virtual: true, kind: 'live-resolve', resolves_to: resolution.modelId ?? slot.name, slot: slot.name, device: this.#deps.slots.device(slot.name) }
      }
    }
  }

  #context (slot: SlotRoute): { context_length?: number } {
    const config = this.#deps.slots.config(slot.name)
    if (!hasContext(config)) return {}
    const model = slot.modelId === null ? null : this.#deps.models.get(slot.modelId) ?? null
    return { context_length: contextSizeFor(config, nativeContext(this.#deps.slots.provider(slot.name), slot.modelId, model)) }
  }

  #created (): number {
    return Math.floor(this.#deps.clock.now() / 1000)
  }

  #build (): RouteSnapshot {
    const { slots: manager, models, upstreams } = this.#deps
    const slots = new Map<string, SlotRoute>()
    const byModel = new Map<string, SlotRoute[]>()
    const byCatalogue = new Map<string, SlotRoute[]>()
    for (const name of manager.names()) {
      const config = manager.config(name)
      const provider = manager.provider(name)
      const { state, modelId } = manager.status(name)
      const servesNothing = config.served_by === null && provider?.carriesOnly?.(config) === true
      const route: SlotRoute = {
        name,
        type: config.type,
        enabled: config.enabled,
        state,
        modelId,
        configuredModel: config.model.default,
        needsModel: provider === null || needsModel(provider, config),
        isNpu: manager.device(name) === 'npu',
        anchor: config.served_by,
        role: slotRoleOf(config),
        isDefault: config.default,
        surfaces: new Set(servesNothing ? [] : Object.keys(provider?.surfaces ?? {}) as SurfaceName[]),
        catalogue: provider?.catalogue?.filter(({ problem }) => problem === null).map(({ id }) => id) ?? []
      }
      slots.set(name, route)
      for (const id of modelId === null ? [] : [modelId, ...provider?.models?.aliases?.(modelId) ?? []]) add(byModel, id, route)
      for (const id of route.catalogue) add(byCatalogue, id, route)
    }
    const aliases = [...Object.entries(otherNames), ...manager.aliases()]
    return {
      slots,
      aliases: new Map(aliases.filter(([alias, name]) => !slots.has(alias) && slots.has(name))),
      byModel,
      byCatalogue,
      registry: { has: id => models.get(id) !== undefined },
      upstreamModels: upstreams().routes(),
      unlisted: upstreams().unlisted()
    }
  }
}

function add (routes: Map<string, SlotRoute[]>, id: string, route: SlotRoute): void {
  routes.set(id, [...routes.get(id) ?? [], route])
}
