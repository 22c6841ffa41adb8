import type { ApiClient } from '../client/client.js'
import type { Output } from '../terminal/output.js'
import { streamAnswer, wholeAnswer } from './answer-events.js'
import { AnswerPrinter } from './answer-printer.js'

export interface ChatSettings {
  readonly model: string
  readonly system?: string
  readonly maxTokens?: number
  readonly temperature?: number
  readonly stream: boolean
  readonly json: boolean
  readonly verbose: boolean
}

interface Message { readonly role: 'system' | 'user' | 'assistant', readonly content: string }

/** A conversation. What was said stays part of it, also an answer that was cut short. */
export class ChatSession {
  readonly #client: ApiClient
  readonly #out: Output
  readonly #settings: ChatSettings
  readonly #messages: Message[]

  constructor (client: ApiClient, out: Output, settings: ChatSettings) {
    this.#client = client
    this.#out = out
    this.#settings = settings
    this.#messages = settings.system === undefined ? [] : [{ role: 'system', content: settings.system }]
  }

  /** Asks and prints the answer. Rejects with the signal's reason when it is cancelled. */
  async ask (prompt: string, signal: AbortSignal): Promise<void> {
    const question: Message = { role: 'user', content: prompt }
    const printer = new AnswerPrinter(this.#out)
    try {
      await this.#answer([...this.#messages, question], printer, signal)
    } finally {
      printer.close()
      if (printer.content !== '') this.#messages.push(question, { role: 'assistant', content: printer.content })
      if (this.#settings.verbose && printer.summary !== null) this.#out.note(printer.summary)
    }
  }

  async #answer (messages: readonly Message[], printer: AnswerPrinter, signal: AbortSignal): Promise<void> {
    const { model, maxTokens, temperature, stream, json, verbose } = this.#settings
    const body = { model, messages, max_tokens: maxTokens, temperature }
    if (!stream) {
      const answer = await wholeAnswer(this.#client, body, signal)
      if (json) this.#out.json(answer.raw)
      else await printer.print(answer, signal)
      return
    }
    const counted = verbose ? { ...body, stream_options: { include_usage: true } } : body
    for await (const part of streamAnswer(this.#client, counted, signal)) {
      if (json) await this.#out.write(`${JSON.stringify(part.raw)}\n`, signal)
      else await printer.print(part, signal)
    }
  }
}
