import type { z } from 'zod'
import { hasBrand, PROVIDER_BRAND } from '../brand.js'
import type { ErrorKind } from '../errors/define-errors.js'
import type { EngineAbout } from './engine-about.js'
import type { EngineClient } from './engine-client.js'
import type { EngineRequirements } from './engine-requirements.js'
import type { EngineModels } from './engine-models.js'
import type {
  FlagGrammar, LaunchInput, LaunchSpecInput, ProcessCandidate, ProviderContainerSpec, ProviderSegments
} from './provider-launch.js'
import type { ProviderFacts } from './provider-facts.js'
import type { Surfaces } from './provider-surface.js'
import type { AbilityInput, SlotAbilities } from './slot-abilities.js'
import type { Device, SlotType } from '../schemas/enums.js'
import type { Model } from '../schemas/model-row.js'
import type { NamedProfile } from '../schemas/profile.js'
import type { SlotConfig } from '../schemas/slot-config.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'

/**
 * How slots of a provider share a device: `standard` with anything; `exclusive` alone on the device;
 * `coexist-by-type` one slot of each type; `unmetered` costs nothing.
 */
export const exclusivities = ['standard', 'exclusive', 'coexist-by-type', 'unmetered'] as const
export type Exclusivity = typeof exclusivities[number]

export interface HealthAnswer {
  readonly status: number
  /** The body when it is JSON, else null. */
  readonly json: unknown
}

/** `ok` serves; `loading` is alive and not there yet; `failed` counts against the engine. */
export type HealthVerdict = 'ok' | 'loading' | 'failed'

/** A verdict with what the engine says of its start. */
export interface HealthReport {
  readonly verdict: HealthVerdict
  /** 0 to 1, how much of the model is loaded; null if unknown. */
  readonly progress?: number | null
  /** What it does now, or what is wrong, in a few words. Shown to the operator. */
  readonly message?: string
}

export interface HealthCheck {
  /** Path on the engine that the kernel polls. */
  readonly path: string
  /** One of the provider's `ports`, for an engine that tells its health elsewhere than it serves. */
  readonly port?: string
  /** Pure. Default: 200 is ok, 503 is loading, anything else failed. A report also says how far a start has come. */
  readonly verdict?: (answer: HealthAnswer) => HealthVerdict | HealthReport
  /** The engine may work for long before it listens, such as fetching its model: refused connections are no failure. */
  readonly listensLate?: boolean
}

/**
 * A slot type that the same process serves besides the anchor's, such as embeddings beside chat. Each anchor has a slot
 * `<anchor><suffix>` of this type, with no file and no engine of its own: it is up while the anchor is.
 */
export interface ChildSlot {
  readonly suffix: string
  readonly type: SlotType
  readonly model: string
  /** Other names that requests may use for it. */
  readonly aliases?: readonly string[]
  /** Whether the anchor's configuration switches this child on. Pure. */
  readonly active: (anchor: SlotConfig) => boolean
}

/** What requests for a child are refused with while its anchor's engine does not serve it. */
export interface UnservedChild extends ErrorKind {
  /** What is done to the anchor's file where the child is switched off there, as an order: `set embed in its [options]`. */
  readonly switchOn?: string
}

/**
 * A model that an engine switches to by itself, request by request. Requests for it go to a slot of this provider and
 * name it to the engine, whatever `[model] default` of the slot says.
 */
export interface CatalogueModel {
  readonly id: string
  readonly title: string
  readonly family: string
  /** On disk; decimal gigabytes, as makers of models count. */
  readonly sizeGb: number
  readonly vramGbMin: number
  readonly license: string
  readonly licenseUrl: string
  /** Where its file comes from: repository of the model hub, and name there. */
  readonly hubRepo: string
  readonly hubFile: string
  /** Why no request can use it yet, as the client is told; null when they can. */
  readonly problem: string | null
}

/** What a warm-up is for. */
export interface WarmUpInput {
  readonly slot: NamedSlotConfig
  /** What the engine serves; null for an engine with its model built in. */
  readonly modelId: string | null
}

export interface EngineMetrics {
  readonly requestsProcessing?: number
  readonly kvCacheUsage?: number
  readonly tokensPerSecond?: number
}

/** Where a slot runs, and what. */
export interface SlotPlace {
  readonly device: Device
  /** Null for a slot without a model, and for one whose model is not in the registry. */
  readonly model: Model | null
}

/**
 * An engine that slots can run. Functions that take a `LaunchInput` are pure: no I/O, no clock, no
 * environment. Functions that take an `EngineClient` must honour its signal and may throw.
 */
export interface EngineProvider extends ProviderFacts {
  readonly name: string
  readonly title: string
  /** Groups profiles by what can run them. */
  readonly family: string
  readonly devices: readonly Device[]
  readonly slotTypes: readonly SlotType[]
  /** Whether `svc slot create --provider` offers it. */
  readonly cli: boolean
  /** False for an engine that has its model built in: such a slot is ready without `[model] default`. */
  readonly needsModel: boolean
  /**
   * Whether launches get the slot's model when it has one. Default: `needsModel`. True with `needsModel: false` is an
   * engine that brings a model of its own and takes another.
   */
  readonly takesModel?: boolean
  /** Models that are asked for by their own id instead of being loaded with the slot. */
  readonly catalogue?: readonly CatalogueModel[]
  /** Whether the engine fetches a model of this id by itself, so that it needs no row of the registry. Pure. */
  readonly fetches?: (id: string) => boolean
  /** Where its models come from, when that is not the registry. Launches then get `engineModels` instead of `model`. */
  readonly models?: EngineModels
  /** A slot that serves its children and nothing itself: it needs no model and takes no requests. Pure. */
  readonly carriesOnly?: (slot: SlotConfig) => boolean
  /** What it needs of the machine besides one of `devices`. */
  readonly requires?: EngineRequirements
  /** Whose it is, shown to the operator before its image is pulled for the first time. */
  readonly about?: EngineAbout
  readonly surfaces: Surfaces
  /**
   * What a slot can do and what it cannot. Where a name stands for several slots, a request goes to one that does not lack
   * what it needs; where all of them lack it, it is refused before anything is loaded. Absent: all is unknown. Pure.
   */
  readonly abilities?: (input: AbilityInput) => SlotAbilities
  /**
   * Paths of the engine that cost it next to nothing, besides everything that is only read: a request that is passed to it
   * there (`/upstream`) takes no worker of the slot and waits for none.
   */
  readonly lightPaths?: readonly string[]
  readonly health: HealthCheck
  /** False for an engine that closes its connection after each answer without saying so: none is used twice. */
  readonly keepsConnections?: boolean
  readonly children?: readonly ChildSlot[]
  /** Default: `slot.unserved`. */
  readonly unserved?: UnservedChild
  readonly exclusivity: Exclusivity
  /**
   * Names of further ports that the engine listens on, such as `metrics`. Numbers are chosen at each launch as the main
   * one is, published for a container, and told in `LaunchInput.ports`, `EngineAddress.ports` and the slot's `ports`.
   * A surface, the health check and calls of the `EngineClient` go to one by naming it in `port`.
   */
  readonly ports?: readonly string[]
  readonly flags?: FlagGrammar
  /** Checks the slot's `[options]` table; launches get it with the defaults of this schema filled in. */
  readonly slotOptions?: z.ZodType
  /**
   * Why a slot with this profile cannot run, where no other field of the contract says it: flags that exclude each
   * other, a model that the engine cannot load on this device. Told to writers of the slot, and asked of slots that
   * are only offered; null is fine. `profile` is the slot's or its default. Pure.
   */
  readonly slotProblem?: (slot: NamedSlotConfig, profile: NamedProfile | null, place: SlotPlace) => string | null
  /**
   * What the engine reads in a request's `model`, for one that knows its model by another name than the slot does:
   * an engine with a fixed name, or one that takes a hub id. Default: the slot's model id, and the client's own word
   * for a slot that has none. Gets the slot as its file has it, `options` without the schema's defaults. Pure.
   */
  readonly modelName?: (slot: NamedSlotConfig, modelId: string | null) => string
  /**
   * Container image for slots whose profile and file name none: a short name of the manifest, or a reference. A
   * function where it depends on the slot, whose `options` have the schema's defaults filled in, or on its model. Pure.
   */
  readonly image?: string | ((slot: NamedSlotConfig, device: Device, model: Model | null) => string | undefined)
  /** Profile that a slot without one gets; null runs without a profile, which is the default. Pure. */
  readonly defaultProfile?: (device: Device, type: SlotType) => string | null
  readonly argvSegments?: (input: LaunchInput) => ProviderSegments
  /**
   * How many requests an engine that is launched so works on at once; null takes as many as it is given. The slot lends
   * no more than that at a time; others wait in its queue, in the order they came. Absent: `workers` of the slot. Pure.
   */
  readonly concurrency?: (input: LaunchSpecInput) => number | null
  /**
   * Headers of every request to an engine that is launched so: requests of clients, health checks, and those of its
   * `EngineClient`. For an engine that asks for a key (`LaunchInput.engineKey`). They win over what a client sends. Pure.
   */
  readonly headers?: (input: LaunchSpecInput) => Readonly<Record<string, string>>
  /**
   * How slots run that do not say so themselves: `process` also beside a container engine, `docker`, `podman` or the name of
   * a plugin's driver on that one. Default: in a container where there is a container engine, else as a process.
   */
  readonly runtime?: string
  readonly containerSpec: (input: LaunchSpecInput) => ProviderContainerSpec
  /** Ways to run without a container, best first. Absent or empty: containers only. */
  readonly processSpec?: (input: LaunchSpecInput) => readonly ProcessCandidate[]
  /**
   * Work between a healthy engine and a ready slot, such as a first inference that compiles kernels. What it throws fails
   * the start. Runs within `[slots] health_timeout_s`, also for an engine of an earlier gateway that is taken over.
   */
  readonly warmUp?: (client: EngineClient, signal: AbortSignal, input: WarmUpInput) => Promise<void>
  readonly voices?: (client: EngineClient, signal: AbortSignal) => Promise<readonly unknown[]>
  readonly loadedModel?: (client: EngineClient, signal: AbortSignal) => Promise<string | null>
  readonly metrics?: (client: EngineClient, signal: AbortSignal) => Promise<EngineMetrics>
}

/** The provider of a slot that names none, where none is the default of its type. */
export const NO_PROVIDER = 'none'

export function isProvider (value: unknown): value is EngineProvider {
  return hasBrand(value, PROVIDER_BRAND)
}
