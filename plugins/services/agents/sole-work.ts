import { agentError } from './errors.js'

/** Work on agents, one at a time of whatever agent. */
export class SoleWork {
  #under: { readonly id: string, readonly done: Promise<void> } | null = null

  /** Throws `agent.busy`. */
  requireFree (id: string): void {
    if (this.#under === null) return
    throw agentError('agent.busy',
      `${this.#under.id} is being changed: try it again when \`svc agent status ${this.#under.id}\` says that it is done`, { details: { agent: id, under_way: this.#under.id } })
  }

  /** Nothing may be awaited between `requireFree` and this. */
  begin (id: string, work: () => Promise<void>): Promise<void> {
    const running = work()
    const under = { id, done: running.then(() => undefined, () => undefined) }
    this.#under = under
    void under.done.then(() => { if (this.#under === under) this.#under = null })
    return running
  }

  /** After what is under way. */
  after (id: string, work: () => Promise<void>): Promise<void> {
    const before = this.#under?.done
    return this.begin(id, async () => {
      await before
      await work()
    })
  }

  /**
   * Resolves when no work is under way. Never rejects.
   * @param id only that on this agent
   */
  async settled (id?: string): Promise<void> {
    while (this.#under !== null && (id === undefined || this.#under.id === id)) await this.#under.done
  }
}
