import type { AgentCatalog, AgentDescriptor } from '../../contract/index.js'

/** The agents of plugins that are up. */
export class HostedAgents implements AgentCatalog {
  readonly #listeners = new Set<() => void>()
  #agents: readonly AgentDescriptor[] = []

  list (): readonly AgentDescriptor[] {
    return this.#agents
  }

  get (id: string): AgentDescriptor | undefined {
    return this.#agents.find(agent => agent.id === id)
  }

  onChange (listener: () => void): () => void {
    const own = (): void => listener()
    this.#listeners.add(own)
    return () => { this.#listeners.delete(own) }
  }

  /** Plugins have risen or fallen. */
  set (agents: readonly AgentDescriptor[]): void {
    if (agents.length === this.#agents.length && agents.every((agent, i) => agent === this.#agents[i])) return
    this.#agents = agents
    this.#listeners.forEach(listener => listener())
  }
}
