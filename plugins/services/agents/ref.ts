import { createServiceRef, type AgentDescriptor, type AgentSetting } from 'svc-gateway/plugin'

export { agentError } from './errors.js'

/** Where an agent is run that is to be wired. */
export interface WiringPlace {
  /** The gateway as the agent reaches it, no slash at its end. */
  readonly gateway: string
  /** Absolute path of the folder that its files go to. */
  readonly folder: string
}

/** One run of an agent, as data. */
export interface AgentRun {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Text by path below the folder. */
  readonly files: Readonly<Record<string, string>>
  /** Arguments of runs that come before, with the same environment. */
  readonly prepare: ReadonlyArray<readonly string[]>
}

export interface AgentSettings {
  readonly settings: readonly AgentSetting[]
  readonly hints: readonly string[]
}

/** The agents that are known here, and how each is pointed at this gateway. */
export interface Agents {
  list (): readonly AgentDescriptor[]
  /** Throws `agent.unknown`. */
  get (id: string): AgentDescriptor
  /** Throws `agent.unknown`. */
  wiring (id: string, place: WiringPlace, signal: AbortSignal): Promise<AgentRun>
  /** What its own configuration has to say, and lines for its user. Throws `agent.unknown`. */
  settings (id: string, gateway: string, signal: AbortSignal): Promise<AgentSettings>
}

export const agentsRef = createServiceRef<Agents>('agents.catalog')
