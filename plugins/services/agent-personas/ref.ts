import { createServiceRef } from 'svc-gateway/plugin'
import type { approvalPolicies, PersonaPatch, tones } from './schema.js'

export { approvalPolicies, PERSONA_ID_PATTERN, personaPatchSchema, tones, type PersonaPatch } from './schema.js'
export { personaError } from './errors.js'

/** Who an agent is while it is active. */
export interface Persona {
  readonly id: string
  readonly display_name: string
  readonly summary: string
  readonly tone: typeof tones[number]
  readonly system_prompt: string
  /** Names of tools, in which `*` stands for anything. */
  readonly tools_allowed: readonly string[]
  /** A dataset of the memory. */
  readonly memory_namespace: string
  readonly preferred_upstream: string
  /** Empty for what the agent is configured with. */
  readonly preferred_model: string
  readonly approval: {
    readonly default_policy: typeof approvalPolicies[number]
    readonly auto_approve: readonly string[]
    readonly require_approval: readonly string[]
  }
}

/** What telling a running agent of its new persona came to. Null where it worked, or was not asked for. */
export interface Reload {
  readonly reloaded: boolean
  readonly reload_error: string | null
}

export type FindRunning = (agent: string) => Promise<string | null>

/**
 * The personas of agents: built-in ones, and those of personas.toml. Agents are those that plugins bring, those with a file in
 * `agents/`, and those that stand in personas.toml; others throw `agent.unknown`.
 */
export interface AgentPersonas {
  /** Throws `agent.unknown` for a name that is no agent's. */
  requireAgent (agent: string): void
  /** The persona that is active; of an agent that is not known the one that it would have. Quick, never throws. */
  active (agent: string): string
  /** Built-in ones first. */
  list (agent: string): readonly Persona[]
  /** Throws `persona.not_found`. */
  get (agent: string, id: string): Persona
  /** Its table in personas.toml as TOML; a built-in one that was not changed, as it would be written. */
  toml (agent: string, id: string): string
  /** Creates it, or changes what the patch names. Throws `persona.invalid`, `persona.write_failed`. */
  write (agent: string, id: string, patch: PersonaPatch): Promise<Persona>
  /** A built-in one is what it was at first then. Throws `persona.seed_stays`, `persona.active_stays`, `persona.write_failed`. */
  remove (agent: string, id: string): Promise<void>
  /** Resolves with what was active before. Throws `persona.not_found`, `persona.write_failed`. */
  activate (agent: string, id: string): Promise<string>
  /** Throws `persona.reload_url_refused` for an address that may not be told. */
  requireReloadable (url: string): void
  /**
   * Tells a running agent, over its JSON-RPC socket: a session is made in it and its personality set. Never rejects but with
   * `persona.reload_url_refused`.
   * @param url of the socket; undefined for an agent that the gateway runs, and nothing is told where it runs none
   */
  reload (agent: string, id: string, url: string | undefined, signal: AbortSignal): Promise<Reload>
  /**
   * Says where running agents can be told; the last one counts. Returns what takes it back.
   * @param find the address of an agent's JSON-RPC socket, on this machine; null for one that does not run
   */
  findRunning (find: FindRunning): () => void
}

export const agentPersonasRef = createServiceRef<AgentPersonas>('agent-personas.personas')
