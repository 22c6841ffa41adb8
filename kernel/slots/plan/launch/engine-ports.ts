import type { EngineProvider } from '../../../contract/index.js'

/** What an engine listens on. */
export interface EnginePorts {
  readonly port: number
  /** Its further ports (`EngineProvider.ports`). */
  readonly named: Readonly<Record<string, number>>
}

export const NO_PORTS: EnginePorts = { port: 0, named: {} }

/** A number for each further port; zero for one that was not chosen: such a launch is only looked at. */
export function allPorts ({ ports = [] }: EngineProvider, { named }: EnginePorts): Readonly<Record<string, number>> {
  return Object.fromEntries(ports.map(name => [name, named[name] ?? 0]))
}
