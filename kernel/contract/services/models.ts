import type { StoreOwner } from '../provider/engine-store.js'
import type { ModelCapability } from '../schemas/enums.js'
import type { Model, ModelRow } from '../schemas/model-row.js'

/** A row to write; what it leaves open gets the defaults of `modelRowSchema`. */
export type NewModelRow = Partial<ModelRow> & { readonly path: string }

/** The registry as it is to be. */
export interface RegistryFile { readonly text: string }

/** The model registry (registry/registry.toml). Reads are from memory; writes are atomic and locked. */
export interface ModelRegistry {
  list (): readonly Model[]
  get (id: string): Model | undefined
  /** Whether a model may be missing only because registry.toml, or its row, could not be read. */
  isUnread? (id: string): boolean
  /** Adds or replaces a row. Throws `validation.invalid`. */
  put (id: string, row: NewModelRow): Promise<Model>
  remove (id: string): Promise<boolean>
  /**
   * Reads, decides and writes under one lock: `edit` sees what the file holds at that moment and returns the rows to
   * write, null for those to remove; it must not wait for anything and may throw. All of it is written, or nothing.
   * One call with many rows costs as much as one with one row. With `together` the file is not written but handed over, to
   * be put into a draft (`ConfigDraft.putRegistry`) whose change must be written before `together` resolves; not called
   * where nothing changes. The lock of the registry comes before that of the configuration: never call this in a `change`.
   */
  change (
    edit: (models: ReadonlyMap<string, Model>) => ReadonlyMap<string, NewModelRow | null>,
    together?: (file: RegistryFile) => Promise<void>
  ): Promise<void>
  onChange (listener: () => void): () => void
  /** Effective store folder: SVC_MODEL_STORE, then `[models] store`, then the default under the state root. */
  readonly store: string
  /** Folder in which an engine with models of its own keeps them (`EngineModels.store`). */
  engineStore (provider: StoreOwner): string
  /**
   * Writes a text file into the store whole or not at all, and makes the folder. Replaces a link, never follows it. With
   * `fresh`, rejects with EEXIST when there is one. What a gateway that dies leaves of it goes with the next start.
   */
  writeFile (path: string, content: string, fresh?: boolean): Promise<void>
}

/** A text model, a projector that goes with one, or an adapter. */
export type ModelFileKind = 'model' | 'projector' | 'adapter'

/** What the header of a GGUF file tells. Sizes in bytes, lengths in tokens; null is not said. */
export interface ModelFileFacts {
  readonly kind: ModelFileKind
  readonly size_bytes: number
  readonly architecture: string
  readonly name: string | null
  readonly license: string | null
  /** Of the file's name, else of its header: `Q4_K_M`. Empty when neither tells. */
  readonly quant: string
  readonly context_length: number | null
  readonly embedding_length: number | null
  readonly block_count: number | null
  readonly parameter_count: number
  /** The template in the file, as it is. */
  readonly chat_template: string | null
  /** Whether that template knows tools. */
  readonly tool_calling: boolean
  /** Whether the file has layers for multi-token prediction. */
  readonly mtp: boolean
  /** Which part of a split model this is, counted from 1. */
  readonly split: { readonly part: number, readonly parts: number } | null
  /** What it can do, by header and name. Empty for projectors and adapters. */
  readonly capabilities: readonly ModelCapability[]
}

export interface ModelFiles {
  /**
   * Reads the header of a GGUF file, off the main thread and within bounds of memory and time. Rejects with
   * `model.path_missing`, or `model.file_invalid` for a file that is no GGUF, is cut short or damaged.
   */
  inspect (path: string, signal?: AbortSignal): Promise<ModelFileFacts>
  /** What a model can do by its name alone, for files without a header to read; null for a name that says nothing. Pure. */
  guess (fileName: string): readonly ModelCapability[] | null
}
