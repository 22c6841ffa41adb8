import type { ArgvSegmentName } from '../../provider/provider-launch.js'
import type { SlotType } from '../../schemas/enums.js'

export interface ResolvedArgv {
  readonly argv: readonly string[] | null
  /** One entry per surviving flag: the segment that set its final value. */
  readonly provenance: ReadonlyArray<{ readonly flag: string, readonly value: string | null, readonly segment: ArgvSegmentName }>
  /** Duplicate flags that were collapsed. */
  readonly removed: number
}

/** One thing that the running engine of a slot has otherwise than an engine that would be started now; null: not at all. */
export interface LaunchDifference {
  /** A flag (`--ctx-size`), `env.NAME` (whose value is not told), or a part of the launch (`image`, `mounts`). */
  readonly key: string
  readonly running: string | null
  readonly rendered: string | null
}

/** What the next launch of a slot uses, with everything its file leaves open filled in. */
export interface SlotOutlook {
  readonly profile: string | null
  /** Reference of the container image; null where engines run as processes, or the slot has none. */
  readonly image: string | null
  /** Tokens; null for slot types that have no context window. */
  readonly contextSize: number | null
  /** Whether it takes images: its model has a projector that is loaded, or is its engine's own to know. */
  readonly vision: boolean
}

/** What becomes of a profile when a slot uses it. */
export interface ProfileOutlook {
  /** Engine that runs it; null when its plugin is away. */
  readonly provider: string | null
  readonly family: string | null
  /** Types of slots that it suits. */
  readonly slotTypes: readonly SlotType[]
  /** Its flags, merged with those of multi-token prediction when it opts in. */
  readonly resolvedFlags: string
}

export const launchNeeds = ['config', 'device', 'image', 'program', 'model', 'fit'] as const

/** What is known, before anything is started, to keep a slot from coming up on this host. */
export interface LaunchTrouble {
  readonly what: typeof launchNeeds[number]
  readonly message: string
}
