import { svcError } from 'svc-gateway/plugin'
import { DeltaFrame, NO_USAGE, Outbox, type AnswerWriter, type ChatEnd, type TextKind } from '../over-chat/ref.js'
import { callId, messageHead, stopOf, usageBlock } from './chat-answer.js'
import { HeldBlocks, type BlockKind } from './held-blocks.js'
import { ObjectEnd } from './object-end.js'

const PING = 'event: ping\ndata: {"type": "ping"}\n\n'

/** What no engine tells before the end. */
const UNTOLD_USAGE = JSON.stringify(usageBlock(NO_USAGE))
const openFor = { text: 'text', reasoning: 'thinking' } as const

/**
 * A streamed chat answer as the events of the Messages API, one block after the other: clients forget a block at its end. So what
 * an engine writes between the pieces of a call is held until its arguments are whole. Keeps nothing of what it has written.
 */
export class MessageEvents implements AnswerWriter {
  readonly #asked: string
  readonly #out = new Outbox()
  #blocks = 0
  #open: BlockKind | null = null
  /** Of the pieces of a text that is open. */
  #frame: DeltaFrame | null = null
  /** Of the arguments of the call that is open. */
  #args = new ObjectEnd()
  readonly #held = new HeldBlocks()
  /** Those that have begun, by the engine's number. */
  readonly #calls = new Set<number>()

  /** @param model as the client named it */
  constructor (model: string) {
    this.#asked = model
  }

  begin (model: string | null): void {
    const head = JSON.stringify(messageHead(model ?? this.#asked)).slice(0, -1)
    this.#event('message_start', `"message":${head},"content":[],"stop_reason":null,"stop_sequence":null,"usage":${UNTOLD_USAGE}}`)
    this.#out.write(PING)
  }

  text (piece: string): void {
    this.#piece('text', piece, () => '{"type":"text","text":""}')
  }

  reasoning (piece: string): void {
    this.#piece('thinking', piece, () => '{"type":"thinking","thinking":"","signature":""}')
  }

  json (kind: TextKind, bytes: Buffer, from: number, to: number): boolean {
    if (this.#open !== openFor[kind]) return false
    this.#frame ??= frameOf(this.#open, this.#blocks - 1)
    this.#out.bytes(this.#frame.event(0, bytes, from, to))
    return true
  }

  call (index: number, id: string | null, name: string | null, args: string): void {
    this.#piece(index, args, () => JSON.stringify({ type: 'tool_use', id: id ?? callId(), name: name ?? '', input: {} }))
  }

  logprobs (): void {}

  end (end: ChatEnd): void {
    for (let held = this.#held.take(); held !== undefined; held = this.#held.take()) this.#begin(held.kind, held.block, held.said)
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

  #piece (kind: BlockKind, piece: string, block: () => string): void {
    if (kind === this.#open) this.#say(kind, piece)
    else if (typeof kind === 'number' && this.#calls.has(kind)) return refuseMore(piece)
    else if (this.#isWaiting) return this.#held.add(kind, piece, block)
    else this.#begin(kind, block(), piece)
    while (!this.#isWaiting) {
      const held = this.#held.take()
      if (held === undefined) return
      this.#begin(held.kind, held.block, held.said)
    }
  }

  /** Whether a call is open whose arguments are not whole. */
  get #isWaiting (): boolean { return typeof this.#open === 'number' && !this.#args.isOver }

  #begin (kind: BlockKind, block: string, piece: string): void {
    this.#close()
    this.#open = kind
    this.#frame = null
    if (typeof kind === 'number') {
      this.#calls.add(kind)
      this.#args = new ObjectEnd()
    }
    this.#event('content_block_start', `"index":${this.#blocks++},"content_block":${block}`)
    this.#say(kind, piece)
  }

  #say (kind: BlockKind, piece: string): void {
    if (piece === '') return
    const text = JSON.stringify(piece)
    if (typeof kind !== 'number') return this.#delta(`{"type":"${kind}_delta","${kind}":${text}}`)
    this.#args.push(piece)
    this.#delta(`{"type":"input_json_delta","partial_json":${text}}`)
  }

  #close (): void {
    if (this.#open === null) return
    if (this.#open === 'thinking') this.#delta('{"type":"signature_delta","signature":""}')
    this.#event('content_block_stop', `"index":${this.#blocks - 1}`)
    this.#open = null
  }

  /** Of the block that is open. */
  #delta (delta: string): void {
    this.#event('content_block_delta', `"index":${this.#blocks - 1},"delta":${delta}`)
  }

  #event (type: string, members: string): void {
    this.#out.write(eventOf(type, members))
  }
}

/** What stands behind whole arguments would break them; only space does not. */
function refuseMore (piece: string): void {
  if (piece.trim() !== '') throw svcError('dispatch.upstream_failed', 'the engine sent more arguments for a tool call that was already complete')
}

function eventOf (type: string, members: string): string {
  return `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`
}

function frameOf (kind: 'thinking' | 'text', index: number): DeltaFrame {
  const [before, behind] = eventOf('content_block_delta', `"index":${index},"delta":{"type":"${kind}_delta","${kind}":"\0"}`).split('\0')
  return new DeltaFrame(before!, null, behind!)
}
