import type { ProcessCandidate, ProviderContainerSpec } from './provider-launch.js'
import type { EngineStore } from './engine-store.js'
import type { ModelCapability } from '../schemas/enums.js'

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

/** A file of a model that is being fetched. */
export interface FetchFile {
  /** Below the store, with `/`. */
  readonly path: string
  /** Bytes, as exactly as the program tells. */
  readonly sizeBytes: number
  /** Of these, how many it says to have. */
  readonly doneBytes: number
}

/** What a program that fetches a model has told so far. */
export interface FetchProgress {
  /** Folder of the model below the store; null until it is known. */
  readonly folder: string | null
  /** What is to be fetched; empty until it is known. */
  readonly files: readonly FetchFile[]
  /** Path of the file that it fetches now; null before the first. */
  readonly current: string | null
  /** What it does besides fetching, in words; empty when it just fetches. */
  readonly message: string
  /** Why it will fail, in its own words; null while it does not say so. */
  readonly failure: string | null
}

/** `id` in the engine's spelling. */
export interface FetchInput {
  readonly id: string
  readonly store: string
}

/** The engine's own program for fetching a model: started, it fetches, goes on where an earlier run stopped, and ends with 0. */
export interface EngineFetch {
  /** Pure. */
  readonly containerSpec: (input: FetchInput) => ProviderContainerSpec
  /** Ways to run it without a container, best first. Pure. */
  readonly processSpec?: (input: FetchInput) => readonly ProcessCandidate[]
  /** What one more line of its output tells. Pure. */
  readonly progress: (known: FetchProgress, line: string) => FetchProgress
}

/** For an engine that fetches its models by itself and keeps them in a folder of its own, outside of the registry. */
export interface EngineModels {
  /** The engine's spelling of an id as people write it; null when it can be no model of this engine. Pure. */
  readonly canonical: (id: string) => string | null
  /** Other spellings that requests may use for a model. Pure. */
  readonly aliases?: (id: string) => readonly string[]
  /** Context window of a model in tokens; null if unknown. Pure. */
  readonly contextSize?: (id: string) => number | null
  /** What lists call where these models come from, in a word. Default: the provider's name. */
  readonly source?: string
  /** How to fetch a model before a slot needs it; absent where only a slot that starts can. */
  readonly fetch?: EngineFetch
  readonly store?: EngineStore
  /** What there is to choose from. `store` is `ModelRegistry.engineStore`; a store that is not there yet is empty. */
  readonly list: (store: string) => Promise<readonly EngineModel[]>
}
