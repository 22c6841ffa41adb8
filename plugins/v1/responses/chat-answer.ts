import { svcError, type SvcError } from 'svc-gateway/plugin'
import { DeltaFrame, NO_USAGE, Outbox, SaidText, type AnswerWriter, type ChatEnd, type ChatUsage, type TextKind } from '../over-chat/ref.js'
import { CallItem } from './call-item.js'
import type { ChatRequest } from './chat-request.js'
import { newId } from './ids.js'
import { sealed } from './sealed.js'

/** What is kept of an answer at most, in characters: its last events repeat it, and no real one comes near. */
const MOST_KEPT = 32 * 1024 * 1024

/** An event up to its number. */
const headOf = (type: string): string => `event: ${type}\ndata: {"type":"${type}","sequence_number":`
const TEXT_DELTA = headOf('response.output_text.delta')
const REFUSAL_DELTA = headOf('response.refusal.delta')
const REASONING_DELTA = headOf('response.reasoning_text.delta')
const SUMMARY_DELTA = headOf('response.reasoning_summary_text.delta')
const NO_LOGPROBS = ',"logprobs":[]'
const EVENT_END = '}\n\n'

/** What of a text differs by its kind: an item of its own, or a message of either sort. */
const kinds = {
  message: { prefix: 'msg', head: TEXT_DELTA, behind: NO_LOGPROBS, done: 'output_text', key: 'text', part: 'content' },
  refusal: { prefix: 'msg', head: REFUSAL_DELTA, behind: '', done: 'refusal', key: 'refusal', part: 'content' },
  reasoning: { prefix: 'rs', head: REASONING_DELTA, behind: '', done: 'reasoning_text', key: 'text', part: 'content' },
  // thoughts of a client that asks for a summary of them: the model that could make one has just thought them
  summary: { prefix: 'rs', head: SUMMARY_DELTA, behind: '', done: 'reasoning_summary_text', key: 'text', part: 'summary' }
} as const

interface TextItem {
  readonly kind: keyof typeof kinds
  readonly id: string
  readonly index: number
  /** What stands in its deltas between their number and their text. */
  readonly delta: string
  /** Null where nothing is streamed. */
  readonly frame: DeltaFrame | null
  readonly said: SaidText
  logprobs: unknown[]
}

export interface ResponseHead {
  readonly model: string
  /** Epoch seconds. */
  readonly createdAt: number
}

/**
 * A chat answer as a response of the Responses API, whole or as its events. What was said is kept until the end, because the
 * last events repeat it.
 */
export class ResponseWriter implements AnswerWriter {
  readonly id = newId('resp')
  readonly #request: ChatRequest
  readonly #echo: string
  readonly #createdAt: number
  #model: string
  readonly #out = new Outbox()
  #sequence = 0
  #begun = false
  /** Finished items, each in its place. */
  readonly #output: string[] = []
  #items = 0
  #open: TextItem | null = null
  #logprobs: unknown[] = []
  #kept = 0
  readonly #calls = new Map<number, CallItem>()
  #end: ChatEnd | null = null

  constructor (request: ChatRequest, { model, createdAt }: ResponseHead) {
    this.#request = request
    this.#echo = JSON.stringify(request.echo).slice(1, -1)
    this.#model = model
    this.#createdAt = createdAt
  }

  begin (model: string | null): void {
    this.#begun = true
    this.#model = model ?? this.#model
    const response = `"response":${this.#response('in_progress')}`
    this.#event('response.created', response)
    this.#event('response.in_progress', response)
  }

  text (piece: string): void {
    this.#keep(piece.length)
    const item = this.#openFor('message')
    item.said.add(piece)
    const rows = this.#logprobs
    if (rows.length === 0) return this.#numbered(TEXT_DELTA, `${item.delta}${JSON.stringify(piece)}${NO_LOGPROBS}`)
    this.#logprobs = []
    for (const row of rows) item.logprobs.push(row)
    this.#numbered(TEXT_DELTA, `${item.delta}${JSON.stringify(piece)},"logprobs":${JSON.stringify(rows)}`)
  }

  reasoning (piece: string): void {
    this.#keep(piece.length)
    const kind = this.#kindOf('reasoning')
    const item = this.#openFor(kind)
    item.said.add(piece)
    this.#numbered(kinds[kind].head, `${item.delta}${JSON.stringify(piece)}`)
  }

  refusal (piece: string): void {
    this.#keep(piece.length)
    const item = this.#openFor('refusal')
    item.said.add(piece)
    this.#numbered(REFUSAL_DELTA, `${item.delta}${JSON.stringify(piece)}`)
  }

  json (kind: TextKind, bytes: Buffer, from: number, to: number): boolean {
    const item = this.#open
    if (item === null || item.kind !== this.#kindOf(kind) || item.frame === null || this.#logprobs.length > 0) return false
    this.#keep(to - from)
    item.said.addJson(bytes, from, to)
    this.#out.bytes(item.frame.event(this.#sequence++, bytes, from, to))
    return true
  }

  logprobs (rows: readonly unknown[]): void {
    this.#keep(JSON.stringify(rows).length)
    for (const row of rows) this.#logprobs.push(row)
  }

  /** Calls stay open up to the end: engines may write several at once. */
  call (number: number, callId: string | null, name: string | null, args: string): void {
    let call = this.#calls.get(number)
    if (call === undefined) {
      this.#close('completed')
      const tool = this.#request.tools.meant(name ?? '')
      call = new CallItem(this.#items++, callId ?? newId('call'), tool)
      this.#calls.set(number, call)
      this.#event('response.output_item.added', `"output_index":${call.index},"item":${call.json('in_progress')}`)
    }
    if (args === '') return
    this.#keep(args.length)
    const delta = call.add(args)
    if (delta !== null) this.#event(delta.event, delta.members)
  }

  end (end: ChatEnd): void {
    this.#end = end
    const status = this.#status()
    this.#close(status)
    for (const call of this.#calls.values()) {
      for (const { event, members } of call.ending()) this.#event(event, members)
      this.#done(call.index, call.json(status))
    }
    this.#event(`response.${status}`, `"response":${this.#response(status)}`)
  }

  take (): Buffer | null {
    return this.#out.take()
  }

  whole (): object {
    return JSON.parse(this.#response(this.#status())) as object
  }

  fail ({ message }: SvcError): boolean {
    if (!this.#begun) return false
    const error = JSON.stringify({ code: 'server_error', message })
    this.#event('response.failed', `"response":${this.#response('failed', error)}`)
    return true
  }

  #kindOf (kind: TextKind): 'message' | 'reasoning' | 'summary' {
    return kind === 'text' ? 'message' : this.#request.summarizes ? 'summary' : 'reasoning'
  }

  #status (): 'completed' | 'incomplete' {
    return this.#end?.reason === 'length' || this.#end?.reason === 'content_filter' ? 'incomplete' : 'completed'
  }

  /** Throws when an engine does not come to an end. */
  #keep (length: number): void {
    this.#kept += length
    if (this.#kept > MOST_KEPT) throw svcError('dispatch.upstream_failed', `the answer of the engine is longer than ${MOST_KEPT} characters`)
  }

  #openFor (kind: TextItem['kind']): TextItem {
    if (this.#open?.kind === kind) return this.#open
    this.#close('completed')
    const { prefix, head, behind } = kinds[kind]
    const [id, index] = [newId(prefix), this.#items++]
    const delta = `,${partAt(id, index, kind)},"delta":`
    const frame = this.#request.stream ? new DeltaFrame(head, `${delta}"`, `"${behind}${EVENT_END}`) : null
    const item: TextItem = { kind, id, index, delta, frame, said: new SaidText(), logprobs: [] }
    this.#open = item
    this.#event('response.output_item.added', `"output_index":${item.index},"item":${textItem(item, 'in_progress', false, false)}`)
    this.#event(partEvent(kind, 'added'), `${partAt(item.id, item.index, kind)},"part":${partOf(item)}`)
    return item
  }

  #close (status: string): void {
    const item = this.#open
    if (item === null) return
    this.#open = null
    const { done, key } = kinds[item.kind]
    const rows = item.kind === 'message' ? `,"logprobs":${JSON.stringify(item.logprobs)}` : ''
    const place = partAt(item.id, item.index, item.kind)
    this.#event(`response.${done}.done`, `${place},"${key}":${JSON.stringify(item.said.text)}${rows}`)
    this.#event(partEvent(item.kind, 'done'), `${place},"part":${partOf(item)}`)
    this.#done(item.index, textItem(item, status, true, this.#request.sealsThoughts))
  }

  #done (index: number, item: string): void {
    this.#output[index] = item
    this.#event('response.output_item.done', `"output_index":${index},"item":${item}`)
  }

  #response (status: string, error = 'null'): string {
    const { reason, usage } = this.#end ?? { reason: 'stop', usage: NO_USAGE }
    const details = status === 'incomplete' ? `{"reason":"${reason === 'length' ? 'max_output_tokens' : 'content_filter'}"}` : 'null'
    return `{"id":"${this.id}","object":"response","created_at":${this.#createdAt},"status":"${status}","background":false,` +
      `"error":${error},"incomplete_details":${details},${this.#echo},"model":${JSON.stringify(this.#model)},` +
      `"output":[${this.#output.filter(item => item !== undefined).join(',')}],` +
      `"usage":${this.#end === null ? 'null' : JSON.stringify(usageOf(usage))}}`
  }

  #event (type: string, members: string): void {
    this.#numbered(headOf(type), `,${members}`)
  }

  #numbered (head: string, members: string): void {
    if (this.#request.stream) this.#out.write(`${head}${this.#sequence++}${members}${EVENT_END}`)
  }
}

function partAt (id: string, index: number, kind: TextItem['kind']): string {
  return `"item_id":"${id}","output_index":${index},"${kinds[kind].part}_index":0`
}

function partEvent (kind: TextItem['kind'], what: 'added' | 'done'): string {
  return `response.${kind === 'summary' ? 'reasoning_summary_part' : 'content_part'}.${what}`
}

function partOf ({ kind, said: { text }, logprobs }: TextItem): string {
  const { done, key } = kinds[kind]
  return JSON.stringify({ type: kind === 'summary' ? 'summary_text' : done, [key]: text, ...kind === 'message' ? { annotations: [], logprobs } : {} })
}

function textItem (item: TextItem, status: string, isWhole: boolean, isSealed: boolean): string {
  const { kind, id, said: { text } } = item
  const content = isWhole ? `[${partOf(item)}]` : '[]'
  if (kind === 'message' || kind === 'refusal') return `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":${content}}`
  const secret = isSealed ? `,"encrypted_content":"${sealed(text)}"` : ''
  const [summary, thoughts] = kind === 'summary' ? [content, '[]'] : ['[]', content]
  return `{"id":"${id}","type":"reasoning","status":"${status}","summary":${summary},"content":${thoughts}${secret}}`
}

/** What an answer cost, in the words of the API. */
export function usageOf ({ input, output, cached, reasoning }: ChatUsage): object {
  return {
    input_tokens: input, input_tokens_details: { cached_tokens: cached },
    output_tokens: output, output_tokens_details: { reasoning_tokens: reasoning }, total_tokens: input + output
  }
}
