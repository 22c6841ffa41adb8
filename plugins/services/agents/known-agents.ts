import { randomBytes } from 'node:crypto'
import type { AgentCatalog, AgentDescriptor, AgentWorld, ConfigService, DispatchService, SlotService } from 'svc-gateway/plugin'
import type { AgentPersonas } from '../agent-personas/ref.js'
import { agentError } from './errors.js'
import type { AgentRun, Agents, AgentSettings, WiringPlace } from './ref.js'

export interface KnownAgentsDeps {
  readonly catalog: AgentCatalog
  readonly dispatch: Pick<DispatchService, 'model' | 'target'>
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly slots: Pick<SlotService, 'outlook'>
  readonly personas: Pick<AgentPersonas, 'list' | 'active'>
  /** The model that agents are told to ask for. */
  readonly model: string
}

/** The agents of plugins that are up, wired to this gateway. */
export class KnownAgents implements Agents {
  readonly #deps: KnownAgentsDeps

  constructor (deps: KnownAgentsDeps) {
    this.#deps = deps
  }

  list (): readonly AgentDescriptor[] {
    return this.#deps.catalog.list()
  }

  find (id: string): AgentDescriptor | undefined {
    return this.#deps.catalog.get(id)
  }

  /** The model that agents are told to ask for. */
  get model (): string { return this.#deps.model }

  get (id: string): AgentDescriptor {
    const agent = this.find(id)
    if (agent !== undefined) return agent
    const known = this.list().map(each => each.id)
    throw agentError('agent.unknown', `there is no agent '${id}'; there are ${known.join(', ') || 'none'}`, { details: { agent: id, known } })
  }

  async wiring (id: string, { gateway, folder }: WiringPlace, signal: AbortSignal): Promise<AgentRun> {
    const agent = this.get(id)
    const world = await this.world(agent, { gateway, folder, secret: randomBytes(24).toString('hex') }, signal)
    return runOf(agent, world)
  }

  async settings (id: string, gateway: string, signal: AbortSignal): Promise<AgentSettings> {
    const agent = this.get(id)
    const world = await this.world(agent, { gateway, folder: '', secret: '' }, signal)
    return { settings: agent.settings?.(world) ?? [], hints: agent.hints?.(world) ?? [] }
  }

  async world (
    { id, server }: AgentDescriptor, { gateway, folder, secret }: WiringPlace & { readonly secret: string }, signal: AbortSignal
  ): Promise<AgentWorld> {
    const { model, personas } = this.#deps
    return {
      agent: id, model, gateway, dataDir: folder, secret, host: '127.0.0.1', port: server?.port ?? 0,
      contextLength: await this.window(signal),
      personas: personas.list(id).map(({ id: persona, summary, system_prompt: systemPrompt, tone }) =>
        ({ id: persona, summary, systemPrompt, tone: tone === 'neutral' ? null : tone })),
      persona: personas.active(id)
    }
  }

  /** Tokens that the model of agents holds; null if unknown, as without a slot. */
  async window (signal: AbortSignal): Promise<number | null> {
    const { dispatch, model } = this.#deps
    const target = dispatch.target(model, 'chat')
    // a slot is not listed until it is loaded, and its window is known before
    if (target?.slot != null) return this.#windowOf(target.slot)
    const row = await dispatch.model(model, signal).catch(() => null)
    const length = row?.context_length
    return typeof length === 'number' && length > 0 ? length : null
  }

  #windowOf (slot: string): number | null {
    const { config, slots } = this.#deps
    try {
      return slots.outlook(slot).contextSize
    } catch {
      // it cannot be launched as it is, which is told elsewhere; what its file says counts once it can
      return config.snapshot.slots.get(slot)?.model.context_size ?? null
    }
  }
}

export function runOf (agent: AgentDescriptor, world: AgentWorld): AgentRun {
  const { env = {}, files = {}, args = [], prepare = [] } = agent.wiring(world)
  return { program: agent.program, env, files, args, prepare }
}
