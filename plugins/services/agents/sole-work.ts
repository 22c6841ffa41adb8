import { agentError } from './errors.js'

interface Piece {
  readonly id: string
  /** Over in a moment: others wait for it instead of being refused. */
  readonly isBrief: boolean
  readonly done: Promise<void>
}

/** Work on agents, one piece at a time of whatever agent, in the order that it came. */
export class SoleWork {
  /** What is under way, and what waits behind it. */
  readonly #line: Piece[] = []

  /** Throws `agent.busy` while other work than brief one is under way or waits. */
  async begin<T> (id: string, work: () => Promise<T>): Promise<T> {
    const first = this.#line.find(({ isBrief }) => !isBrief)
    if (first !== undefined) {
      throw agentError('agent.busy',
        `${first.id} is being changed: try again when \`svc agent status ${first.id}\` shows that it is done`, { details: { agent: id, under_way: first.id } })
    }
    return await this.#enter(id, false, work)
  }

  /** After all that is under way. */
  async after<T> (id: string, work: () => Promise<T>): Promise<T> {
    return await this.#enter(id, false, work)
  }

  /** After all that is under way; no order is refused for it. */
  async briefly<T> (id: string, work: () => Promise<T>): Promise<T> {
    return await this.#enter(id, true, work)
  }

  /** Whether there is any that is not over. */
  isUnderWay (id: string): boolean {
    return this.#line.some(piece => piece.id === id)
  }

  /**
   * Resolves when no work is under way. Never rejects.
   * @param id only that on this agent
   */
  async settled (id?: string): Promise<void> {
    for (;;) {
      const piece = this.#line.find(each => id === undefined || each.id === id)
      if (piece === undefined) return
      await piece.done
    }
  }

  async #enter<T> (id: string, isBrief: boolean, work: () => Promise<T>): Promise<T> {
    const before = this.#line.at(-1)?.done
    const running = before === undefined ? work() : before.then(work)
    const over = (): void => { this.#line.splice(this.#line.indexOf(piece), 1) }
    const piece: Piece = { id, isBrief, done: running.then(over, over) }
    this.#line.push(piece)
    return await running
  }
}
