import { createServiceRef, type AgentDescriptor, type AgentSetting } from 'svc-gateway/plugin'
import type { AgentSkill } from './skills/skills.js'

export { agentError } from './errors.js'
export type { AgentSkill } from './skills/skills.js'

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

export const installForms = ['npm', 'python', 'container'] as const
export type InstallForm = typeof installForms[number]

/** In their order. `replace` takes away the agent that another one comes in place of. */
export const agentPhases = ['packages', 'replace', 'data', 'wiring', 'start', 'probe'] as const
export type AgentPhase = typeof agentPhases[number]

export const phaseStates = ['pending', 'running', 'done', 'skipped', 'failed'] as const

export const agentStates = ['planned', 'installing', 'installed', 'broken', 'removing'] as const

export interface PhaseStatus {
  readonly status: typeof phaseStates[number]
  readonly at: string
  readonly reason: string | null
  readonly details: Readonly<Record<string, unknown>>
}

/** An agent that the gateway brought. Times ISO 8601 UTC. */
export interface AgentStatus {
  readonly name: string
  readonly status: typeof agentStates[number]
  /** Of the work that is under way, or was the last. */
  readonly job: string | null
  readonly form: InstallForm
  /** What its descriptor, or an upgrade, asks for, the tag for a container; null where its plugin no longer describes it. */
  readonly wanted_version: string | null
  /** What was really installed. */
  readonly version: string | null
  readonly installed_at: string | null
  readonly completed_at: string | null
  readonly problem: string | null
  readonly phases: Readonly<Partial<Record<AgentPhase, PhaseStatus>>>
  readonly data_dir: string
  /** The file that says what it may do here, which need not be there. */
  readonly config_path: string
  /** Its program; null for a container, and before it is there. */
  readonly program: string | null
  /** Whether its server runs; null for an agent without one. */
  readonly unit_active: boolean | null
}

export interface ReprovisionOrder {
  readonly phase?: AgentPhase | undefined
  readonly repair?: boolean | undefined
}

export interface InstallOrder {
  /** Take away the agent that is installed. */
  readonly switch?: boolean | undefined
  readonly form?: InstallForm | undefined
  /** Nothing is brought: what is there of an earlier installation is used. */
  readonly offline?: boolean | undefined
  readonly skip?: readonly AgentPhase[] | undefined
  /** Only say what would be done. */
  readonly dryRun?: boolean | undefined
}

/** One run of an installed agent for one task. */
export interface Errand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Its own folder, which is where it runs unless it is told otherwise. */
  readonly folder: string
  /** To be asked once it has ended, or was not started: why it failed by its own account, null if it does not say so. */
  readonly problem: () => Promise<string | null>
}

/**
 * Agents that the gateway brings, one at a time. What it does goes on when the caller leaves and after a restart; how far it
 * is, the status tells. All but `list` throw `agent.unknown`.
 */
export interface AgentLifecycle {
  list (): readonly AgentStatus[]
  /** Throws `agent.not_installed`. */
  status (id: string): AgentStatus
  /**
   * Throws, before anything is done, `agent.already_installed`, `agent.busy`, `agent.cannot_install`, `agent.window_too_small`.
   * One that is installed is not installed again.
   */
  install (id: string, order: InstallOrder): Promise<AgentStatus>
  /** @param to another version than the descriptor's. Throws as `install`, and `agent.not_installed`. */
  upgrade (id: string, to?: string): Promise<AgentStatus>
  /** Does its phases again, or one of them; `repair` brings its packages anew. Throws as `upgrade`. */
  reprovision (id: string, order: ReprovisionOrder): Promise<AgentStatus>
  /** What is around it: data, wiring, server. Throws as `upgrade`. */
  bootstrap (id: string, order: Pick<InstallOrder, 'offline' | 'skip' | 'dryRun'>): Promise<AgentStatus>
  /**
   * Whether it was there. Throws `agent.busy`, and `agent.uninstall_incomplete`, after which the next order or gateway tries it
   * again.
   */
  uninstall (id: string): Promise<boolean>
  /** Wires it anew, starts its server again, and waits until it answers. Throws `agent.not_installed`, `agent.restart_failed`. */
  restart (id: string): Promise<AgentStatus>
  /** What the phases wrote, in their order. Throws `agent.not_installed`. */
  log (id: string): Promise<ReadonlyArray<{ readonly phase: AgentPhase, readonly lines: readonly string[] }>>
  /**
   * Where its server speaks JSON-RPC over a WebSocket, its token in it. Null for an agent that is not installed, does not run at
   * the moment, or speaks none. Never throws for an unknown one.
   * @param anew its files are written first
   */
  socket (id: string, anew: boolean): Promise<URL | null>
  /** Runs of it for one task each, wired anew. Null for one that can be given none now, by its descriptor or as it is. Quick. */
  errands (id: string): ((prompt: string) => Promise<Errand>) | null
  /** Told when one was brought, changed or taken away. Returns what unregisters the listener. */
  follow (listener: () => void): () => void
  /** The skills of all that are installed, at most 500 of each. Never rejects. */
  skills (): Promise<readonly AgentSkill[]>
  /** Resolves when no work on it is under way. */
  settled (id: string): Promise<void>
}

/** An agent that can be brought to this machine, with what a user wants to know first. */
export interface AgentOffer {
  readonly agent: AgentDescriptor
  /** Disk that it takes in the form that it would come in; null if unknown. */
  readonly bytes: number | null
  readonly installed: boolean
}

export interface AgentOffers {
  /** What could be installed as of a minute ago, and what is. Never rejects. */
  list (): Promise<readonly AgentOffer[]>
}

export const agentOffersRef = createServiceRef<AgentOffers>('agents.offers')

export const agentLifecycleRef = createServiceRef<AgentLifecycle>('agents.lifecycle')

export const agentsRef = createServiceRef<Agents>('agents.catalog')
