import type { ToolCall } from './completion.js'

interface CallDelta {
  readonly index?: unknown
  readonly id?: unknown
  readonly function?: { readonly name?: unknown, readonly arguments?: unknown } | null
}

interface Pieces { id: string, name: string, arguments: string }

/** Puts tool calls together from the deltas of a stream: an id and a name first, the arguments in pieces. */
export class StreamedCalls {
  readonly #calls = new Map<number, Pieces>()

  get size (): number { return this.#calls.size }

  add (deltas: readonly unknown[]): void {
    deltas.forEach((delta, i) => {
      const { index, id, function: part } = (delta ?? {}) as CallDelta
      const at = typeof index === 'number' ? index : i
      let call = this.#calls.get(at)
      if (call === undefined) this.#calls.set(at, call = { id: '', name: '', arguments: '' })
      if (typeof id === 'string' && call.id === '') call.id = id
      if (typeof part?.name === 'string' && call.name === '') call.name = part.name
      if (typeof part?.arguments === 'string') call.arguments += part.arguments
    })
  }

  /** In the order of their indices, each with an id. */
  whole (round: number): ToolCall[] {
    return [...this.#calls].sort(([a], [b]) => a - b).map(([, { id, name, arguments: args }], i) => ({
      id: id === '' ? `call_${round}_${i}` : id, type: 'function', function: { name, arguments: args }
    }))
  }
}
