import {
  NO_PROVIDER, profileSchema, type Device, type EngineProvider, type Manifest, type ModelNames, type NamedProfile,
  type ProviderCatalog, type ProviderWish, type SlotType, type UpstreamTemplate
} from '../../contract/index.js'

export interface ProviderLayer {
  readonly provider: EngineProvider
  /** It ships with the gateway: packages lie over it. */
  readonly isBuiltin: boolean
}

interface Claim {
  readonly provider: EngineProvider
  /** Higher wins, compared from the left: runs there, is of a package, names the device. */
  readonly rank: readonly [number, number, number]
}

/** The facts of all providers, laid over each other. Immutable; another set of providers makes a new one. */
export class LaidProviders implements ProviderCatalog {
  readonly aliases: ReadonlyMap<string, string>
  readonly deviceWords: ReadonlyMap<string, Device>
  /** False before plugins have registered: then a word that no provider has is not wrong yet. */
  readonly known: boolean
  readonly profiles: ReadonlyMap<string, NamedProfile>
  readonly images: Manifest['toolbox_images']
  readonly modelNames: readonly ModelNames[]
  readonly reservedPorts: readonly number[]
  /** Makers of models elsewhere. */
  readonly templates: readonly UpstreamTemplate[]
  readonly #layers: readonly ProviderLayer[]
  readonly #byName: ReadonlyMap<string, EngineProvider>
  /** Which provider brings a profile. */
  readonly #profileOwners: ReadonlyMap<string, EngineProvider>
  /** Which provider brings an image, by the image's short name. */
  readonly #imageOwners: ReadonlyMap<string, EngineProvider>

  constructor (given?: readonly ProviderLayer[], templates: readonly UpstreamTemplate[] = []) {
    this.templates = templates
    const layers = given ?? []
    this.known = given !== undefined
    this.#layers = layers
    const providers = layers.map(({ provider }) => provider)
    this.#byName = new Map(providers.map(provider => [provider.name, provider]))
    this.aliases = new Map(providers.flatMap(({ name, aliases = [] }) => aliases.map(alias => [alias, name] as const)))
    this.deviceWords = new Map(providers.flatMap(({ deviceWords = {} }) => Object.entries(deviceWords)))
    const usual = this.defaultFor('llm')
    const inOrder = providers.toSorted((a, b) => Number(b === usual) - Number(a === usual))
    // those of the engine that most slots have come first
    const profiles = inOrder.flatMap(provider =>
      Object.entries(provider.profiles ?? {}).map(([name, row]) => ({ provider, name, row })))
    this.#profileOwners = new Map(profiles.map(({ name, provider }) => [name, provider]))
    this.profiles = new Map(profiles.map(({ name, row }) =>
      [name, Object.freeze({ ...profileSchema.parse(row), name, seed: true })]))
    this.images = Object.fromEntries(providers.flatMap(({ images = {} }) => Object.entries(images))
      .map(([name, { tag, digest, devices }]) =>
        [name, { tag, digest: digest ?? null, ...(devices === undefined ? {} : { devices: [...devices] }) }]))
    this.#imageOwners = new Map(providers.flatMap(provider =>
      Object.keys(provider.images ?? {}).map(name => [name, provider] as const)))
    this.modelNames = providers.flatMap(({ modelNames }) => modelNames ?? [])
    this.reservedPorts = providers.flatMap(({ reservedPorts = [] }) => reservedPorts)
  }

  list (): readonly EngineProvider[] {
    return [...this.#byName.values()]
  }

  get (name: string): EngineProvider | undefined {
    return this.#byName.get(name)
  }

  canonical (name: string): string {
    return this.#byName.has(name) ? name : this.aliases.get(name) ?? name
  }

  defaultFor (type: SlotType, device?: Device): EngineProvider | undefined {
    let best: Claim | null = null
    for (const { provider, isBuiltin } of this.#layers) {
      for (const claim of provider.defaultFor ?? []) {
        if (claim.type !== type || (claim.device !== undefined && claim.device !== device)) continue
        const runs = device === undefined || provider.devices.includes(device)
        const rank = [Number(runs), Number(!isBuiltin), Number(claim.device !== undefined)] as const
        if (best === null || compare(rank, best.rank) >= 0) best = { provider, rank }
      }
    }
    return best?.provider
  }

  nameFor ({ provider, type, device, profile }: ProviderWish): string {
    if (provider !== null) return this.canonical(provider)
    return (this.#ofProfile(profile, type, device) ?? this.defaultFor(type, device))?.name ?? NO_PROVIDER
  }

  ownerOf ({ name, image, cloned_from: origin }: Pick<NamedProfile, 'name' | 'image' | 'cloned_from'>): EngineProvider | undefined {
    return this.#bringerOf(name) ?? this.#byName.get(image) ?? this.#imageOwners.get(image) ??
      (origin === null ? undefined : this.#bringerOf(origin))
  }

  #bringerOf (profile: string): EngineProvider | undefined {
    return this.#byName.get(profile) ?? this.#profileOwners.get(profile)
  }

  /** One that a profile is named after; one that brings it, where it can run such a slot. */
  #ofProfile (profile: string | null, type: SlotType, device: Device | undefined): EngineProvider | undefined {
    if (profile === null) return undefined
    const named = this.#byName.get(profile)
    if (named !== undefined) return named
    const owner = this.#profileOwners.get(profile)
    const runs = owner?.slotTypes.includes(type) === true && (device === undefined || owner.devices.includes(device))
    return runs ? owner : undefined
  }
}

/** Without any provider: before plugins have registered. */
export const noProviders = new LaidProviders()

function compare (a: Claim['rank'], b: Claim['rank']): number {
  const i = a.findIndex((value, k) => value !== b[k])
  return i === -1 ? 0 : a[i]! - b[i]!
}
