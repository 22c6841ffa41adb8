import type { Clock, Timer } from 'svc-gateway/plugin'
import { agentError, type AgentLifecycle } from '../../services/agents/ref.js'
import { AgentLink } from './agent-link.js'

interface Chat {
  readonly link: Promise<AgentLink>
  users: number
  idle: Timer | null
}

const MOST_CHATS = 64
/** A page that loads anew finds its sessions again. */
const IDLE_MS = 60_000

/** One link for each browser and agent, as long as it is used and a minute more. */
export class Chats {
  readonly #lifecycle: Pick<AgentLifecycle, 'socket' | 'status'>
  readonly #clock: Clock
  readonly #chats = new Map<string, Chat>()

  constructor (lifecycle: Pick<AgentLifecycle, 'socket' | 'status'>, clock: Clock) {
    this.#lifecycle = lifecycle
    this.#clock = clock
  }

  /**
   * Runs work on the link, which stays at least as long. Throws `agent.unknown`, `agent.not_installed`, `agent.chat_unavailable`,
   * `agent.chats_full`, `agent.unreachable`.
   */
  async with<T> (agent: string, browser: string, work: (link: AgentLink) => Promise<T>): Promise<T> {
    const key = `${agent}/${browser}`
    const chat = this.#chats.get(key) ?? this.#begin(agent, key)
    chat.users++
    chat.idle?.cancel()
    chat.idle = null
    try {
      return await work(await chat.link)
    } finally {
      chat.users--
      if (chat.users === 0) chat.idle = this.#clock.setTimer(IDLE_MS, () => this.#drop(key, chat))
    }
  }

  close (): void {
    for (const [key, chat] of this.#chats) this.#drop(key, chat)
  }

  #begin (agent: string, key: string): Chat {
    this.#lifecycle.status(agent)
    if (this.#chats.size >= MOST_CHATS) {
      throw agentError('agent.chats_full', `${MOST_CHATS} chats with agents are open; one that is not used ends after a minute`)
    }
    const chat: Chat = { link: this.#open(agent), users: 0, idle: null }
    this.#chats.set(key, chat)
    chat.link.then(
      link => link.closed.addEventListener('abort', () => this.#drop(key, chat), { once: true }),
      () => this.#drop(key, chat)
    )
    return chat
  }

  async #open (agent: string): Promise<AgentLink> {
    const url = await this.#lifecycle.socket(agent, false)
    if (url !== null) return await AgentLink.open(url, this.#clock)
    throw agentError('agent.chat_unavailable', `${agent} has no server that can be reached: \`svc agent status ${agent}\` shows whether it is running`,
      { details: { agent } })
  }

  #drop (key: string, chat: Chat): void {
    chat.idle?.cancel()
    if (this.#chats.get(key) === chat) this.#chats.delete(key)
    chat.link.then(link => link.close(), () => undefined)
  }
}
