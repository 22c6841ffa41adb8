import {
  slotRoleOf, type Clock, type ConfigService, type EngineProvider, type Model, type ModelObject, type ModelRegistry,
  type NamedProfile, type NamedSlotConfig, type Otherwise, type SlotAbilities, type SurfaceName, type TargetRequest
} from '../../contract/index.js'
import { contextSizeFor, hasContext, nativeContext } from '../../slots/plan/context/context-size.js'
import { projectorOf } from '../../slots/plan/launch/missing-files.js'
import { needsModel } from '../../slots/plan/needs-model.js'
import { waitsForModel } from '../../slots/plan/slot-models.js'
import type { SlotManager } from '../../slots/slot-manager.js'
import { BodyView } from '../body/body-view.js'
import { ableSlot, type Inability } from './able-slots.js'
import { modelRows } from './model-rows.js'
import { needsOf, type RequestNeeds } from './request-needs.js'
import { abilityMissing } from './resolution-errors.js'
import { isRoute, meantBy, resolveAnywhere, resolveModel, type ChosenSlot, type Resolution, type Route, type RouteSnapshot, type SlotRoute } from './resolve.js'
import { spellingsOf, type Spellings } from './spellings.js'
import type { UpstreamPool } from '../upstream/upstream-pool.js'

export interface CatalogDeps {
  readonly clock: Clock
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly models: ModelRegistry
  readonly slots: SlotManager
  readonly upstreams: () => UpstreamPool
}

/** A request whose name is resolved. */
interface AskedOf {
  /** Null for a body that is not JSON. */
  readonly view: BodyView | null
  readonly surface: SurfaceName
  /** As the client named it. */
  readonly model: string
  readonly options?: { readonly otherwise?: Pick<Otherwise, 'surface'> | undefined }
}

/** Names that mean the same slot, where only one of the two is a slot's. */
const otherNames: Readonly<Record<string, string>> = { 'agent': 'primary', 'primary': 'agent', 'rerank': 'embed-rerank', 'embed-rerank': 'rerank' }

/** Names of each kind of request: as many as clients use, and not as many as they could make up. */
const MOST_KNOWN = 256

/** What can be asked for, as one immutable snapshot that is rebuilt at the first look after a change. */
export class Catalog {
  readonly #deps: CatalogDeps
  #snapshot: RouteSnapshot | null = null
  #rows: readonly ModelObject[] | null = null
  #spellings: Spellings | null = null
  /** Where names led to, by kind of request. */
  readonly #needs = new WeakMap<TargetRequest, RequestNeeds | null>()
  readonly #known = new Map<SurfaceName, Map<string, Route>>()
  readonly #since: number

  constructor (deps: CatalogDeps) {
    this.#deps = deps
    this.#since = Math.floor(deps.clock.now() / 1000)
  }

  /** Configuration, slots, registry or upstreams changed. */
  invalidate (): void {
    this.#snapshot = null
    this.#rows = null
    this.#spellings = null
    this.#known.clear()
  }

  get snapshot (): RouteSnapshot {
    return this.#snapshot ??= this.#build()
  }

  /** A name that leads somewhere is looked up once between two changes. */
  resolve (model: string, surface: SurfaceName): Resolution {
    let known = this.#known.get(surface)
    if (known === undefined) this.#known.set(surface, known = new Map<string, Route>())
    const route = known.get(model)
    if (route !== undefined) return route
    const found = this.#resolve(model, surface)
    if (known.size < MOST_KNOWN && isRoute(found)) known.set(model, found)
    return found
  }

  /**
   * Where a request goes whose name stands for slots that differ in what they can do. Looks into the body, and only then.
   * Throws `model.ability_missing` where none of them can.
   */
  ableRoute (route: Route, { view, surface, model, options }: AskedOf): Route {
    if (route.kind !== 'slot' || route.choice === undefined || view === null) return route
    const needs = needsOf(view, surface)
    if (needs === null) return route
    const able: SlotRoute | Inability = ableSlot(route.choice, needs)
    if (!('ability' in able)) return able.name === route.slot ? route : { ...route, slot: able.name, modelId: able.modelId }
    const other = options?.otherwise?.surface ?? surface
    const others = [...this.snapshot.slots.values()].filter(({ enabled, surfaces, abilities }) =>
      enabled && (surfaces.has(surface) || surfaces.has(other)) && abilities[able.ability] === true)
    throw abilityMissing(able, model, needs.field(able.ability), others.map(({ name }) => name).slice(0, 8))
  }

  /** The slot that a request with this body would go to; the first of the name where none can serve it, which refuses it. */
  ableSlotFor (route: ChosenSlot, request: TargetRequest): ChosenSlot {
    if (route.choice === undefined) return route
    const needs = this.#needsOf(request)
    const able = needs === null ? null : ableSlot(route.choice, needs)
    return able === null || 'ability' in able ? route : { ...route, slot: able.name, modelId: able.modelId }
  }

  /** Who waits for a slot asks again and again: its body is read once. */
  #needsOf (request: TargetRequest): RequestNeeds | null {
    const known = this.#needs.get(request)
    if (known !== undefined) return known
    const view = BodyView.of(request.body)
    const needs = typeof view === 'string' ? null : needsOf(view, request.surface)
    this.#needs.set(request, needs)
    return needs
  }

  #resolve (model: string, surface: SurfaceName): Resolution {
    const found = resolveModel(this.snapshot, model, surface)
    const spelling = found.kind === 'not-found' ? this.spelling(model) : null
    if (spelling === null) return found
    const meant = resolveModel(this.snapshot, spelling, surface)
    return meant.kind === 'slot' ? { ...meant, via: 'spelling' } : meant
  }

  /** The one model whose name differs from this one in its case alone; null for none, and for several. */
  spelling (model: string): string | null {
    const { models } = this.#deps
    this.#spellings ??= spellingsOf(this.snapshot, models.list().map(({ id }) => id))
    const spelling = this.#spellings.get(model.toLowerCase()) ?? null
    return spelling === null || this.snapshot.slots.has(spelling) ? null : spelling
  }

  /** Where a request for the name goes, whatever kind of request it is. */
  resolveAnywhere (model: string): Route | null {
    return resolveAnywhere(this.snapshot, model) ?? resolveAnywhere(this.snapshot, this.spelling(model) ?? model)
  }

  /** What a name stands for: an alias for another, any other name for itself. */
  meantBy (model: string): string {
    return meantBy(this.snapshot, model)
  }

  /** The rows of `GET /v1/models`, made at the first look after a change. */
  models (): readonly ModelObject[] {
    const { models, slots, upstreams, config } = this.#deps
    return this.#rows ??= modelRows({
      snapshot: this.snapshot, models, slots, upstreams: upstreams(), settings: config.snapshot.svc.dispatcher, since: this.#since
    })
  }

  #build (): RouteSnapshot {
    const { slots: manager, models, upstreams, config } = this.#deps
    const slots = new Map<string, SlotRoute>()
    const byModel = new Map<string, SlotRoute[]>()
    const byCatalogue = new Map<string, SlotRoute[]>()
    for (const name of manager.names()) {
      const config = manager.config(name)
      const provider = manager.provider(name)
      const { state, modelId } = manager.status(name)
      const model = modelId === null ? null : models.get(modelId) ?? null
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
        ...(config.served_by === null || provider?.unserved === undefined ? {} : { unserved: provider.unserved }),
        role: slotRoleOf(config),
        isDefault: config.default,
        surfaces: new Set(servesNothing ? [] : Object.keys(provider?.surfaces ?? {}) as SurfaceName[]),
        abilities: this.#abilitiesOf(provider, config, model, modelId),
        contextSize: hasContext(config) ? contextSizeFor(config, modelId, nativeContext(provider, modelId, model)) : null,
        catalogue: provider?.catalogue?.filter(({ problem }) => problem === null).map(({ id }) => id) ?? [],
        ...(provider === null && config.served_by === null ? { missingProvider: config.provider } : {}),
        ...(waitsForModel(config) ? { waitsFor: config.meta!.pending_model! } : {})
      }
      slots.set(name, route)
      for (const id of modelId === null ? [] : [modelId, ...provider?.models?.aliases?.(modelId) ?? []]) add(byModel, id, route)
      for (const id of route.catalogue) add(byCatalogue, id, route)
    }
    const aliases = [...Object.entries(otherNames), ...manager.aliases()]
    return {
      slots,
      aliases: new Map(aliases.filter(([alias, name]) => !slots.has(alias) && slots.has(name))),
      clientAliases: new Map(Object.entries(config.snapshot.svc.aliases)),
      byModel,
      byCatalogue,
      registry: { has: id => models.get(id) !== undefined },
      upstreamModels: upstreams().routes(),
      unlisted: upstreams().unlisted(),
      switchedOff: upstreams().switchedOff()
    }
  }

  /** A slot whose model has a projector sees, unless its provider says otherwise; labels are the operator's own word. */
  #abilitiesOf (
    provider: EngineProvider | null, slot: NamedSlotConfig, model: Model | null, modelId: string | null
  ): SlotAbilities {
    const mmprojPath = slot.type === 'llm' ? projectorOf(slot, model) : null
    const { vision: takesImages, model: { labels }, profile: named } = slot
    const profile = (): NamedProfile | null => named === null ? null : this.#deps.config.snapshot.profiles.get(named) ?? null
    return {
      ...mmprojPath === null ? {} : { vision: true },
      ...provider?.abilities?.({ slot, model, modelId, profile: profile(), mmprojPath }),
      ...takesImages && labels.includes('vision') ? { vision: true } : {},
      ...labels.includes('tool-calling') ? { tools: true } : {}
    }
  }
}

function add (routes: Map<string, SlotRoute[]>, id: string, route: SlotRoute): void {
  routes.set(id, [...routes.get(id) ?? [], route])
}
