import type { AnswerPart, AnswerReader } from './answer-part.js'
import { CallList } from './call-list.js'
import { ChannelReader } from './channel-reader.js'
import type { CallSyntax } from './call-syntax.js'
import { HeldReader } from './held-reader.js'
import { firstMark, openEnd } from './marks.js'
import type { ToolFamily } from './tool-family.js'
import type { ToolTypes } from './tool-types.js'

/** White space in what may be a call and has not turned out to be one. */
const MOST_BLANK = 1024

/** Characters that are held: white space before what may be a call, and the start of an answer that may be one. */
const MOST_HELD = 256

const OPEN_THOUGHT = '<think>'
const CLOSE_THOUGHT = '</think>'

export interface ReaderOptions {
  /** `open`: the prompt has begun the model's thoughts. `maybe`: the answer may begin with them. */
  readonly thoughts: 'none' | 'maybe' | 'open'
  /** Null: the answer is not read for calls. */
  readonly tools: {
    readonly family: ToolFamily
    readonly names: ReadonlySet<string>
    readonly types: ToolTypes
    readonly parallel: boolean
  } | null
}

export interface AnswerWish extends ReaderOptions {
  readonly family: ToolFamily
  /** What thoughts are told as. */
  readonly thoughtsAs: 'reasoning' | 'text'
}

/** Reads answers as the model's family writes them. */
export function answerReader ({ family, thoughtsAs, ...options }: AnswerWish): AnswerReader {
  return family.channels === true ? new ChannelReader({ tools: options.tools, thoughts: thoughtsAs }) : new ChatReader(options)
}

/** What the first characters of an answer make of it where calls have no mark: an object or a list of objects. */
const bareCalls: ReadonlyArray<readonly [pattern: RegExp, closing: string]> = [
  [/^\s*\{\s*"tool_calls"\s*:\s*\[\s*(?=\{)/, ']}'],
  [/^\s*\{\s*"tool_call"\s*:\s*(?=\{)/, '}'],
  [/^\s*\[\s*(?=\{\s*"(?:name|type|id|arguments|parameters)"\s*:)/, ']'],
  [/^\s*(?=\{\s*"(?:name|type|id|arguments|parameters)"\s*:)/, '']
]
const mayBeBare = /^\s*(?:\[\s*)?(?:\{\s*(?:"\w*(?:"\s*(?::\s*(?:\[\s*)?)?)?)?)?$/

/** Tells thoughts, text and calls apart while the answer is written; holds back only what may still be the start of something. */
export class ChatReader extends HeldReader {
  readonly #tools: ReaderOptions['tools']
  #mode: 'may-think' | 'thought' | 'start' | 'text' | 'call'
  #syntax: CallSyntax | null = null
  /** What the call that is read was made of, as long as it may turn out to be none. */
  #raw: string | null = null
  /** White space at the end of it. */
  #blank = 0
  #calls = 0
  /** Line breaks around thoughts belong to neither. */
  #fresh = false

  constructor ({ thoughts, tools }: ReaderOptions) {
    super()
    this.#tools = tools
    this.#mode = thoughts === 'open' ? 'thought' : thoughts === 'maybe' ? 'may-think' : 'start'
    this.#fresh = thoughts === 'open'
  }

  end (): AnswerPart[] {
    const [held, mode] = [this.held, this.#mode]
    this.held = ''
    if (mode === 'thought') this.#tell({ kind: 'reasoning', text: held.replace(/\n+$/, '') })
    else if (mode === 'call') this.#tell({ kind: 'text', text: this.#raw ?? '' })
    else if (this.#calls === 0 || held.trim() !== '') this.#tell({ kind: 'text', text: held })
    this.over = true
    return this.take()
  }

  protected step (text: string): string | null {
    switch (this.#mode) {
      case 'may-think': return this.#mayThink(text)
      case 'thought': return this.#thought(text)
      case 'start': return this.#start(text)
      case 'text': return this.#text(text)
      case 'call': return this.#call(text)
    }
  }

  #mayThink (text: string): string | null {
    const start = text.trimStart()
    if (start === '' || OPEN_THOUGHT.startsWith(start)) {
      if (text.length <= MOST_HELD) return this.hold(text)
    }
    this.#fresh = start.startsWith(OPEN_THOUGHT)
    this.#mode = this.#fresh ? 'thought' : 'start'
    return this.#fresh ? start.slice(OPEN_THOUGHT.length) : text
  }

  #thought (text: string): string | null {
    const mark = firstMark(text, [CLOSE_THOUGHT])
    const open = mark === null ? openEnd(text, [CLOSE_THOUGHT]) : 0
    const all = text.slice(0, mark?.start ?? text.length - open)
    const shown = this.#fresh ? all.replace(/^\n+/, '') : all
    const kept = /\n*$/.exec(shown.slice(-MOST_HELD))![0]
    const told = shown.slice(0, shown.length - kept.length)
    if (told !== '') {
      this.#fresh = false
      this.#tell({ kind: 'reasoning', text: told })
    }
    if (mark === null) return this.hold(this.#fresh ? text.slice(text.length - open) : kept + text.slice(text.length - open))
    this.#mode = 'start'
    this.#fresh = true
    return text.slice(mark.end)
  }

  #start (text: string): string | null {
    const shown = this.#fresh ? text.replace(/^\n+/, '') : text
    if (shown === '') return null
    if (this.#tools?.family.bare === true) {
      for (const [pattern, closing] of bareCalls) {
        const match = pattern.exec(shown)
        if (match !== null) return this.#begin(new CallList(this.#tools.names, closing), match[0], shown.slice(match[0].length))
      }
      if (shown.length <= MOST_HELD && mayBeBare.test(shown)) return this.hold(shown)
    }
    this.#mode = 'text'
    return shown
  }

  #text (text: string): string | null {
    if (this.#tools === null) {
      this.#tell({ kind: 'text', text })
      return null
    }
    const { family, types } = this.#tools
    const mark = firstMark(text, family.marks)
    const before = text.slice(0, mark?.start ?? text.length - openEnd(text, family.marks))
    // what stands between an answer's text and its calls, or between two calls, is not the client's
    const kept = /\s*$/.exec(before.slice(-MOST_HELD))![0]
    this.#tell({ kind: 'text', text: before.slice(0, before.length - kept.length) })
    if (mark === null) return this.hold(kept + text.slice(before.length))
    const word = text.slice(mark.start, mark.end)
    // a tag that has the name of the tool in it is read once more, as what it is
    const own = word.endsWith('=') || family.keepsMark === true ? '' : word
    return this.#begin(family.bare ? new CallList(null, '') : family.syntax(types), kept + own, text.slice(mark.start + own.length))
  }

  #begin (syntax: CallSyntax, raw: string, rest: string): string {
    this.#mode = 'call'
    this.#syntax = syntax
    this.#raw = raw
    this.#blank = 0
    return rest
  }

  #call (text: string): string | null {
    const blank = this.#raw === null ? 0 : /^\s*/.exec(text)![0].length
    if (this.#blank + blank > MOST_BLANK) return this.#giveUp(text, MOST_BLANK - this.#blank)
    const calls = this.#calls
    const at = this.#syntax!.read(text, 0, part => this.#tell(part))
    if (this.#calls > calls || this.over) this.#raw = null
    else if (this.#raw !== null) {
      this.#raw += text.slice(0, at)
      this.#blank = at === blank ? this.#blank + at : /\s*$/.exec(text.slice(0, at))![0].length
    }
    if (this.#syntax!.state === 'reading') return null
    const raw = this.#raw
    this.#mode = 'text'
    this.#syntax = null
    this.#raw = null
    if (raw !== null) this.#tell({ kind: 'text', text: raw })
    else if (this.#tools?.parallel === false) this.over = true
    return text.slice(at)
  }

  /** White space without end is the start of no call. */
  #giveUp (text: string, at: number): string {
    this.#mode = 'text'
    this.#syntax = null
    this.#tell({ kind: 'text', text: this.#raw! + text.slice(0, at) })
    this.#raw = null
    return text.slice(at)
  }

  #tell (part: AnswerPart): void {
    if (this.over) return
    if (part.kind === 'call') {
      if (this.#calls > 0 && this.#tools?.parallel === false) {
        this.over = true
        return
      }
      this.#calls++
    } else if (part.text === '') return
    this.add(part)
  }
}
