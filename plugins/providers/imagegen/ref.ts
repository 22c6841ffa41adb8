import { createServiceRef, type CatalogueModel, type EngineClient } from 'svc-gateway/plugin'

export { imageError } from './errors.js'

/** A curated image model and how the engine is driven for it. */
export interface CuratedImage extends CatalogueModel {
  readonly modelClass: string
  /** Folder below the engine's `models`. */
  readonly folder: string
  /** File below `workflows`, without its ending; null when none drives it. */
  readonly workflow: string | null
  /** Those for a picture that is there: the whole of it, and what a mask leaves open. Null where there are none. */
  readonly edits: { readonly image: string, readonly inpaint: string } | null
}

export interface EngineJobs {
  readonly running: number
  readonly pending: number
}

export interface WorkflowEntry {
  readonly name: string
  /** `primary` comes with the gateway, `user` lies in the engine's data folder. */
  readonly source: 'primary' | 'user'
}

/** The image that is being made for a request of this gateway. */
export interface RunView {
  readonly value: number
  readonly max: number
  /** Steps a second; null before the second one. */
  readonly perSecond: number | null
  /** Seconds until the last step. */
  readonly etaS: number | null
}

export interface OutputImage {
  readonly bytes: Buffer
  readonly contentType: string
}

export const inventoryKinds = ['checkpoints', 'diffusion', 'loras', 'vae', 'controlnet', 'upscale', 'text_encoders'] as const
export type Inventory = Readonly<Record<typeof inventoryKinds[number], number>>

/** One run of a workflow file. `client` belongs to an engine that a lease is held on until `run` has settled. */
export interface WorkflowRun {
  readonly client: EngineClient
  readonly slot: string
  readonly requestId: string
  /** Called when the engine has taken it. */
  readonly queued: (promptId: string) => void
  readonly signal: AbortSignal
}

export interface RunnableWorkflow {
  readonly name: string
  /** Resolves when its images are made; told on the event bus as any other run. Rejects as `Surface.adapt` does. */
  run (run: WorkflowRun): Promise<void>
}

/**
 * ComfyUI beyond images from text: its queue, workflows and files. Clients are those of `SlotService.client`; what they
 * reject with is passed on.
 */
export interface ImageEngine {
  /** Name of the provider whose slots these functions are for. */
  readonly provider: string
  readonly catalogue: readonly CuratedImage[]
  /** Folder of the engine's models on this host, absolute. */
  readonly modelsFolder: string
  jobs (client: EngineClient, signal: AbortSignal): Promise<EngineJobs>
  /** Empties the queue and ends what runs. */
  cancelAll (client: EngineClient, signal: AbortSignal): Promise<void>
  /** By name; one that comes with the gateway hides a file of the same name. */
  workflows (): Promise<readonly WorkflowEntry[]>
  /** Throws `comfyui.workflow_not_found`, `comfyui.workflow_read_error`, `image.workflow_invalid`. */
  workflow (name: string): Promise<RunnableWorkflow>
  /**
   * The newest saved image: of the engine's history, else of its folder on this host. Null when there is none. Rejects
   * with `comfyui.image_fetch_failed`.
   */
  newest (client: EngineClient | null, signal: AbortSignal): Promise<OutputImage | null>
  /** Model files on this host. */
  inventory (): Promise<Inventory>
  /** Null while nothing of this gateway is sampled on the slot. */
  running (slot: string): RunView | null
  /** Whether the file of a curated model is there. */
  has (model: CuratedImage): Promise<boolean>
}

export const imageEngineRef = createServiceRef<ImageEngine>('imagegen.engine')
