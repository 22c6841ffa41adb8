import { createServiceRef, type JobState, type ModelCapability } from 'svc-gateway/plugin'

export type PullFileKind = 'model' | 'mmproj'

/** A file of a pull. Sizes in bytes, hashes in hex. */
export interface PullFile {
  readonly hf_filename: string
  readonly kind: PullFileKind
  /** Where it will be, absolute. */
  readonly dest: string
  readonly bytes_total: number
  readonly bytes_done: number
  /** Of what lies on the disk; null until it is complete and checked. */
  readonly sha256: string | null
  /** Of the hub; null for small files, which the hub knows by another hash. */
  readonly expected_sha256: string | null
}

/** A pull at one moment. Times in epoch seconds. */
export interface PullSnapshot {
  /** 16 hex digits. */
  readonly id: string
  readonly model_id: string
  readonly state: JobState
  /** `hf`, the model hub; else the store of an engine that fetches its models itself (`EngineModels.source`). */
  readonly source: string
  /** This, the file and the commit are empty for what does not come from the hub. */
  readonly hf_repo: string
  readonly hf_file: string
  /** Commit that is pulled. */
  readonly revision: string
  readonly bytes_downloaded: number
  readonly bytes_total: number
  /** Bytes a second over the last seconds; 0 while nothing comes. */
  readonly speed_bps: number
  /** Seconds to go at that rate; null if unknown. */
  readonly eta_s: number | null
  /** What it does or waits for, in words; empty when it just downloads. */
  readonly message: string
  readonly started_at: number
  readonly finished_at: number | null
  readonly error: string | null
  readonly error_code: string | null
  /** Of the model's first file, once it is complete. */
  readonly sha256: string | null
  readonly path: string | null
  readonly files: readonly PullFile[]
}

/** What to pull. What is left open comes from the registry row or the curated entry of the id. */
export interface PullRequest {
  readonly model_id: string
  readonly hf_repo?: string
  /** A file, or the first of a split model. Without it the repository must have just one model. */
  readonly hf_filename?: string
  /** Branch, tag or commit; default `main`. */
  readonly revision?: string
  readonly capabilities?: readonly ModelCapability[]
  /** Puts the files into `<store>/<capability>/<id>/`. */
  readonly capability?: ModelCapability
  readonly mmproj_filename?: string
  /** Folder of the image engine's models, for image models; default `comfyui/models` in the state folder. */
  readonly image_models?: string
}

export interface StartedPull {
  /** It was running already. */
  readonly resumed: boolean
  readonly snapshot: PullSnapshot
}

/**
 * Downloads of models. One job a model; jobs are rows of the state database
 * and go on by themselves when the gateway starts again. A model of the hub is registered when all its files are complete and
 * checked. One of an engine with models of its own is fetched by that engine's program, and its id may be any spelling of it.
 */
export interface ModelPulls {
  /**
   * Plans a pull and starts it, or joins the one that runs. Everything that can be known before the first byte is refused
   * here: `model.invalid_source`, `model.insufficient_disk`, `model.pull_conflict` (another file for the same id is on its
   * way), and the codes of the hub. The signal ends the planning, not the pull.
   */
  start (request: PullRequest, signal: AbortSignal): Promise<StartedPull>
  /** The latest pull of a model. Throws `model.pull_job_not_found`. */
  status (modelId: string): PullSnapshot
  /** Snapshots from now on: after changes at most twice a second, every 5 s in any case, the last one is final. */
  watch (modelId: string, signal: AbortSignal): AsyncIterable<PullSnapshot>
  /** Ends a pull and removes what it had of the files. Idempotent. Throws `model.pull_job_not_found`. */
  cancel (modelId: string): Promise<PullSnapshot>
  /** Latest first; every model once. */
  list (): readonly PullSnapshot[]
}

export const pullsRef = createServiceRef<ModelPulls>('models.pulls')
