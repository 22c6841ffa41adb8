import type { ReplicaStatus, SlotState, SlotStatus } from '../../contract/index.js'
import { isServing } from '../schedule/slot-machine.js'

/** Of several replicas the slot is what the first of these is. */
const order: readonly SlotState[] = ['serving', 'ready', 'idle', 'warming', 'starting', 'pulling', 'unloading', 'error', 'offline']

/**
 * A slot of several replicas as one: what the replica is that tells most of it, with the sums of all. Pure.
 * @param replicas at least one, the first is number 1
 * @param waiting those who wait for any of them
 */
export function statusOfReplicas (name: string, replicas: readonly SlotStatus[], waiting: number): SlotStatus {
  const [first, ...others] = replicas.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state))
  const up = replicas.filter(({ state }) => isServing(state))
  const isBounded = up.length > 0 && up.every(({ workers }) => workers !== null)
  const times = (of: (status: SlotStatus) => number | null): number[] => replicas.flatMap(status => of(status) ?? [])
  return {
    ...first!,
    name,
    // grows with every launch of any of them
    generation: others.reduce((sum, { generation }) => sum + generation, first!.generation),
    inFlight: replicas.reduce((sum, { inFlight }) => sum + inFlight, 0),
    waiting,
    workers: isBounded ? up.reduce((sum, { workers }) => sum + workers!, 0) : null,
    lastUsedAt: latest(times(({ lastUsedAt }) => lastUsedAt)),
    configDrift: replicas.some(({ configDrift }) => configDrift),
    replicas: replicas.map((status, i) => replicaStatus(i + 1, status))
  }
}

function replicaStatus (index: number, status: SlotStatus): ReplicaStatus {
  const { state, since, message, port, address, engineId, engineName, inFlight, failure } = status
  return { index, state, since, message, port, address, engineId, engineName, inFlight, error: failure?.message ?? null }
}

function latest (times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.max(...times)
}
