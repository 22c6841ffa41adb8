import { z } from 'zod'
import type { EngineProvider } from '../../../contract/index.js'
import { LABEL_PORT, LABEL_PORTS, type EngineInspection } from '../../../contract/provider/engine-runtime.js'

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

/** Pure. */
export function portLabels (port: number, named: EnginePorts['named']): Readonly<Record<string, string>> {
  return { [LABEL_PORT]: String(port), ...(Object.keys(named).length === 0 ? {} : { [LABEL_PORTS]: JSON.stringify(named) }) }
}

const number = z.coerce.number().int().min(1).max(65_535)
const namedSchema = z.record(z.string(), number)

/** What an engine was started with; null for one that an older release started. Pure. */
export function labelledPorts (labels: EngineInspection['labels']): { readonly port: number, readonly ports: EnginePorts['named'] } | null {
  const port = number.safeParse(labels[LABEL_PORT]).data
  const ports = namedIn(labels[LABEL_PORTS] ?? '{}')
  return port === undefined || ports === null ? null : { port, ports }
}

function namedIn (label: string): EnginePorts['named'] | null {
  try {
    return namedSchema.safeParse(JSON.parse(label)).data ?? null
  } catch {
    return null
  }
}
