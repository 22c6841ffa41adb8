import { svcError, type ConfigSnapshot } from '../contract/index.js'
import { assertPortFree } from '../runtime/port-check.js'

/** Ports that no slot may take, whatever the pool says: the gateway's own and the image engine's. */
export const RESERVED_PORTS: readonly number[] = [8080, 8188]

/** Ports of the pool that nobody claims, in ascending order. Pure. */
export function freePorts (start: number, end: number, claimed: ReadonlySet<number>): number[] {
  const ports: number[] = []
  for (let port = start; port <= end; port++) {
    if (!claimed.has(port) && !RESERVED_PORTS.includes(port)) ports.push(port)
  }
  return ports
}

/**
 * The first unclaimed port of the pool on which nothing listens. Callers hold the slot-writer lock, so that
 * two slots never get the same one. Throws `slot.no_free_port`.
 */
export async function allocatePort (
  start: number, end: number, claimed: ReadonlySet<number>, isListening: (port: number) => Promise<boolean>
): Promise<number> {
  for (const port of freePorts(start, end, claimed)) {
    if (!await isListening(port)) return port
  }
  throw svcError('slot.no_free_port',
    `every port from ${start} to ${end} is taken; delete a slot or widen port_range_start and port_range_end in svc.toml`,
    { details: { port_range_start: start, port_range_end: end } })
}

/** A port of the pool that no slot, engine or other program has. `inUse` are ports that no slot's file names. */
export function freePort ({ slots, svc }: Pick<ConfigSnapshot, 'slots' | 'svc'>, inUse: readonly number[]): Promise<number> {
  const claimed = new Set([...[...slots.values()].map(slot => slot.port ?? 0), ...inUse, svc.server.port])
  return allocatePort(svc.slots.port_range_start, svc.slots.port_range_end, claimed, port =>
    assertPortFree(svc.slots.publish_host, port).then(() => false, () => true))
}
