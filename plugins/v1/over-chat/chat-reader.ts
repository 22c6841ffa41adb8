import { svcError } from 'svc-gateway/plugin'
import { EventReader, type EventListener } from './event-reader.js'
import { countOf, isObject, textOr, type Json } from './json.js'
import type { OnlyText, TextKind } from './like-last.js'

/** What an answer cost, in tokens. `input` has `cached` in it, `output` has `reasoning`. */
export interface ChatUsage {
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly reasoning: number
}

export const NO_USAGE: ChatUsage = { input: 0, output: 0, cached: 0, reasoning: 0 }

/** Why an answer ended, in the words of chat completions; anything else counts as `stop`. */
export interface ChatEnd {
  readonly reason: string
  /** The stop string that it met, from engines that tell. */
  readonly stop: string | null
  readonly usage: ChatUsage
  /** Milliseconds that the engine worked at the prompt and at the answer; null from one that does not tell. */
  readonly times: ChatTimes | null
}

export interface ChatTimes {
  readonly promptMs: number
  readonly answerMs: number
}

/** Is told an answer in the order of its pieces; a whole one comes as one piece of each kind. */
export interface ChatListener {
  begin (model: string | null): void
  text (piece: string): void
  reasoning (piece: string): void
  /** Why the model does not answer; told as text where this is not here. */
  refusal? (piece: string): void
  /**
   * A piece of text or reasoning as JSON has it, without its quotes: UTF-8 in `bytes[from..to)`, of a buffer that may be used
   * again. False where it is to be told as text.
   */
  json? (kind: TextKind, bytes: Buffer, from: number, to: number): boolean
  /**
   * A piece of a call.
   * @param index tells the calls of an answer apart
   * @param id null where it was told before, or never is
   */
  call (index: number, id: string | null, name: string | null, args: string): void
  /** Of the tokens of the text that follows. */
  logprobs (rows: readonly unknown[]): void
  end (end: ChatEnd): void
}

/** No real answer comes near; each one costs memory until its end. */
const MOST_CALLS = 4096

/** Reads a chat answer, streamed or whole, for a listener. Of several choices the first. */
export class ChatReader implements EventListener {
  readonly #listener: ChatListener
  readonly #events = new EventReader(this, onlyText)
  #begun = false
  #hasTold = false
  #reason: string | null = null
  #stop: string | null = null
  #usage = NO_USAGE
  #times: ChatTimes | null = null
  #isDone = false
  /** Of an engine that does not number its calls. */
  #lastCall = -1
  readonly #calls = new Set<number>()

  constructor (listener: ChatListener) {
    this.#listener = listener
  }

  /** The answer is whole; what comes after it says nothing. */
  get isDone (): boolean { return this.#isDone }

  /** A piece of text, of reasoning or of a call was told. */
  get hasTold (): boolean { return this.#hasTold }

  /**
   * Bytes of an event stream, however they are cut. Throws what the engine tells in them, and for what is no chunk.
   * @param early called once the first piece is told, where these bytes have more
   */
  push (bytes: Buffer, early: () => void = nothing): void {
    this.#events.push(bytes, early)
  }

  /** The data of one event; what it says, or null for what is no chunk of the answer. Throws as `push` does. */
  event (data: string): Json | null {
    if (this.#isDone) return null
    if (data.trim() === '[DONE]') {
      this.#reason ??= 'stop'
      this.end()
      return null
    }
    const chunk = parsed(data)
    this.#piece(chunk, 'delta')
    return chunk
  }

  /** A text of the answer, in an event that says nothing else. */
  json (kind: TextKind, bytes: Buffer, from: number, to: number): void {
    if (this.#isDone) return
    const listener = this.#listener
    if (listener.json?.(kind, bytes, from, to) !== true) listener[kind](JSON.parse(`"${bytes.toString('utf8', from, to)}"`) as string)
  }

  /** A whole answer. Throws for what is none. */
  whole (body: string): void {
    const completion = parsed(body)
    if (!Array.isArray(completion.choices)) throw notChat()
    this.#piece(completion, 'message')
    this.#reason ??= 'stop'
    this.end()
  }

  /** There is no more. Throws when the answer cannot be complete. */
  end (): void {
    if (this.#isDone) return
    if (this.#reason === null || !this.#begun) throw svcError('dispatch.upstream_failed', 'the answer of the engine ended early')
    this.#listener.end({ reason: this.#reason, stop: this.#stop, usage: this.#usage, times: this.#times })
    this.#isDone = true
  }

  #piece (chunk: Json, key: 'delta' | 'message'): void {
    if (chunk.error != null) throw toldError(chunk.error)
    if (!this.#begun) {
      this.#begun = true
      this.#listener.begin(typeof chunk.model === 'string' && chunk.model !== '' ? chunk.model : null)
    }
    if (isObject(chunk.timings)) this.#times = timesOf(chunk.timings)
    if (isObject(chunk.usage)) this.#usage = usageOf(chunk.usage)
    const choices: readonly unknown[] = Array.isArray(chunk.choices) ? chunk.choices : []
    for (const choice of choices) if (isObject(choice) && (choice.index ?? 0) === 0) this.#choice(choice, key)
  }

  #choice (choice: Json, key: 'delta' | 'message'): void {
    const said = choice[key]
    const rows = isObject(choice.logprobs) ? choice.logprobs.content : null
    if (Array.isArray(rows) && !isThought(said)) this.#listener.logprobs(rows)
    if (isObject(said)) this.#said(said)
    // a completion of the older kind
    else if (typeof choice.text === 'string') this.#said({ content: choice.text })
    if (typeof choice.finish_reason === 'string') this.#reason = choice.finish_reason
    if (typeof choice.stop_reason === 'string') this.#stop = choice.stop_reason
  }

  #text (kind: TextKind, piece: string): void {
    this.#hasTold = true
    this.#listener[kind](piece)
  }

  #said ({ reasoning_content: thought, reasoning: other, content, refusal, tool_calls: calls }: Json): void {
    const listener = this.#listener
    const reasoning = thought ?? other
    if (typeof reasoning === 'string' && reasoning !== '') this.#text('reasoning', reasoning)
    if (typeof content === 'string' && content !== '') this.#text('text', content)
    if (typeof refusal === 'string' && refusal !== '') {
      if (listener.refusal === undefined) listener.text(refusal)
      else listener.refusal(refusal)
    }
    if (!Array.isArray(calls)) return
    for (const call of calls) {
      if (!isObject(call)) continue
      this.#hasTold = true
      const id = typeof call.id === 'string' && call.id !== '' ? call.id : null
      if (typeof call.index === 'number') this.#lastCall = call.index
      else if (id !== null || this.#lastCall < 0) this.#lastCall++
      if (this.#calls.add(this.#lastCall).size > MOST_CALLS) {
        throw svcError('dispatch.upstream_failed', `the answer of the engine has more than ${MOST_CALLS} calls`)
      }
      const { name, arguments: args } = isObject(call.function) ? call.function : {} as Json
      listener.call(
        this.#lastCall,
        id,
        typeof name === 'string' && name !== '' ? name : null,
        typeof args === 'string' ? args : isObject(args) ? JSON.stringify(args) : ''
      )
    }
  }
}

function nothing (): void {}

/** The text of a chunk in which there is nothing else to be told; else null. */
function onlyText ({ choices, usage, error, timings }: Json): OnlyText | null {
  if (!Array.isArray(choices) || choices.length !== 1 || isObject(usage) || isObject(timings) || error != null) return null
  const [choice] = choices as readonly unknown[]
  if (!isObject(choice) || (choice.index ?? 0) !== 0) return null
  const { delta, finish_reason: reason, logprobs, stop_reason: stop } = choice
  if (reason != null || logprobs != null || stop != null || !isObject(delta)) return null
  const [said, more] = Object.entries(delta).filter(([key, value]) => key !== 'role' && value !== null)
  if (said === undefined || more !== undefined) return null
  const [key, text] = said
  if (typeof text !== 'string' || text === '') return null
  if (key === 'content') return { key, kind: 'text', text }
  return key === 'reasoning_content' || key === 'reasoning' ? { key, kind: 'reasoning', text } : null
}

function timesOf ({ prompt_ms: prompt, predicted_ms: answer }: Json): ChatTimes | null {
  return typeof prompt === 'number' && typeof answer === 'number' ? { promptMs: Math.max(prompt, 0), answerMs: Math.max(answer, 0) } : null
}

/** Reasoning and no text. */
function isThought (said: unknown): boolean {
  return isObject(said) && textOr(said.content, '') === '' && textOr(said.reasoning_content ?? said.reasoning, '') !== ''
}

function usageOf (
  { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: read, completion_tokens_details: made }: Json
): ChatUsage {
  const cached = countOf(isObject(read) ? read.cached_tokens : 0)
  return {
    input: Math.max(countOf(input), cached),
    output: countOf(output),
    cached,
    reasoning: countOf(isObject(made) ? made.reasoning_tokens : 0)
  }
}

function parsed (text: string): Json {
  try {
    const value = JSON.parse(text) as unknown
    if (isObject(value)) return value
  } catch {
    // told below
  }
  throw notChat()
}

function notChat (): Error {
  return svcError('dispatch.upstream_failed', 'the engine answered with something that is not a chat completion')
}

function toldError (error: unknown): Error {
  const message = isObject(error) ? error.message : error
  return svcError('dispatch.upstream_failed', typeof message === 'string' ? message.slice(0, 2000) : 'the engine failed while it answered')
}
