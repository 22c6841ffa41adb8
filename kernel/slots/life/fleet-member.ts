import type { SlotStatus } from '../../contract/index.js'
import { isLive } from '../schedule/leases.js'
import type { ScheduledSlot } from '../schedule/scheduled-slot.js'
import type { SlotEngine } from './slot-engine.js'
import type { SlotOwner } from './slot-owner.js'
import type { SlotPlans } from '../plan/slot-plans.js'
import type { SnapshotFeed } from '../../async/snapshot-feed.js'

/** A slot in the fleet. */
export interface Member {
  readonly name: string
  readonly owner: SlotOwner
  readonly engine: SlotEngine
  readonly feed: SnapshotFeed<SlotStatus>
  unwatchExit: () => void
}

export type MemberListener = (core: ScheduledSlot, before: ScheduledSlot) => void

/** Names of the providers that the engines which run were started with. */
export function providersOf (members: readonly Member[], plans: Pick<SlotPlans, 'slot'>): ReadonlySet<string> {
  const live = members.filter(({ owner }) => isLive(owner.core))
  return new Set(live.map(({ name, engine }) => engine.launched?.provider.name ?? plans.slot(name).provider))
}

/** Names of the further ports of a slot's engine. */
export function portNames (plans: Pick<SlotPlans, 'provider'>): (name: string) => readonly string[] {
  return name => plans.provider(name)?.ports ?? []
}
