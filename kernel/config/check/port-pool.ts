import type { SvcConfig } from '../../contract/index.js'
import type { LaidProviders } from '../parts/laid-providers.js'
import type { Problem } from './shape-check.js'

type Pool = Pick<SvcConfig['slots'], 'port_range_start' | 'port_range_end'>

/**
 * Why the pool of ports cannot be so; null when it can. A port that an engine is known by is never given to others; a pool
 * that did not hold it may not take it in, so that what the pool says is what slots get. Pure.
 */
export function poolProblem (next: Pool, previous: Pool | null, providers: LaidProviders): Problem | null {
  const holds = (pool: Pool, port: number): boolean => port >= pool.port_range_start && port <= pool.port_range_end
  for (const { title, reservedPorts = [] } of providers.list()) {
    const taken = reservedPorts.find(port => holds(next, port) && (previous === null || !holds(previous, port)))
    if (taken === undefined) continue
    const message = `must not contain ${taken}, the port of ${title}: end the pool below it or start it above it`
    return { path: ['slots', 'port_range_end'], message, unknown: false }
  }
  return null
}
