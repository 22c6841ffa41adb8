import type { ConfigService, ConfigSnapshot, NamedSlotConfig } from '../../contract/index.js'
import { mostReplicas, replicaName } from '../schedule/replica-names.js'

export type SlotsConfig = Pick<ConfigService, 'snapshot' | 'paths' | 'withoutSecrets'>

const snapshots = new WeakMap<ConfigSnapshot, ConfigSnapshot>()
const replicas = new WeakMap<NamedSlotConfig, readonly NamedSlotConfig[]>()

/**
 * The configuration as those see it who run engines: a slot of several replicas is as many slots, each with an engine, a
 * port and a GPU of its own. The same object for the same snapshot, and the snapshot itself where no slot has several. Pure.
 */
export function replicatedSnapshot (snapshot: ConfigSnapshot): ConfigSnapshot {
  const known = snapshots.get(snapshot)
  if (known !== undefined) return known
  const slots = [...snapshot.slots.values()]
  const isPlain = slots.every(slot => mostReplicas(slot) === 1)
  const made = isPlain ? snapshot : { ...snapshot, slots: new Map(slots.flatMap(namedReplicas)) }
  snapshots.set(snapshot, made)
  return made
}

/** The same service for those who run engines. */
export function replicatedConfig (config: ConfigService): SlotsConfig {
  return {
    get snapshot () { return replicatedSnapshot(config.snapshot) },
    get paths () { return config.paths },
    withoutSecrets: text => config.withoutSecrets(text)
  }
}

function namedReplicas (slot: NamedSlotConfig): Array<readonly [string, NamedSlotConfig]> {
  const most = mostReplicas(slot)
  if (most === 1) return [[slot.name, slot]]
  let made = replicas.get(slot)
  if (made === undefined) replicas.set(slot, made = Array.from({ length: most }, (_, i) => replicaOf(slot, i + 1)))
  return made.map(replica => [replica.name, replica])
}

/** A port that the file names is the first one's. */
function replicaOf (slot: NamedSlotConfig, index: number): NamedSlotConfig {
  const gpus = slot.replica_gpus
  const { port, ...others } = slot
  return {
    ...others,
    ...(index === 1 && port !== undefined ? { port } : {}),
    name: replicaName(slot.name, index),
    gpu_index: gpus.length === 0 ? slot.gpu_index : gpus[(index - 1) % gpus.length]!
  }
}
