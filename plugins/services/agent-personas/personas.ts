import { stringify } from 'smol-toml'
import { isSvcError, messageOf, type AgentCatalog, type ConfigFile, type ConfigService } from 'svc-gateway/plugin'
import { agentError } from '../agents/ref.js'
import { personaError } from './errors.js'
import type { AgentPersonas, FindRunning, Persona, PersonaPatch, Reload } from './ref.js'
import { PERSONA_ID_PATTERN, type PersonasFile } from './schema.js'
import { seedsOf } from './seeds.js'

export interface PersonaBookDeps {
  readonly agents: AgentCatalog
  readonly file: ConfigFile<PersonasFile>
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly reload: (url: string, persona: string, signal: AbortSignal) => Promise<Reload>
  readonly requireReloadable: AgentPersonas['requireReloadable']
}

/** Built-in personas, and what personas.toml says of them and of others. */
export class PersonaBook implements AgentPersonas {
  readonly #deps: PersonaBookDeps
  readonly requireReloadable: AgentPersonas['requireReloadable']
  #running: FindRunning = () => Promise.resolve(null)

  constructor (deps: PersonaBookDeps) {
    this.#deps = deps
    this.requireReloadable = deps.requireReloadable
  }

  requireAgent (agent: string): void {
    const { agents, file, config } = this.#deps
    if (agents.get(agent) !== undefined) return
    const others = [...config.snapshot.agents.files.keys(), ...Object.keys(file.value.agents)]
    if (others.includes(agent)) return
    const known = [...new Set([...agents.list().map(({ id }) => id), ...others])].toSorted()
    throw agentError('agent.unknown', `there is no agent '${agent}'; there are ${known.join(', ') || 'none'}`, { details: { agent, known } })
  }

  active (agent: string): string {
    const chosen = this.#written('active', agent)
    // one that was taken out of the file by hand is no longer there to be active
    return chosen !== undefined && this.#all(agent).has(chosen) ? chosen : agent
  }

  list (agent: string): readonly Persona[] {
    this.requireAgent(agent)
    return [...this.#all(agent).values()]
  }

  get (agent: string, id: string): Persona {
    this.requireAgent(agent)
    const all = this.#all(agent)
    const persona = all.get(id)
    if (persona !== undefined) return persona
    throw personaError('persona.not_found', `agent '${agent}' has no persona '${id}'; it has ${[...all.keys()].join(', ')}`, {
      details: { agent, persona: id, known: [...all.keys()] }
    })
  }

  toml (agent: string, id: string): string {
    const { id: _, ...persona } = this.get(agent, id)
    const written = this.#written('agents', agent)?.[id]
    return stringify({ agents: { [agent]: { [id]: written ?? persona } } })
  }

  async write (agent: string, id: string, patch: PersonaPatch): Promise<Persona> {
    this.requireAgent(agent)
    if (!PERSONA_ID_PATTERN.test(id)) {
      throw personaError('persona.invalid', `'${id}' cannot be a persona: its name must have lower case letters, digits and -, at most 32`, { param: 'pid' })
    }
    await this.#patch({ agents: { [agent]: { [id]: patch } } })
    return this.get(agent, id)
  }

  async remove (agent: string, id: string): Promise<void> {
    this.get(agent, id)
    const isSeed = seedsOf(agent).has(id)
    if (this.#written('agents', agent)?.[id] === undefined) {
      throw personaError('persona.seed_stays', `persona '${id}' of agent '${agent}' is built in and was never changed`)
    }
    if (!isSeed && this.active(agent) === id) {
      throw personaError('persona.active_stays', `persona '${id}' is active; activate another one first`)
    }
    await this.#patch({ agents: { [agent]: { [id]: null } } })
  }

  async activate (agent: string, id: string): Promise<string> {
    this.get(agent, id)
    const before = this.active(agent)
    if (this.#written('active', agent) !== id) await this.#patch({ active: { [agent]: id } })
    return before
  }

  async reload (agent: string, id: string, url: string | undefined, signal: AbortSignal): Promise<Reload> {
    try {
      const target = url ?? await this.#running(agent)
      return target === null ? { reloaded: false, reload_error: null } : await this.#deps.reload(target, id, signal)
    } catch (error) {
      // what the caller gave is the caller's to mend
      if (url !== undefined) throw error
      return { reloaded: false, reload_error: messageOf(error).slice(0, 300) }
    }
  }

  findRunning (find: FindRunning): () => void {
    this.#running = find
    const none = (): Promise<null> => Promise.resolve(null)
    return () => {
      if (this.#running === find) this.#running = none
    }
  }

  async #patch (patch: Parameters<ConfigFile<PersonasFile>['patch']>[0]): Promise<void> {
    try {
      await this.#deps.file.patch(patch)
    } catch (error) {
      if (!isSvcError(error) || error.code !== 'config.write_failed') throw error
      throw personaError('persona.write_failed', error.message, { cause: error, details: error.details })
    }
  }

  #all (agent: string): ReadonlyMap<string, Persona> {
    const written = this.#written('agents', agent)
    const seeds = seedsOf(agent)
    if (written === undefined) return seeds
    const all = new Map(seeds)
    for (const [id, patch] of Object.entries(written)) all.set(id, filled(seeds.get(id) ?? blank(agent, id), patch))
    return all
  }

  #written<K extends keyof PersonasFile> (part: K, agent: string): PersonasFile[K][string] | undefined {
    const table = this.#deps.file.value[part] as Record<string, PersonasFile[K][string]>
    return Object.hasOwn(table, agent) ? table[agent] : undefined
  }
}

function blank (agent: string, id: string): Persona {
  const seed = seedsOf(agent).get(agent)!
  return { ...seed, id, display_name: id, summary: '' }
}

function filled (persona: Persona, patch: PersonaPatch): Persona {
  const given = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined))
  const approval = Object.fromEntries(Object.entries(patch.approval ?? {}).filter(([, value]) => value !== undefined))
  return { ...persona, ...given, approval: { ...persona.approval, ...approval } }
}
