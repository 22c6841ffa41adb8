import type { ClientTool } from './chat-tools.js'
import { newId } from './ids.js'

interface CallEvent {
  readonly event: string
  /** JSON without its braces. */
  readonly members: string
}

/** A call of a tool as an item of a response, under the name by which the client knows the tool. */
export class CallItem {
  readonly index: number
  readonly #id: string
  readonly #callId: string
  readonly #tool: ClientTool
  #args = ''

  constructor (index: number, callId: string, tool: ClientTool) {
    this.index = index
    this.#callId = callId
    this.#tool = tool
    this.#id = newId(tool.isCustom ? 'ctc' : 'fc')
  }

  /** What a piece of its arguments is told with; null for a tool whose text stands inside the JSON that the model writes. */
  add (piece: string): CallEvent | null {
    this.#args += piece
    return this.#tool.isCustom
      ? null
      : { event: 'response.function_call_arguments.delta', members: `${this.#place()},"delta":${JSON.stringify(piece)}` }
  }

  ending (): readonly CallEvent[] {
    if (this.#args === '') this.#args = '{}'
    if (!this.#tool.isCustom) {
      const members = `${this.#place()},"name":${JSON.stringify(this.#tool.name)},"arguments":${JSON.stringify(this.#args)}`
      return [{ event: 'response.function_call_arguments.done', members }]
    }
    const input = JSON.stringify(this.#input())
    return [
      { event: 'response.custom_tool_call_input.delta', members: `${this.#place()},"delta":${input}` },
      { event: 'response.custom_tool_call_input.done', members: `${this.#place()},"input":${input}` }
    ]
  }

  json (status: string): string {
    const { name, namespace, isCustom } = this.#tool
    const group = namespace === null ? {} : { namespace }
    const said = isCustom ? { input: status === 'in_progress' ? '' : this.#input() } : { arguments: this.#args }
    return JSON.stringify({
      id: this.#id, type: isCustom ? 'custom_tool_call' : 'function_call', status, call_id: this.#callId, name, ...group, ...said
    })
  }

  #place (): string {
    return `"item_id":"${this.#id}","output_index":${this.index}`
  }

  /** The text in the JSON; what is no such JSON is taken for the text itself. */
  #input (): string {
    try {
      const { input } = JSON.parse(this.#args) as { readonly input?: unknown }
      if (typeof input === 'string') return input
    } catch {
      // told as it is
    }
    return this.#args
  }
}
