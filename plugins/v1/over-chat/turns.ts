import { plainOr } from './chat-message.js'

type Message = Readonly<Record<string, unknown>>

/** What a result says in the place of pictures and files that are in it. */
const FOLLOWS = '[what else it answered follows]'

/**
 * Messages of a chat, in which only text can be the result of a tool: what else results hold is shown in the user's words, behind
 * all results that follow each other. Between two of them it would end the answer to the calls, which engines refuse.
 */
export class Turns {
  readonly list: Message[] = []
  #shown: object[] = []

  put (message: Message): void {
    const { role, content } = message
    if (this.#shown.length === 0 || (role !== 'user' && role !== 'assistant')) this.list.push(message)
    else if (role === 'user') this.#show(partsOf(content))
    else {
      this.end()
      this.list.push(message)
    }
  }

  /** Parts to show once the results before and behind them are told. */
  show (parts: readonly object[]): void {
    for (const part of parts) this.#shown.push(part)
  }

  /** The result of a call. @param said texts of it @param others what else is in it */
  result (id: string, said: string, others: readonly object[]): void {
    this.show(others)
    this.list.push({ role: 'tool', tool_call_id: id, content: others.length === 0 ? said : said === '' ? FOLLOWS : `${said}\n${FOLLOWS}` })
  }

  /** Shows what has not been shown. */
  end (): void {
    if (this.#shown.length > 0) this.#show([])
  }

  #show (behind: readonly object[]): void {
    const content = plainOr([...this.#shown, ...behind])
    this.#shown = []
    this.list.push({ role: 'user', content })
  }
}

function partsOf (content: unknown): readonly object[] {
  if (Array.isArray(content)) return content as readonly object[]
  return typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : []
}
