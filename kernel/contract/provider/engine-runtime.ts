import type { Readable, Writable } from 'node:stream'
import type { z } from 'zod'
import { hasBrand, RUNTIME_BRAND } from '../brand.js'
import type { EngineAddress } from './engine-client.js'
import type { MountSpec } from './provider-launch.js'
import { PLUGIN_NAME_PATTERN } from '../schemas/names.js'
import type { RuntimeInfo } from './runtime-info.js'

/**
 * Labels on everything the gateway starts, so that a later run finds it again.
 * `svc.instance` is the home, `svc.slot` the slot, `svc.config` the hash of what it was started from.
 */
export const LABEL_INSTANCE = 'svc.instance'
export const LABEL_SLOT = 'svc.slot'
export const LABEL_CONFIG = 'svc.config'
export const LABEL_GENERATION = 'svc.generation'
/** Type, device and picked GPU of the slot, `llm gpu-rocm 0`: what is known when the slot's file cannot be read later. */
export const LABEL_PLACE = 'svc.place'
/** On a program of an engine that runs once and serves no requests: what it is for. It has no slot. */
export const LABEL_TASK = 'svc.task'
/** On a program that runs beside the gateway, in place of the slot: which. */
export const LABEL_DAEMON = 'svc.daemon'
/** The port that the engine was told to listen on, which need not be the one that it is reached by. */
export const LABEL_PORT = 'svc.port'
/** The same of its further ports, as JSON: numbers by name. */
export const LABEL_PORTS = 'svc.ports'

/** What a container needs of the host beyond its image. */
export interface ContainerForm {
  readonly kind: 'container'
  readonly image: string
  /** `sha256:…` that the image must have, or null: by tag. */
  readonly digest: string | null
  readonly entrypoint: readonly string[] | null
  readonly command: readonly string[]
  readonly mounts: readonly MountSpec[]
  /** Host device nodes, mapped to the same path. */
  readonly devices: readonly string[]
  /** Container Device Interface names, such as `nvidia.com/gpu=0`. */
  readonly cdiDevices: readonly string[]
  /** Numeric supplementary groups. */
  readonly groups: readonly number[]
  readonly network: 'bridge' | 'host'
  /** Host address to publish the engine's port on; null with host networking. */
  readonly publishHost: string | null
  readonly ipc: 'private' | 'host'
  readonly shmSizeBytes: number | null
  readonly ulimits: Readonly<Record<string, { readonly soft: number, readonly hard: number }>>
  readonly securityOpts: readonly string[]
  readonly workingDir: string | null
  /** Its port inside, published on any free one: for images whose port is their own. The launch then has none. */
  readonly portInside?: number
  /** Spoken to over its standard streams (`startPiped`); what it writes there is no log. */
  readonly piped?: true
}

export interface ProcessForm {
  readonly kind: 'process'
  /** Absolute path of an executable. */
  readonly command: string
  readonly args: readonly string[]
  readonly workingDir: string | null
  /** Address that the engine was told to listen on; its port there must be free at the start. */
  readonly bindHost: string
  readonly label: string
  /** Spoken to over its standard streams (`startPiped`), which end with the gateway; otherwise its output is its log. */
  readonly piped?: true
}

/** The standard streams of a program. All of them end when it does; an error of one is told there and nowhere else. */
export interface ProgramPipes {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Of the first process; null if unknown. */
  readonly pid: number | null
}

/** A launch, complete: equal specs start equal engines. */
export interface EngineSpec {
  /** For people, unique per launch: `svc-<instance>-<slot>-<generation>`. Never used to act on. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  /** Port the engine listens on, inside its network. Published on the same number. Null: it listens on none. */
  readonly port: number | null
  /** Name of the driver that it is for; absent: whichever takes its form by default. */
  readonly runtime?: string
  /** What the slot says to that driver (`RuntimeDefinition.slotOptions`); absent: nothing. */
  readonly options?: Readonly<Record<string, unknown>>
  /** Further ports that it listens on, by name; published as the port is. */
  readonly ports?: Readonly<Record<string, number>>
  readonly form: ContainerForm | ProcessForm
}

/** How an engine runs. */
export type EngineForm = EngineSpec['form']['kind']
const engineForms: readonly EngineForm[] = ['container', 'process']

export type EngineRunState = 'created' | 'running' | 'exited'

export interface EngineInspection {
  readonly id: string
  readonly name: string
  /** What the tools of its driver call it, where that is another name. */
  readonly knownAs?: string
  readonly labels: Readonly<Record<string, string>>
  readonly state: EngineRunState
  /** Null unless exited. 137 is SIGKILL, which is also what an out-of-memory kill looks like. */
  readonly exitCode: number | null
  readonly oomKilled: boolean
  /** Where to reach the engine from here; null until it runs. Read back from the driver, never assumed. */
  readonly address: EngineAddress | null
  /** Image reference or process label. */
  readonly label: string
  /** Epoch milliseconds; null when it never ran. */
  readonly startedAt: number | null
}

/** Sent once for each engine of ours that ended, however it ended. */
export interface EngineExit {
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
  readonly exitCode: number | null
}

export interface PullProgress {
  /** Finished and known layers. */
  readonly layer: number
  readonly totalLayers: number
  /** Bytes over all layers, as far as they are known. */
  readonly currentBytes: number
  readonly totalBytes: number
  readonly message: string
}

export interface LogOptions {
  /** Number of last lines to begin with. */
  readonly tail: number
  readonly follow: boolean
  readonly signal: AbortSignal
}

/**
 * What runs engines: a driver, or several side by side (`RuntimeSet`). Every method may be called at any time and from
 * several callers at once; ids are the driver's own and are the only way to name an engine.
 * Failures are `SvcError`s: `runtime.failed`, `runtime.image_missing`, `runtime.digest_mismatch`,
 * `runtime.not_found`, `runtime.unavailable`, `slot.port_conflict`.
 */
export interface ContainerRuntime {
  readonly info: RuntimeInfo
  /** Which form of a launch this driver takes; of a set, the one that slots get which ask for none. */
  readonly form: EngineForm
  /** Whether the image is there already. Always true for processes. */
  imagePresent (image: string, digest: string | null, signal: AbortSignal): Promise<boolean>
  /**
   * Pulls by digest when there is one, else by tag. Resolves when the image is usable and its digest is the
   * pinned one. The signal stops the pull; finished layers stay.
   */
  pull (image: string, digest: string | null, onProgress: (progress: PullProgress) => void, signal: AbortSignal): Promise<void>
  /**
   * Throws `slot.port_conflict` when it can be seen from here that the engine could not have its port. A driver whose
   * engines listen on another machine does not know.
   */
  assertPortFree? (spec: EngineSpec): Promise<void>
  /**
   * How long `create` and `start` of this launch may take together, in milliseconds. Absent: `[slots] start_timeout_s`. For a
   * driver that fetches the image, or waits for room, while it starts.
   */
  startTimeoutMs? (spec: EngineSpec): number | null
  /** Creates and starts nothing. Returns the id. Rejects with the signal's reason and leaves nothing when that aborts. */
  create (spec: EngineSpec, signal: AbortSignal): Promise<string>
  /**
   * Resolves when the engine runs; whether it serves is for its health check to say. An engine that runs is left as
   * it is. Rejects with the signal's reason when that aborts; the engine may then run or not, so remove it.
   * @param told what the start waits for, in a line for people
   */
  start (id: string, signal: AbortSignal, told?: (line: string) => void): Promise<void>
  /** As `start`, of one that is `piped` and has not run yet. Its streams must be read, or it blocks. */
  startPiped? (id: string, signal: AbortSignal): Promise<ProgramPipes>
  /**
   * Asks the engine to stop, kills it after `timeoutS`, and resolves when it has really ended.
   * An engine that is gone or ended counts as stopped. A driver that supervises by itself rejects with `gateway.stopping`
   * when it is closed before that.
   */
  stop (id: string, timeoutS: number): Promise<void>
  /** Stops at once if need be, removes, and resolves when it is really gone. Idempotent. */
  remove (id: string): Promise<void>
  /** Null when there is no such engine. */
  inspect (id: string): Promise<EngineInspection | null>
  /**
   * Resident bytes of a running engine, from files of this host; null when they do not tell. Cheap enough for every row of a
   * list.
   */
  memoryHere? (id: string): Promise<number | null>
  /** The same as the container engine tells it, which may take a second or more. */
  readonly memoryThere?: ((id: string, signal: AbortSignal) => Promise<number | null>) | undefined
  /** Engines, running or not, that carry all the labels. One that goes away meanwhile may be missing. */
  list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]>
  /**
   * Lines of stdout and stderr together, oldest first, without line ends, in pieces of at most 16384 characters. A
   * follower is told what comes until the engine ends or the signal aborts, which throws nothing. Reads on only as
   * fast as it is read. Throws `runtime.not_found` at the first line asked for.
   */
  logs (id: string, options: LogOptions): AsyncIterable<string>
  /**
   * Tells once of every engine with the label `svc.instance` = `instance` that ends, also when it is stopped or
   * removed. What had ended before is not told unless `list` or `inspect` of this runtime showed it running: listen
   * first, then list. Survives a restart of the container engine: what ended meanwhile is told of after the
   * reconnect. A listener that throws is logged and does not affect the others. Returns the unsubscriber.
   */
  onExit (instance: string, listener: (exit: EngineExit) => void): () => void
  /** Releases sockets, timers and watches; leaves engines alone. Idempotent. */
  close (): Promise<void>
}

/** Names that the gateway's own drivers answer to, and the two forms. */
export const builtinRuntimes = ['container', 'process', 'docker', 'podman'] as const

/** A driver that a plugin brings: something else that runs engines, on this host or elsewhere. */
export interface RuntimeDefinition {
  /** kebab-case, unique: what a slot's `runtime` says. */
  readonly name: string
  /** The launches that it takes. `container`: slots give it an image. `process`: a program of the gateway's host. */
  readonly form: EngineForm
  /**
   * Engines run on other machines. Devices, memory and files of this host say nothing about their slots then, and the slots
   * have no part in who gets a GPU of this host.
   */
  readonly elsewhere?: true
  /** What a slot may say to it, in `runtime_options`. Takes an empty table. */
  readonly slotOptions?: z.ZodType
  /**
   * What of svc.toml goes into an engine whose slot says this to it, as plain data: one that was started by another answer has
   * drifted. Cheap, and without I/O.
   */
  readonly settingsOf?: (options: Readonly<Record<string, unknown>>) => object
  /** Whether it is opened at the start of the gateway although no slot asks for it. Absent: always. */
  readonly wanted?: () => boolean
  /**
   * Opens it over the engines that it left: those of an earlier gateway must be found again by `list`. Called before slots
   * look for their engines, and again at a launch when it failed. Deadline 30 s. What it throws keeps back its slots alone.
   */
  readonly open: (signal: AbortSignal) => Promise<ContainerRuntime>
}

/** Brands and freezes a driver. Throws where its name is not kebab-case, or one of the gateway's own, and for what it lacks. */
export function defineRuntime (runtime: RuntimeDefinition): RuntimeDefinition {
  const problem = runtimeProblem(runtime)
  if (problem !== null) throw new TypeError(`runtime '${runtime.name}': ${problem}`)
  return Object.freeze({ ...runtime, [RUNTIME_BRAND]: true })
}

/** Authors of plain JavaScript have no compiler that tells them. */
function runtimeProblem ({ name, form, open, slotOptions, settingsOf, wanted }: RuntimeDefinition): string | null {
  if (!PLUGIN_NAME_PATTERN.test(name)) return 'name must be kebab-case'
  if ((builtinRuntimes as readonly string[]).includes(name)) return 'the gateway has a runtime of that name'
  if (!engineForms.includes(form)) return `form must be one of ${engineForms.join(', ')}`
  for (const [key, given] of Object.entries({ open, settingsOf, wanted })) {
    if (typeof given !== 'function' && (given !== undefined || key === 'open')) return `${key} must be a function`
  }
  if (slotOptions === undefined) return null
  if (typeof (slotOptions as Partial<z.ZodType> | null)?.safeParse !== 'function') return 'slotOptions must be a schema of zod'
  return slotOptions.safeParse({}).success ? null : 'slotOptions must accept an empty table: most slots have no options'
}

export function isRuntime (value: unknown): value is RuntimeDefinition {
  return hasBrand(value, RUNTIME_BRAND)
}
