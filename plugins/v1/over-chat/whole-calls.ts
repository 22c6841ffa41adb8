import { svcError } from 'svc-gateway/plugin'
import { argumentsOf } from './json.js'

/** Longest arguments of all calls of an answer together, in characters. */
const LONGEST = 32 * 1024 * 1024

export interface WholeCall {
  /** Null from an engine that gives none. */
  readonly id: string | null
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

interface Call {
  readonly id: string | null
  name: string
  args: string
}

/** Puts the calls of an answer together out of their pieces, for formats in which arguments are an object. */
export class WholeCalls {
  readonly #calls = new Map<number, Call>()
  #length = 0

  /** As `ChatListener.call`. Throws for arguments without an end. */
  add (index: number, id: string | null, name: string | null, args: string): void {
    const call = this.#calls.get(index) ?? { id, name: '', args: '' }
    this.#calls.set(index, call)
    if (call.name === '') call.name = name ?? ''
    call.args += args
    this.#length += args.length
    if (this.#length > LONGEST) throw svcError('dispatch.upstream_failed', 'the arguments of the calls in the answer are too long')
  }

  made (): WholeCall[] {
    return [...this.#calls.values()].map(({ id, name, args }) => ({ id, name, args: argumentsOf(args) }))
  }
}
