import { randomUUID } from 'node:crypto'
import type { AgentEvent } from './coalesce.js'

interface Question {
  readonly kind: 'approval' | 'clarify'
  readonly id: string
  readonly event: AgentEvent
  /** Characters of the event. */
  readonly size: number
}

const MOST_QUESTIONS = 256
const MOST_SIZE = 16 * 1024 * 1024
/** Tools that run, of all sessions; with more it is not known which question is void. */
const MOST_TOOLS = 1_000
const LONGEST_IDS = 1_000
/** Ends a turn, and with it all that the agent has asked in it. */
const ENDS: ReadonlySet<string> = new Set(['message.complete', 'error'])

/**
 * What an agent waits to be told. Approvals come without an id and are answered in their order: each gets an id here, so that an
 * answer is for the call that was shown and for no other.
 */
export class OpenQuestions {
  #open: readonly Question[] = []
  /** Ids of tools that run, by session. */
  readonly #tools = new Map<string | null, Set<string>>()

  /** More than are kept. None is dropped: an answer to the next one in a session would be given to the one that was dropped. */
  get isFull (): boolean {
    return this.#open.length > MOST_QUESTIONS || this.#open.reduce((sum, { size }) => sum + size, 0) > MOST_SIZE
  }

  /** For those who come later. */
  get events (): readonly AgentEvent[] {
    return this.#open.map(({ event }) => event)
  }

  /** The event as it is shown. */
  take (event: AgentEvent): AgentEvent {
    if (ENDS.has(event.type)) this.#open = this.#open.filter(({ event: asked }) => asked.session_id !== event.session_id)
    this.#follow(event)
    if (event.type === 'approval.request') {
      const id = randomUUID()
      const shown = { ...event, payload: { ...event.payload, id } }
      this.#add('approval', id, shown)
      return shown
    }
    const { request_id: id } = event.payload
    if (event.type === 'clarify.request' && typeof id === 'string') this.#add('clarify', id, event)
    return event
  }

  /** The approval to be answered next in its session; undefined for another one, and for one that is over. */
  approval (id: string): AgentEvent | undefined {
    const asked = this.#open.find(question => question.kind === 'approval' && question.id === id)
    const first = this.#open.find(({ kind, event }) => kind === 'approval' && event.session_id === asked?.event.session_id)
    return asked === first ? asked?.event : undefined
  }

  answered (id: string): void {
    this.#open = this.#open.filter(question => question.id !== id)
  }

  /**
   * A tool that waits for an approval is one that runs. An agent that waits no longer goes on without a word of it, and the
   * oldest question is the one that it has dropped: an answer to the next one is for the next one then.
   */
  #follow ({ type, session_id: session, payload: { tool_id: tool } }: AgentEvent): void {
    if (ENDS.has(type)) this.#tools.delete(session)
    if (typeof tool !== 'string' || tool.length + (session?.length ?? 0) > LONGEST_IDS) return
    const running = this.#tools.get(session) ?? new Set()
    if (type === 'tool.start') {
      const all = [...this.#tools.values()].reduce((sum, { size }) => sum + size, 0)
      if (all >= MOST_TOOLS) return this.#tools.clear()
      this.#tools.set(session, running.add(tool))
    }
    if (type !== 'tool.complete' || !running.delete(tool)) return
    if (running.size === 0) this.#tools.delete(session)
    const waiting = this.#open.filter(({ kind, event }) => kind === 'approval' && event.session_id === session)
    const dropped = new Set(waiting.slice(0, Math.max(0, waiting.length - running.size)))
    if (dropped.size > 0) this.#open = this.#open.filter(question => !dropped.has(question))
  }

  #add (kind: Question['kind'], id: string, event: AgentEvent): void {
    this.#open = [...this.#open, { kind, id, event, size: JSON.stringify(event).length }]
  }
}
