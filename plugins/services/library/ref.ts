import { createServiceRef, type Model, type ModelCapability, type NewModelRow } from 'svc-gateway/plugin'

/** In 10^9 bytes, to three digits: a model of 4 MB is not 0. */
export function gigabytes (bytes: number): number {
  return Number((bytes / 1e9).toPrecision(3))
}

/** A model that is known to work well, and where to get it. */
export interface CuratedModel {
  readonly id: string
  readonly display_name: string
  readonly description: string
  readonly family: string
  /** Of the download, in 10^9 bytes. */
  readonly size_gb: number
  readonly vram_gb_min: number
  readonly license: string
  readonly license_url: string
  readonly hf_repo: string
  readonly hf_file: string
  /** Projector beside it; empty for none. */
  readonly mmproj_file: string
  /** Tokens; 0 where that means nothing. */
  readonly context_length: number
  /** Built-in slot it is meant for. */
  readonly recommended_slot: string
  readonly tags: readonly string[]
  readonly notes: string
  readonly capability: ModelCapability
  /** Runtime family, where only one runs it; empty otherwise. */
  readonly backend: string
  /** Which workflow drives it, for image models. */
  readonly model_class: string
  /** Folder below the image engine's `models`; empty for all others. */
  readonly comfyui_subdir: string
  /** Not offered by itself: it comes with something else. */
  readonly bundle_only: boolean
}

export type SuggestionKind = 'model' | 'projector' | 'adapter' | 'unknown'

/** What a file seems to be. `row` is what would be registered; `problem` is why it should not be. */
export interface ModelSuggestion {
  readonly id: string
  readonly path: string
  readonly resolved_path: string
  readonly kind: SuggestionKind
  /** 0 to 1. */
  readonly confidence: number
  readonly row: NewModelRow
  readonly hints: Readonly<Record<string, unknown>>
  readonly problem: string | null
}

export interface ScanResult {
  readonly added: readonly string[]
  readonly skipped: ReadonlyArray<{ readonly path: string, readonly reason: string }>
  readonly scanned_roots: readonly string[]
}

export interface AddOptions {
  readonly id?: string
  readonly name?: string
  readonly capabilities?: readonly ModelCapability[]
  readonly overwrite?: boolean
  /** For the event: `add-from-path`, `scan`, `pull`. */
  readonly source: string
  readonly signal: AbortSignal
}

export interface PreviewOptions {
  readonly recursive: boolean
  readonly signal: AbortSignal
}

export interface UpdatedModel {
  readonly model: Model
  /** Keys of the row that differ now. */
  readonly changed: readonly string[]
}

/**
 * The models of this home as an operator sees them: the curated catalogue, files found on disk, and changes of the
 * registry with their events (`model.registered`, `model.updated`). Unknown ids throw `model.not_found`.
 */
export interface ModelPreview {
  readonly suggestions: readonly ModelSuggestion[]
  /** There is more that was not looked at. */
  readonly truncated: boolean
}

export interface ModelLibrary {
  readonly curated: readonly CuratedModel[]
  /** Folders that are scanned: `[models] roots`, then the store. */
  readonly roots: readonly string[]
  /**
   * What a file seems to be, from its header and name. Throws `model.path_relative`, `model.path_missing`,
   * `model.unsupported_format`.
   */
  describe (path: string, signal: AbortSignal): Promise<ModelSuggestion>
  /** Every model file at or below some absolute paths, whether registered or not; as far as ten seconds go. */
  preview (paths: readonly string[], options: PreviewOptions): Promise<ModelPreview>
  /** Registers what is found below the roots and not known yet. One scan at a time: a second caller gets that of the first. */
  scan (): Promise<ScanResult>
  /** Registers a file with what its header tells. Throws as `describe`, and `model.already_exists`. */
  add (path: string, options: AddOptions): Promise<Model>
  /** Registers a row as it is given. Throws `validation.invalid`, and `model.already_exists` unless `overwrite`. */
  register (id: string, row: NewModelRow, options: { readonly source: string, readonly overwrite?: boolean }): Promise<Model>
  /** Ids of registered models whose file is gone. Looked at anew every other second; the same set while nothing changes. */
  missing (): Promise<ReadonlySet<string>>
  /** Merges into a row: `defaults` one level deep, everything else replaces, null removes a key. */
  update (id: string, patch: Readonly<Record<string, unknown>>): Promise<UpdatedModel>
}

export const libraryRef = createServiceRef<ModelLibrary>('models.library')

/** The curated catalogue alone. It needs no gateway, so what stages providers without one can give it too. */
export const curatedRef = createServiceRef<readonly CuratedModel[]>('models.curated')
