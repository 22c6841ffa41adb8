import type { Clock } from 'svc-gateway/plugin'
import { isObject, Outbox, WholeCalls, type AnswerWriter, type ChatEnd, type TextKind } from '../../../v1/over-chat/ref.js'
import { isoTime, LineFrame } from './line-frame.js'

/** What `/api/chat` and `/api/generate` tell each in its own place. */
export interface AnswerForm {
  text (piece: string): object
  thought (piece: string): object
  calls (calls: readonly object[]): object
  whole (text: string, thought: string, calls: readonly object[]): object
  /** Of the last line of a stream. */
  readonly nothing: object
}

export const chatForm: AnswerForm = {
  text: content => ({ message: { role: 'assistant', content } }),
  thought: thinking => ({ message: { role: 'assistant', content: '', thinking } }),
  calls: calls => ({ message: { role: 'assistant', content: '', tool_calls: calls } }),
  whole: (content, thinking, calls) => ({
    message: { role: 'assistant', content, ...thinking === '' ? {} : { thinking }, ...calls.length === 0 ? {} : { tool_calls: calls } }
  }),
  nothing: { message: { role: 'assistant', content: '' } }
}

export const generateForm: AnswerForm = {
  text: response => ({ response }),
  thought: thinking => ({ response: '', thinking }),
  calls: () => ({ response: '' }),
  whole: (response, thinking) => ({ response, ...thinking === '' ? {} : { thinking } }),
  nothing: { response: '' }
}

/** Stands for a text until it is known. */
const PLACE = 'the text'

export interface Answered {
  /** As the client named it. */
  readonly model: string
  readonly form: AnswerForm
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** When the request came, by the monotonic clock. */
  readonly startedAt: number
  /** The slot was not up when the request came. */
  readonly isCold: boolean
}

/** A chat answer in the words of Ollama: one object when it is whole, else a line for each piece. */
export class OllamaAnswer implements AnswerWriter {
  readonly #answered: Answered
  readonly #isStream: boolean
  readonly #out = new Outbox()
  /** Of each line, up to its time. */
  readonly #lineHead: string
  readonly #frames: Partial<Record<TextKind, LineFrame>> = {}
  #text = ''
  #thought = ''
  #rows: unknown[] = []
  readonly #calls = new WholeCalls()
  #firstAt: number | null = null
  #end: ChatEnd | null = null

  constructor (answered: Answered, isStream: boolean) {
    this.#answered = answered
    this.#isStream = isStream
    this.#lineHead = `{"model":${JSON.stringify(answered.model)},"created_at":"`
  }

  begin (): void {}

  text (piece: string): void {
    this.#heard()
    if (this.#isStream) this.#line({ ...this.#answered.form.text(piece), done: false, ...this.#takeRows() })
    else this.#text += piece
  }

  reasoning (piece: string): void {
    this.#heard()
    if (this.#isStream) this.#line({ ...this.#answered.form.thought(piece), done: false })
    else this.#thought += piece
  }

  json (kind: TextKind, bytes: Buffer, from: number, to: number): boolean {
    if (!this.#isStream || this.#rows.length > 0) return false
    this.#heard()
    this.#frames[kind] ??= this.#frame(kind)
    this.#out.bytes(this.#frames[kind].line(timeOf(this.#answered), bytes, from, to))
    return true
  }

  call (index: number, id: string | null, name: string | null, args: string): void {
    this.#heard()
    this.#calls.add(index, id, name, args)
  }

  logprobs (rows: readonly unknown[]): void {
    for (const row of rows) this.#rows.push(logprobRow(row))
  }

  end (end: ChatEnd): void {
    this.#end = end
    if (!this.#isStream) return
    const { form } = this.#answered
    const calls = this.#madeCalls()
    if (calls.length > 0) this.#line({ ...form.calls(calls), done: false })
    this.#line({ ...form.nothing, ...this.#takeRows(), ...this.#ending() })
  }

  take (): Buffer | null {
    return this.#out.take()
  }

  whole (): object {
    const calls = this.#madeCalls()
    const said = this.#answered.form.whole(this.#text, this.#thought, calls)
    return { ...this.#head(), ...said, ...this.#takeRows(), ...this.#ending() }
  }

  /** The dialect says it. */
  fail (): boolean {
    return false
  }

  #heard (): void {
    this.#firstAt ??= this.#answered.clock.monotonic()
  }

  #head (): object {
    return answerHead(this.#answered)
  }

  #line (fields: object): void {
    this.#out.write(`${this.#lineHead}${timeOf(this.#answered)}",${JSON.stringify(fields).slice(1)}\n`)
  }

  #frame (kind: TextKind): LineFrame {
    const { form } = this.#answered
    const time = timeOf(this.#answered)
    const said = kind === 'text' ? form.text(PLACE) : form.thought(PLACE)
    const rest = JSON.stringify({ ...said, done: false }).slice(1)
    const at = rest.indexOf(JSON.stringify(PLACE)) + 1
    return new LineFrame(this.#lineHead, `",${rest.slice(0, at)}`, `${rest.slice(at + PLACE.length)}\n`, time)
  }

  #takeRows (): object {
    if (this.#rows.length === 0) return {}
    const logprobs = this.#rows
    this.#rows = []
    return { logprobs }
  }

  #madeCalls (): object[] {
    return this.#calls.made().map(({ id, name, args }, index) =>
      ({ ...id === null ? {} : { id }, function: { index, name, arguments: args } }))
  }

  /** Durations in nanoseconds. */
  #ending (): object {
    const { clock, startedAt, isCold } = this.#answered
    const { reason, usage, times } = this.#end!
    const endedAt = clock.monotonic()
    const firstMs = (this.#firstAt ?? endedAt) - startedAt
    // what an engine does not tell is what passed before its first word, and after it
    const promptMs = times?.promptMs ?? (isCold ? 0 : firstMs)
    return {
      done: true,
      done_reason: reason === 'length' ? 'length' : 'stop',
      total_duration: ns(endedAt - startedAt),
      load_duration: ns(isCold ? Math.max(firstMs - promptMs, 0) : 0),
      prompt_eval_count: usage.input,
      prompt_eval_duration: ns(promptMs),
      eval_count: usage.output,
      eval_duration: ns(times?.answerMs ?? endedAt - startedAt - firstMs)
    }
  }
}

/** What an answer to a request that asks nothing says: the model was loaded, or unloaded. */
export function emptyAnswer (answered: Answered, reason: 'load' | 'unload'): object {
  return { ...answerHead(answered), ...answered.form.nothing, done: true, done_reason: reason }
}

function answerHead (answered: Answered): object {
  return { model: answered.model, created_at: timeOf(answered) }
}

function timeOf ({ clock }: Answered): string {
  return isoTime(clock.now())
}

export function ns (ms: number): number {
  return Math.round(ms * 1e6)
}

function logprobRow (row: unknown): unknown {
  if (!isObject(row)) return row
  const { token, logprob, bytes, top_logprobs: top } = row
  return { token, logprob, bytes, ...Array.isArray(top) && top.length > 0 ? { top_logprobs: top } : {} }
}
