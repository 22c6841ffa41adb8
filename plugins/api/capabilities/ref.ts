import {
  createServiceRef, type CapabilityChild, type CapabilitySelection, type Device, type SlotDraft, type SlotType
} from 'svc-gateway/plugin'

/** Hardware of this host that something can run on (management 18.2). */
export interface HostBackend {
  readonly id: Device
  readonly label: string
  readonly short: string
  /** Engine that runs there when nobody says otherwise; null when its plugin is away. */
  readonly provider: string | null
  /** One process there serves several capabilities. */
  readonly multiplex: boolean
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

/** The overlay that maps embeddings, reranking, speech and images onto slots (SPEC.md `/api/capabilities`). */
export interface CapabilityOverlay {
  /** In the order in which they are best. */
  backends (): readonly HostBackend[]
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
