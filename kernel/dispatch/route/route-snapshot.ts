import type { SlotAbilities, SlotRole, SlotState, SlotType, SurfaceName, UnservedChild } from '../../contract/index.js'
import type { UpstreamRoute } from '../upstream/upstream-row.js'

/** What resolution knows of a slot. */
export interface SlotRoute {
  readonly name: string
  readonly type: SlotType
  readonly enabled: boolean
  readonly state: SlotState
  /** Model id that requests are rewritten to: what the engine runs, else what is configured; null when the slot has none. */
  readonly modelId: string | null
  /** What the slot's file names; after a swap or an edit the engine may run another. */
  readonly configuredModel: string | null
  /** False for engines with a built-in model. */
  readonly needsModel: boolean
  readonly isNpu: boolean
  /** The slot whose engine serves this one; it is not started for this one's sake. */
  readonly anchor: string | null
  /** Of its provider, where it has a code of its own for a slot that its anchor does not serve. */
  readonly unserved?: UnservedChild
  /** What it was given, or what its name says. */
  readonly role: SlotRole | null
  /** The operator's default among the slots of its type. */
  readonly isDefault: boolean
  readonly surfaces: ReadonlySet<SurfaceName>
  readonly abilities: SlotAbilities
  /** Tokens that a conversation may have; null for slot types without a context. */
  readonly contextSize: number | null
  /** Models that the engine switches between by itself. */
  readonly catalogue: readonly string[]
  /** Name of its provider when no active plugin has one of that name. */
  readonly missingProvider?: string | undefined
  /** The model that it is enabled with once it is downloaded. */
  readonly waitsFor?: string
}

/** Everything resolution looks at, at one moment. Immutable. */
export interface RouteSnapshot {
  /** In configuration order. */
  readonly slots: ReadonlyMap<string, SlotRoute>
  /** Other names of slots. */
  readonly aliases: ReadonlyMap<string, string>
  /** What the operator lets clients call something else; a slot's own name is never one. */
  readonly clientAliases: ReadonlyMap<string, string>
  /** Slots by the model they are configured with. */
  readonly byModel: ReadonlyMap<string, readonly SlotRoute[]>
  /** Slots by each model of their engine's own catalogue. */
  readonly byCatalogue: ReadonlyMap<string, readonly SlotRoute[]>
  readonly registry: { has (id: string): boolean }
  /** Upstream models by raw id, and by `<upstream>/<id>`. */
  readonly upstreamModels: ReadonlyMap<string, UpstreamRoute>
  /** Upstreams that are switched on and may know more names than they told. */
  readonly unlisted: ReadonlySet<string>
  /** Models that are known of upstreams that are switched off, by upstream. */
  readonly switchedOff: ReadonlyMap<string, readonly string[]>
}
