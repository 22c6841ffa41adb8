import type { EngineProvider, SlotStatus } from '../../contract/index.js'
import type { EngineInspection } from '../../runtime/container-runtime.js'
import type { PlacedSlot } from '../gpu/gpu-groups.js'
import { isLive } from '../schedule/leases.js'
import type { SlotOwner } from './slot-owner.js'
import type { SlotPlans } from '../plan/slot-plans.js'
import type { SnapshotFeed } from '../../async/snapshot-feed.js'

/** What the fleet knows of one slot besides its owner. */
export interface Member {
  readonly name: string
  readonly owner: SlotOwner
  readonly feed: SnapshotFeed<SlotStatus>
  /** Settles when an earlier engine of this name has gone: it holds the port until then. */
  free: Promise<void>
  /** What its engine was started with; stays when the plugin or the configuration changes. */
  launched: { readonly provider: EngineProvider, readonly modelId: string | null, readonly placed: PlacedSlot } | null
  unwatchExit: () => void
  found: EngineInspection | null
  drift: boolean
}

/** A provider may have been replaced. An engine that the new one would start alike goes on under it, any other keeps its own. */
export function takeProvider (member: Member, plans: Pick<SlotPlans, 'provider'>): void {
  const provider = plans.provider(member.name)
  if (member.launched !== null && provider !== null && !member.drift) member.launched = { ...member.launched, provider }
}

/** Names of the providers that the engines which run were started with. */
export function providersOf (members: readonly Member[], plans: Pick<SlotPlans, 'slot'>): ReadonlySet<string> {
  const live = members.filter(({ owner }) => isLive(owner.core))
  return new Set(live.map(({ name, launched }) => launched?.provider.name ?? plans.slot(name).provider))
}

/** Names of the further ports of a slot's engine. */
export function portNames (plans: Pick<SlotPlans, 'provider'>): (name: string) => readonly string[] {
  return name => plans.provider(name)?.ports ?? []
}
