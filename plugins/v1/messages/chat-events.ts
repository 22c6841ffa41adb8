import { DeltaFrame, NO_USAGE, Outbox, type AnswerWriter, type ChatEnd, type TextKind } from '../over-chat/ref.js'
import { callId, messageHead, stopOf, usageBlock } from './chat-answer.js'

const PING = 'event: ping\ndata: {"type": "ping"}\n\n'

const openFor = { text: 'text', reasoning: 'thinking' } as const

/** A streamed chat answer as the events of the Messages API, one block after the other. Keeps nothing of what it has written. */
export class MessageEvents implements AnswerWriter {
  readonly #asked: string
  readonly #out = new Outbox()
  #blocks = 0
  /** What the block that is open holds: a kind of text, or the number of a call. */
  #open: 'thinking' | 'text' | number | null = null
  /** Of the pieces of a text that is open. */
  #frame: DeltaFrame | null = null
  /** The blocks of calls, by the engine's number. */
  readonly #calls = new Map<number, number>()

  /** @param model as the client named it */
  constructor (model: string) {
    this.#asked = model
  }

  begin (model: string | null): void {
    const head = messageHead(model ?? this.#asked)
    const message = { ...head, content: [], stop_reason: null, stop_sequence: null, usage: usageBlock(NO_USAGE) }
    this.#event('message_start', `"message":${JSON.stringify(message)}`)
    this.#out.write(PING)
  }

  text (piece: string): void {
    if (this.#open !== 'text') this.#start('text', '{"type":"text","text":""}')
    this.#delta(this.#blocks - 1, `{"type":"text_delta","text":${JSON.stringify(piece)}}`)
  }

  reasoning (piece: string): void {
    if (this.#open !== 'thinking') this.#start('thinking', '{"type":"thinking","thinking":"","signature":""}')
    this.#delta(this.#blocks - 1, `{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}`)
  }

  json (kind: TextKind, bytes: Buffer, from: number, to: number): boolean {
    if (this.#open !== openFor[kind]) return false
    this.#frame ??= frameOf(this.#open, this.#blocks - 1)
    this.#out.bytes(this.#frame.event(0, bytes, from, to))
    return true
  }

  call (index: number, id: string | null, name: string | null, args: string): void {
    let block = this.#calls.get(index)
    if (block === undefined) {
      block = this.#blocks
      this.#calls.set(index, block)
      this.#start(index, JSON.stringify({ type: 'tool_use', id: id ?? callId(), name: name ?? '', input: {} }))
    }
    // pieces of a call whose block is closed belong to it all the same: engines that write several calls at once are rare
    if (args !== '') this.#delta(block, `{"type":"input_json_delta","partial_json":${JSON.stringify(args)}}`)
  }

  logprobs (): void {}

  end (end: ChatEnd): void {
    this.#close()
    const delta = JSON.stringify(stopOf(end, this.#calls.size > 0))
    this.#event('message_delta', `"delta":${delta},"usage":${JSON.stringify(usageBlock(end.usage))}`)
    this.#out.write('event: message_stop\ndata: {"type":"message_stop"}\n\n')
  }

  take (): Buffer | null {
    return this.#out.take()
  }

  whole (): object {
    throw new Error('a stream is not kept')
  }

  /** The error event of the dialect says it. */
  fail (): boolean {
    return false
  }

  #start (kind: 'thinking' | 'text' | number, block: string): void {
    this.#close()
    this.#open = kind
    this.#frame = null
    this.#event('content_block_start', `"index":${this.#blocks++},"content_block":${block}`)
  }

  #close (): void {
    if (this.#open === null) return
    const index = this.#blocks - 1
    if (this.#open === 'thinking') this.#delta(index, '{"type":"signature_delta","signature":""}')
    this.#event('content_block_stop', `"index":${index}`)
    this.#open = null
  }

  #delta (index: number, delta: string): void {
    this.#event('content_block_delta', `"index":${index},"delta":${delta}`)
  }

  #event (type: string, members: string): void {
    this.#out.write(eventOf(type, members))
  }
}

function eventOf (type: string, members: string): string {
  return `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`
}

function frameOf (kind: 'thinking' | 'text', index: number): DeltaFrame {
  const [before, behind] = eventOf('content_block_delta', `"index":${index},"delta":{"type":"${kind}_delta","${kind}":"\0"}`).split('\0')
  return new DeltaFrame(before!, null, behind!)
}
