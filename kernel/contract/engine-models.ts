import type { ModelCapability } from './schemas/enums.js'

/** A model that an engine can run from its own store. */
export interface EngineModel {
  /** As the engine spells it. */
  readonly id: string
  readonly family: string
  readonly capabilities: readonly ModelCapability[]
  /** Bytes to fetch. */
  readonly sizeBytes: number
  /** Whether the store has it. */
  readonly installed: boolean
}

/** For an engine that fetches its models by itself and keeps them in a folder of its own, outside of the registry. */
export interface EngineModels {
  /** The engine's spelling of an id as people write it; null when it can be no model of this engine. Pure. */
  readonly canonical: (id: string) => string | null
  /** Other spellings that requests may use for a model. Pure. */
  readonly aliases?: (id: string) => readonly string[]
  /** Context window of a model in tokens; null for one that nobody knows. Pure. */
  readonly contextSize?: (id: string) => number | null
  /** What there is to choose from. `store` is `ModelRegistry.engineStore`; a store that is not there yet is empty. */
  readonly list: (store: string) => Promise<readonly EngineModel[]>
}
