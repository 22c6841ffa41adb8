/** What an engine listens on. */
export interface EnginePorts {
  readonly port: number
  /** Its further ports (`EngineProvider.ports`). */
  readonly named: Readonly<Record<string, number>>
}

export const NO_PORTS: EnginePorts = { port: 0, named: {} }
