import type { Output } from '../terminal/output.js'
import { harmless } from '../terminal/text-width.js'
import type { AnswerPart } from './answer-events.js'

/** Writes an answer as it comes. Reasoning is shown to people only: what is piped on is the answer alone. */
export class AnswerPrinter {
  readonly #out: Output
  readonly #now: () => number
  readonly #startedAt: number
  #firstAt: number | null = null
  #parts = 0
  #tokens: number | null = null
  #reasoning = false
  #endsLine = true
  content = ''

  constructor (out: Output, now: () => number = () => performance.now()) {
    this.#out = out
    this.#now = now
    this.#startedAt = now()
  }

  async print (part: AnswerPart, signal: AbortSignal): Promise<void> {
    this.#tokens = part.tokens ?? this.#tokens
    if (part.content !== '' || part.reasoning !== '') {
      this.#firstAt ??= this.#now()
      this.#parts += 1
    }
    if (part.reasoning !== '' && this.#out.watched) {
      this.#reasoning = true
      await this.#write(this.#out.paint('dim', harmless(part.reasoning)), part.reasoning, signal)
    }
    if (part.content === '') return
    if (this.#reasoning) {
      this.#reasoning = false
      await this.#write('\n\n', '\n', signal)
    }
    this.content += part.content
    await this.#write(this.#out.watched ? harmless(part.content) : part.content, part.content, signal)
  }

  /** Ends the line that the answer left open. */
  close (): void {
    if (!this.#endsLine) this.#out.line()
    this.#endsLine = true
  }

  /** `12 tokens, 30.5 tokens/s, first after 0.4 s`; null without an answer. Parts stand for tokens where engines count none. */
  get summary (): string | null {
    if (this.#firstAt === null) return null
    const tokens = this.#tokens ?? this.#parts
    const seconds = (this.#now() - this.#firstAt) / 1000
    const speed = seconds > 0 && tokens > 1 ? [`${((tokens - 1) / seconds).toFixed(1)} tokens/s`] : []
    return [`${tokens} tokens`, ...speed, `first after ${((this.#firstAt - this.#startedAt) / 1000).toFixed(2)} s`].join(', ')
  }

  async #write (text: string, plain: string, signal: AbortSignal): Promise<void> {
    this.#endsLine = plain.endsWith('\n')
    await this.#out.write(text, signal)
  }
}
