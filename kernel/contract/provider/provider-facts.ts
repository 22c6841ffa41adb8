import type { z } from 'zod'
import type { Device, ModelCapability, SlotType } from '../schemas/enums.js'
import { profileSchema } from '../schemas/profile.js'

/** Slots of a type that name no provider; with a device only those there. */
export interface DefaultFor {
  readonly type: SlotType
  readonly device?: Device
}

/** A container image by its short name: full reference, and the digest where it is published. */
export interface ProviderImage {
  readonly tag: string
  readonly digest?: string | null
  /** Devices that it is built for; absent is any. */
  readonly devices?: readonly Device[]
}

/** Words in names of models, by what such models are for. */
export type ModelNames = Readonly<Partial<Record<ModelCapability, RegExp>>>

/** A folder of the layout of the model store, for models that the engine runs. */
export interface ModelFolder {
  /** Below the store: whose models they are and what for, such as `onnx/tts`. */
  readonly folder: string
  readonly for: readonly ModelCapability[]
  /** Words in `backends` of a model that make it this engine's. */
  readonly backends?: readonly string[]
  /** Also takes the models that name no engine. One for each purpose does. */
  readonly usual?: boolean
  /** Folders of this name, in older installations, hold such models. */
  readonly formerly?: readonly string[]
  /** As `formerly`, and each entry there is a model, whatever it is made of. */
  readonly collections?: readonly string[]
}

/** What a provider tells of itself besides how it runs. The gateway lays the facts of all providers over each other. */
export interface ProviderFacts {
  /** Images by short name, as profiles, slot files and `image` name them. manifest.json of the operator lies over them. */
  readonly images?: Readonly<Record<string, ProviderImage>>
  /** Profiles by name. They cannot be changed, and hold no model, port or context size: those come from the slot. */
  readonly profiles?: Readonly<Record<string, z.input<typeof profileSchema>>>
  /** Other names of the provider, which files and requests may use. */
  readonly aliases?: readonly string[]
  /** What the deprecated key `backend` of slot files and capabilities says for this engine, and the device that it means. */
  readonly deviceWords?: Readonly<Record<string, Device>>
  /**
   * Which slots without a provider it runs. A package wins over what ships with the gateway, an entry with the slot's device
   * over one without, and of two packages the later one; a provider that does not run on the device comes after all that do.
   */
  readonly defaultFor?: readonly DefaultFor[]
  /** Ports by which people know this engine. Its slots get the first one when they name none; slots of others none of them. */
  readonly reservedPorts?: readonly number[]
  /**
   * Environment variable that tells the engine by number which GPUs to use on `gpu-vulkan`, such as `GGML_VK_VISIBLE_DEVICES` of
   * ggml: Vulkan has none of its own, as CUDA and ROCm do. Set where the slot has a `gpu_index`.
   */
  readonly vulkanVariable?: string
  /** What names of models, in lower case, tell about what the model is for. */
  readonly modelNames?: ModelNames
  /** Where models that it runs lie in the layout of the model store. */
  readonly modelFolders?: readonly ModelFolder[]
}

/** Says what is wrong with the facts of a provider; null is fine. */
export function factsProblem (
  { images = {}, profiles = {}, aliases = [], deviceWords = {}, reservedPorts = [], vulkanVariable }: ProviderFacts
): string | null {
  for (const [name, profile] of Object.entries(profiles)) {
    const checked = profileSchema.safeParse(profile)
    if (checked.success) continue
    const [issue] = checked.error.issues
    return `profiles.${[name, ...issue?.path ?? []].join('.')}: ${issue?.message ?? 'is not valid'}`
  }
  const short = /^[a-z0-9][a-z0-9_-]{0,31}$/
  for (const name of [...Object.keys(profiles), ...Object.keys(images), ...aliases, ...Object.keys(deviceWords)]) {
    if (!short.test(name)) return `'${name}' must be lowercase letters, digits, - or _, at most 32`
  }
  if (vulkanVariable !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(vulkanVariable)) {
    return `vulkanVariable: '${vulkanVariable}' must be the name of an environment variable`
  }
  const port = reservedPorts.find(port => !Number.isInteger(port) || port < 1024 || port > 65_535)
  return port === undefined ? null : `reservedPorts: ${port} must be a port from 1024 on`
}
