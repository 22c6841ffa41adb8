import type { AnswerPart } from './answer-part.js'
import { HeldReader } from './held-reader.js'
import { firstMark, openEnd } from './marks.js'

/** Characters of the head of a message. */
const LONGEST_HEAD = 512
const [START, CHANNEL, MESSAGE] = ['<|start|>', '<|channel|>', '<|message|>'] as const
/** What ends a message; the next one's head begins with the first two. */
const ends = [START, CHANNEL, '<|end|>', '<|call|>', '<|return|>']
const heads = [START, CHANNEL, MESSAGE, ' to=', 'to=']

/** The marks of Harmony, which are tokens of their own. */
export const channelMarks: readonly string[] = [...ends, MESSAGE, '<|constrain|>']

export interface ChannelOptions {
  /** Null: calls are read as text. */
  readonly tools: { readonly parallel: boolean } | null
  /** What the channel of thoughts is told as. */
  readonly thoughts: 'reasoning' | 'text'
}

/**
 * An answer in the messages of Harmony (gpt-oss): each has a head that names its channel and, for a call, its tool. One that
 * does not begin like that is text.
 */
export class ChannelReader extends HeldReader {
  readonly #options: ChannelOptions
  #mode: 'start' | 'head' | 'body' = 'start'
  #kind: 'text' | 'reasoning' | 'arguments' = 'text'
  /** Kinds of which something has been told: another message of one stands apart. */
  readonly #told = new Set<string>()
  #isFresh = true
  #calls = 0

  constructor (options: ChannelOptions) {
    super()
    this.#options = options
  }

  end (): AnswerPart[] {
    const held = this.held
    this.held = ''
    if (!this.over) {
      // of a head that is cut off nothing is the client's
      if (this.#mode === 'start' || (this.#mode === 'body' && held !== '')) this.#say(held)
      if (this.#mode === 'body') this.#close()
    }
    this.over = true
    return this.take()
  }

  protected step (text: string): string | null {
    if (this.#mode === 'body') return this.#body(text)
    if (this.#mode === 'head') return this.#head(text)
    if (heads.some(word => word.startsWith(text))) return this.hold(text)
    this.#mode = heads.some(word => text.startsWith(word)) ? 'head' : 'body'
    return text
  }

  #head (text: string): string | null {
    const end = text.indexOf(MESSAGE)
    if (end === -1 && text.length < LONGEST_HEAD + MESSAGE.length) return this.hold(text)
    this.#mode = 'body'
    this.#isFresh = true
    this.#kind = 'text'
    if (end === -1 || end > LONGEST_HEAD) {
      // read again it would be the beginning of the same head
      this.#say(text[0]!)
      return text.slice(1)
    }
    this.#begin(text.slice(0, end))
    return text.slice(end + MESSAGE.length)
  }

  #begin (head: string): void {
    const { tools, thoughts } = this.#options
    const [, channel] = /<\|channel\|>\s*([a-z]+)/.exec(head) ?? []
    const [, recipient] = /(?:^|[\s>])to=(?:functions\.)?([^\s<]+)/.exec(head) ?? []
    if (recipient === undefined || tools === null) {
      this.#kind = channel === 'analysis' ? thoughts : 'text'
      return
    }
    this.#kind = 'arguments'
    if (this.#calls > 0 && !tools.parallel) this.over = true
    else {
      this.#calls++
      this.add({ kind: 'call', name: recipient })
    }
  }

  #body (text: string): string | null {
    const mark = firstMark(text, ends)
    const open = mark === null ? openEnd(text, ends) : 0
    this.#say(text.slice(0, mark?.start ?? text.length - open))
    if (mark === null) return this.hold(text.slice(text.length - open))
    this.#close()
    this.#mode = 'head'
    const word = text.slice(mark.start, mark.end)
    return word === START || word === CHANNEL ? text.slice(mark.start) : text.slice(mark.end)
  }

  #close (): void {
    if (this.#kind !== 'arguments') return
    if (this.#isFresh) this.#say('{}')
    if (this.#options.tools?.parallel === false) this.over = true
  }

  #say (text: string): void {
    if (text === '') return
    const kind = this.#kind
    const isApart = this.#isFresh && kind !== 'arguments' && this.#told.has(kind)
    this.#isFresh = false
    this.#told.add(kind)
    this.add({ kind, text: isApart ? `\n\n${text}` : text })
  }
}
