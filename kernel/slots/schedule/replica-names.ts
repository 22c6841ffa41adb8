import type { NamedSlotConfig } from '../../contract/index.js'

/** Stands between a slot's name and the number of its replica. No slot's name may hold it. */
const MARK = '.'

/** One of a slot's engines: the first has the slot's own name, the others a name that no user can give. */
export interface ReplicaPlace {
  readonly slot: string
  /** From 1. */
  readonly index: number
}

export function replicaName (slot: string, index: number): string {
  return index === 1 ? slot : `${slot}${MARK}${index}`
}

/** Where a name of the fleet belongs: `chat` is the first of `chat`, `chat.2` the second. */
export function replicaPlace (name: string): ReplicaPlace {
  const at = name.lastIndexOf(MARK)
  return at === -1 ? { slot: name, index: 1 } : { slot: name.slice(0, at), index: Number(name.slice(at + 1)) }
}

/** As messages call it, after the word slot: `'chat'`, or `'chat' (replica 2)`. */
export function replicaWords (name: string): string {
  const { slot, index } = replicaPlace(name)
  return index === 1 ? `'${slot}'` : `'${slot}' (replica ${index})`
}

/** A message that calls it by its name in the fleet, as planning and providers do, in words that a user knows. */
export function inReplicaWords (name: string, message: string): string {
  return isFurtherReplica(name) ? message.replaceAll(`'${name}'`, replicaWords(name)) : message
}

/** Whether it is the name of a further replica, which only the fleet knows. */
export function isFurtherReplica (name: string): boolean {
  return name.includes(MARK)
}

/** Most engines that a slot may have at a time. */
export function mostReplicas (slot: Pick<NamedSlotConfig, 'replicas' | 'max_replicas' | 'served_by'>): number {
  return slot.served_by === null ? Math.max(slot.replicas, slot.max_replicas ?? 1) : 1
}
