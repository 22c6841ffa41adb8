import { createServiceRef, type Device, type FitStatus, type SlotDraft, type SlotType } from 'svc-gateway/plugin'
import type { CapabilityChild, CapabilitySelection } from '../../services/capabilities/ref.js'

/** Hardware of this host that something can run on. */
export interface HostBackend {
  readonly id: Device
  readonly label: string
  readonly short: string
  /** Engine that runs there by default; null when its plugin is away. */
  readonly provider: string | null
  /** One process there serves several capabilities. */
  readonly multiplex: boolean
}

/** What decides where a model may run. */
export interface PlacedModel {
  /** Null is any model of that size. */
  readonly id: string | null
  /** Name or path of its file; empty if unknown. */
  readonly file: string
  /** 0 if unknown. */
  readonly sizeBytes: number
  /** Those that run it, as registry rows name them; empty is any, but not the NPU. */
  readonly runtimes: readonly string[]
}

/** A device of this host and the engine that would run a model there. */
export interface Place {
  readonly device: Device
  readonly provider: string
  /** Whether its memory holds the weights: `spills` is more than a GPU has for itself. */
  readonly fit: FitStatus
  readonly fitReasons: readonly string[]
}

/** What one capability changes to. What is left out stays; null unsets. */
export type SelectionPatch = Partial<CapabilitySelection>

export interface SelectionChange {
  readonly selection: CapabilitySelection
  /** Slot that serves it. */
  readonly slot: string
  /** The engine that serves it goes on as it is until its slot is reloaded. */
  readonly pendingReload: boolean
}

/** The overlay that maps embeddings, reranking, speech and images onto slots. */
export interface CapabilityOverlay {
  /** In the order in which they are best. */
  backends (): readonly HostBackend[]
  /** Where a slot of this type could run a model: devices as in `backends`, each engine of one once. */
  places (type: SlotType, model: PlacedModel): readonly Place[]
  /** Why it cannot run on a device, or on any, where an engine for it is; once each. */
  misfits (type: SlotType, model: PlacedModel, device: Device | null): readonly string[]
  /** Type of the slots that serve it. */
  slotType (child: CapabilityChild): SlotType
  /** Slot that serves it, or would. */
  slotOf (child: CapabilityChild): string
  /**
   * Puts a selection and the slot behind it into a draft. Throws `capability.invalid_selection`,
   * `capability.unknown_model`, `capability.illegal_backend_model_pair`, `capability.illegal_model_fit`.
   */
  select (draft: SlotDraft, child: CapabilityChild, patch: SelectionPatch): Promise<SelectionChange>
  /** Brings the engine in line with the selection in force: loads, reloads or unloads its slot. Throws what failed. */
  converge (child: CapabilityChild, signal: AbortSignal): Promise<void>
}

export const overlayRef = createServiceRef<CapabilityOverlay>('capabilities.overlay')
