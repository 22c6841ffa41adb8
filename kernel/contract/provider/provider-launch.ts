import type { Device, GpuBackend, SlotType } from '../schemas/enums.js'
import type { HardwareInfo } from '../schemas/hardware.js'
import type { Model } from '../schemas/model-row.js'
import type { NamedProfile } from '../schemas/profile.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'

/**
 * Segments of an engine's argv, lowest precedence first; the last occurrence of a flag wins.
 * The kernel adds `profile` (with the MTP bundle) and `extra_args`; a provider contributes the others.
 */
export const argvSegmentNames = [
  'base', 'profile', 'model_defaults', 'chat_template', 'mmproj', 'slot_overrides', 'extra_args'
] as const
export type ArgvSegmentName = typeof argvSegmentNames[number]
export type ProviderSegments = Readonly<Partial<Record<Exclude<ArgvSegmentName, 'profile' | 'extra_args'>, readonly string[]>>>

/** What an engine's command line looks like, so that equal flags are recognised when segments merge. */
export interface FlagGrammar {
  /** Short or alternative spelling to the canonical one, without dashes: `{ c: 'ctx-size' }`. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Canonical flags that may stand several times and are never merged. */
  readonly repeatable?: readonly string[]
  /**
   * Canonical flags the gateway owns: where the engine listens, what it loads, how it is reached. Refused with
   * `slot.managed_arg_denied` in every text of flags that a user writes (profiles, model defaults, `extra_args`, stacks).
   */
  readonly managed?: readonly string[]
  /**
   * Environment variables that do what `managed` flags do. Refused with `slot.managed_arg_denied` in the `[server] env` of
   * a slot, which would win over what the gateway sets.
   */
  readonly managedEnv?: readonly string[]
  /**
   * Canonical flags that a field of the slot sets. A profile may preset them, since the field wins over it; texts that
   * would win over the field are refused as `managed` is.
   */
  readonly fields?: readonly string[]
  /**
   * Flags that switch multi-token prediction on, for the GPU runtime of the profile, else of the device. They lie below the
   * profile's own. Absent: the engine has none. Pure.
   */
  readonly mtp?: (backend: GpuBackend | null) => readonly string[]
  /**
   * Canonical flags that set the engine up for slots of one type and no other, each with the type: a profile that has one
   * suits slots of that type alone.
   */
  readonly modes?: Readonly<Record<string, SlotType>>
  /** The engine takes the beginning of a long flag for the flag (`--por` for `--port`), as argparse does. */
  readonly abbreviates?: boolean
}

/** Everything a launch depends on, as plain data: equal inputs give equal plans. */
export interface LaunchInput {
  readonly slot: NamedSlotConfig
  readonly device: Device
  /** `container`: the engine must listen on all addresses of its network; `process`: on `bindHost` only. */
  readonly form: 'container' | 'process'
  readonly bindHost: string
  readonly port: number
  /** A number for each of `EngineProvider.ports`, on the same address. */
  readonly ports: Readonly<Record<string, number>>
  readonly model: Model | null
  /** For an engine with models of its own: the id in its spelling, null when the slot needs none, and its writable store. */
  readonly engineModels?: { readonly id: string | null, readonly store: string }
  readonly profile: NamedProfile | null
  /** Tokens; null for slot types that have no context. */
  readonly contextSize: number | null
  /** Absolute path of the chat template file, or null for the one in the model. */
  readonly chatTemplatePath: string | null
  /** Absolute path of the projector, or null when there is none or the slot's `vision` is false. */
  readonly mmprojPath: string | null
  /** Folders that hold what this launch reads; the kernel mounts them read-only at the same path in containers. */
  readonly modelRoots: readonly string[]
  readonly hardware: HardwareInfo
  /**
   * A private, writable folder of this slot that survives restarts. What a container mounts of it is made before the
   * launch and may be written to by any user of the container.
   */
  readonly stateDir: string
  /**
   * A secret of this slot's engines, the same at each launch: for an engine that can ask for a key. Hand it over by
   * environment or file, since arguments are visible to every user of the machine, and send it with
   * `EngineProvider.headers`.
   */
  readonly engineKey: string
}

/** `LaunchInput` plus the merged argv. */
export interface LaunchSpecInput extends LaunchInput {
  readonly argv: readonly string[]
}

export interface MountSpec {
  readonly source: string
  readonly target: string
  readonly readOnly: boolean
}

/**
 * A container as a provider sees it. The kernel adds labels, the published port, GPU devices and visibility
 * for the slot's device, the model mounts, and the explicit `[server] env`, which wins over `env`.
 */
export interface ProviderContainerSpec {
  /** Image that wins over the profile's; rarely needed. */
  readonly image?: string
  readonly entrypoint?: readonly string[]
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly mounts?: readonly MountSpec[]
  /** Host device nodes beyond those of the slot's device, such as `/dev/accel/accel0`. */
  readonly devices?: readonly string[]
  readonly network?: 'bridge' | 'host'
  readonly ipc?: 'private' | 'host'
  readonly shmSizeBytes?: number
  readonly ulimits?: Readonly<Record<string, { readonly soft: number, readonly hard: number }>>
  readonly workingDir?: string
}

/** One way to run the engine as a child process; the first whose command exists on the host is taken. */
export interface ProcessCandidate {
  /** Program on PATH or absolute path. `node` means the gateway's own Node executable. */
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly workingDir?: string
  /** Shown in `/api/slots` and logs: the name of the program, `embedded`. */
  readonly label: string
  /** Files that must exist for this candidate to count, such as an optional dependency's entry. */
  readonly requiresFiles?: readonly string[]
  /** Command that installs it, for the message of a slot that lacks it. */
  readonly install?: string
}
