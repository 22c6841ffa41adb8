import { randomUUID } from 'node:crypto'
import { argumentsOf, type AnswerWriter, type ChatEnd, type ChatUsage } from '../over-chat/ref.js'

const stopReasons: Readonly<Record<string, string>> = {
  stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', function_call: 'tool_use', content_filter: 'refusal'
}

/** What both forms of an answer have. */
export function messageHead (model: string): object {
  return { id: `msg_${randomUUID().replaceAll('-', '')}`, type: 'message', role: 'assistant', model }
}

export function usageBlock ({ input, output, cached }: ChatUsage): object {
  return { input_tokens: input - cached, cache_creation_input_tokens: 0, cache_read_input_tokens: cached, output_tokens: output }
}

export function stopOf (
  { reason, stop }: ChatEnd, hasCalls: boolean
): { readonly stop_reason: string, readonly stop_sequence: string | null } {
  if (stop !== null && reason === 'stop' && !hasCalls) return { stop_reason: 'stop_sequence', stop_sequence: stop }
  // some engines say `stop` behind calls too
  return { stop_reason: hasCalls && reason === 'stop' ? 'tool_use' : stopReasons[reason] ?? 'end_turn', stop_sequence: null }
}

interface Call {
  id: string
  name: string
  args: string
}

/** A whole chat answer as a message of the Messages API. */
export class WholeMessage implements AnswerWriter {
  #model: string
  #thought = ''
  #text = ''
  readonly #calls = new Map<number, Call>()
  #end: ChatEnd | null = null

  /** @param model as the client named it */
  constructor (model: string) {
    this.#model = model
  }

  begin (model: string | null): void { this.#model = model ?? this.#model }
  text (piece: string): void { this.#text += piece }
  reasoning (piece: string): void { this.#thought += piece }
  logprobs (): void {}
  end (end: ChatEnd): void { this.#end = end }
  take (): null { return null }
  fail (): boolean { return false }

  call (index: number, id: string | null, name: string | null, args: string): void {
    const call = this.#calls.get(index) ?? { id: id ?? callId(), name: '', args: '' }
    this.#calls.set(index, call)
    if (call.name === '') call.name = name ?? ''
    call.args += args
  }

  whole (): object {
    const end = this.#end!
    const calls = [...this.#calls.values()]
    return {
      ...messageHead(this.#model),
      content: [
        ...this.#thought === '' ? [] : [{ type: 'thinking', thinking: this.#thought, signature: '' }],
        ...this.#text === '' ? [] : [{ type: 'text', text: this.#text }],
        ...calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: argumentsOf(args) }))
      ],
      ...stopOf(end, calls.length > 0),
      usage: usageBlock(end.usage)
    }
  }
}

export function callId (): string {
  return `toolu_${randomUUID().replaceAll('-', '').slice(0, 24)}`
}
