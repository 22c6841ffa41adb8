import { hasBrand, SERVICE_BRAND } from '../brand.js'
import type { SlotType } from '../schemas/enums.js'

export const serviceVerbs = ['start', 'stop', 'restart', 'enable', 'disable'] as const
export type ServiceVerb = typeof serviceVerbs[number]

/** What a service is told of the gateway and of its own place when it is started. */
export interface ServiceWorld {
  /** The gateway as the service reaches it: `http://127.0.0.1:8080`, no slash at its end. */
  readonly gateway: string
  /** Where the service is to listen. */
  readonly host: string
  readonly port: number
  /** A folder of this service alone that survives restarts and updates. Inside a container, where it is mounted. */
  readonly dataDir: string
  /** A random text of this home and this service, the same at every start. */
  readonly secret: string
  /** The slot that serves a type: of language models the default one, else the first that is enabled; null without one. */
  slot (type: SlotType): string | null
}

/** A package of the Python registry, in an environment of its own. */
export interface PythonProgram {
  /** As its registry has it; the version is the one that is installed, and no other. */
  readonly package: string
  readonly version: string
  /** Further requirements that are installed with it. */
  readonly also?: readonly string[]
  /** Packages it would draw in and does without. */
  readonly leaveOut?: readonly string[]
  /** Minor versions of Python 3 that it runs on, best first: `[12, 11]`. */
  readonly pythons: readonly [number, ...number[]]
  /** Disk that it takes, in bytes, as it was measured; null if unknown. */
  readonly bytes: number | null
  /** The program of the environment, and what it is called with. */
  readonly command: (world: ServiceWorld) => { readonly program: string, readonly args: readonly string[] }
}

/** A container on the host's network, so that it finds the gateway where the host does. */
export interface ServiceImage {
  readonly image: string
  readonly bytes: number | null
  /** Where `dataDir` is mounted. */
  readonly data: string
  /** Its program runs as a user of the image, who writes to `dataDir`: any user may write there then who can reach it. */
  readonly foreignUser?: boolean
  readonly command?: (world: ServiceWorld) => readonly string[]
}

/** What runs as a slot and can be brought as one: a slot with the image of its engine. */
export interface ServiceSlot {
  /** Disk that the image takes; null if unknown. */
  readonly bytes: number | null
  /** Folder below the state root in which its engine keeps its data unless an operator names another one; null for none. */
  readonly data: string | null
}

/** How a service was when it was looked at. */
export interface ServiceLook {
  /** It answered, and works. */
  readonly up: boolean
  /** One sentence: where it is and how, or what is wrong. */
  readonly detail: string
  /** A number or word to show; null for none. */
  readonly stat: { readonly label: string, readonly value: string | number } | null
}

/**
 * A program beside the gateway that is useful with it: a chat page, an agent. Where systemd has its unit, systemd runs it;
 * elsewhere the gateway does, as it runs engines.
 */
export interface ServiceDescriptor {
  /** kebab-case, unique. */
  readonly id: string
  readonly name: string
  /** One line. */
  readonly description: string
  readonly licence: {
    readonly name: string
    /** What a user has to know before it is installed; null without such a thing. */
    readonly note: string | null
    readonly url: string | null
  }
  /** Name of its systemd unit, such as `svc-notes.service`. */
  readonly unit: string
  /** TCP port that it listens on unless the operator says otherwise. */
  readonly port: number
  readonly verbs: readonly ServiceVerb[]
  /** It is up when a GET of this path answers with a status below 400. */
  readonly probe: string
  /** A number or word of the probed service to show, from JSON below its address; null when the answer does not have it. */
  readonly stat?: { readonly path: string, readonly label: string, readonly value: (answer: unknown) => string | number | null }
  /** Path of its page for people; null without one. */
  readonly page: string | null
  /** It may be announced in the local network. */
  readonly mdns: boolean
  /** It never listens beyond loopback. */
  readonly loopback?: boolean
  /** Environment variables of the gateway that replace the address shown to people, and the one that is probed. */
  readonly publicUrlVariable?: string
  readonly probeUrlVariable?: string
  /** What an operator should know of it here; a function is asked each time. */
  readonly hints?: readonly string[] | (() => readonly string[])
  /**
   * Looks at it in place of `probe` and `stat`, where its plugin has the address of one that runs elsewhere. Null for the look at
   * `port`. Never rejects, and ends within a few seconds.
   */
  readonly look?: () => Promise<ServiceLook | null>
  /** Runs as the first enabled slot of this type: the verbs are the slot's. */
  readonly slot?: SlotType
  /** Set where the gateway can make such a slot. */
  readonly slotOffer?: ServiceSlot
  /** It does not work without an enabled slot of each of these types: it is neither installed nor started until there is one. */
  readonly needs?: readonly SlotType[]
  readonly python?: PythonProgram
  readonly container?: ServiceImage
  /** Its environment in both forms: what points it at this gateway above all. */
  readonly env?: (world: ServiceWorld) => Readonly<Record<string, string>>
  /** What it wants of the gateway. Written to svc.toml once, when it is first installed, enabled or started here. */
  readonly settings?: ReadonlyArray<{ readonly key: string, readonly value: boolean | number | string, readonly why: string }>
}

const ID = /^[a-z][a-z0-9-]{0,40}$/

/** Checks and brands a descriptor for `ctx.addService`. Throws a `TypeError` that names what is wrong. */
export function defineService (descriptor: ServiceDescriptor): ServiceDescriptor {
  const { id, port, probe, unit, verbs, settings = [] } = descriptor
  const rules: ReadonlyArray<readonly [holds: boolean, otherwise: string]> = [
    [ID.test(id), 'its id is not kebab-case'],
    [Number.isInteger(port) && port > 0 && port < 65_536, 'its port is not a TCP port'],
    [probe.startsWith('/'), 'its probe is not a path'],
    [/^[A-Za-z0-9@_.:-]+\.service$/.test(unit), 'its unit is not the name of a .service'],
    [verbs.every(verb => serviceVerbs.includes(verb)), `its verbs are not among ${serviceVerbs.join(', ')}`],
    [descriptor.slotOffer === undefined || descriptor.slot !== undefined, 'it offers a slot without a slot type'],
    [settings.every(({ key }) => /^[a-z_]+\.[a-z_]+$/.test(key)), 'the key of a setting is not table.key']
  ]
  const wrong = rules.find(([holds]) => !holds)
  if (wrong !== undefined) throw new TypeError(`service '${id}': ${wrong[1]}`)
  return Object.freeze({ ...descriptor, [SERVICE_BRAND]: true }) as ServiceDescriptor
}

export function isService (value: unknown): value is ServiceDescriptor {
  return hasBrand(value, SERVICE_BRAND)
}

/** The services of plugins that are up, in the order in which plugins were loaded. */
export interface ServiceCatalog {
  list (): readonly ServiceDescriptor[]
  get (id: string): ServiceDescriptor | undefined
}
