import { randomUUID } from 'node:crypto'
import {
  DeltaFrame, isObject, Outbox, WholeCalls, type AnswerWriter, type ChatEnd, type ChatUsage, type Json, type TextKind
} from '../../v1/over-chat/ref.js'

/** How an answer goes out: one object, events of a stream, or one list that comes bit by bit. */
export type AnswerShape = 'whole' | 'events' | 'list'

const reasons: Readonly<Record<string, string>> = { length: 'MAX_TOKENS', content_filter: 'SAFETY' }

/** A chat answer as one of `generateContent`, whole or in pieces. */
export class GeminiAnswer implements AnswerWriter {
  #model: string
  readonly #shape: AnswerShape
  readonly #showsThoughts: boolean
  readonly #id = randomUUID().replaceAll('-', '')
  readonly #out = new Outbox()
  readonly #frames: Partial<Record<TextKind, DeltaFrame>> = {}
  #begun = false
  #text = ''
  #thought = ''
  #rows: unknown[] = []
  readonly #calls = new WholeCalls()
  #end: ChatEnd | null = null

  /** @param model as the client named it */
  constructor (model: string, shape: AnswerShape, showsThoughts: boolean) {
    this.#model = model
    this.#shape = shape
    this.#showsThoughts = showsThoughts
  }

  begin (model: string | null): void {
    this.#model = model ?? this.#model
  }

  text (piece: string): void {
    if (this.#shape === 'whole') this.#text += piece
    else this.#piece({ candidates: [{ content: contentOf([{ text: piece }]), index: 0, ...this.#takeRows() }] })
  }

  reasoning (piece: string): void {
    if (!this.#showsThoughts) return
    if (this.#shape === 'whole') this.#thought += piece
    else this.#piece({ candidates: [{ content: contentOf([{ text: piece, thought: true }]), index: 0 }] })
  }

  json (kind: TextKind, bytes: Buffer, from: number, to: number): boolean {
    if (kind === 'reasoning' && !this.#showsThoughts) return true
    if (this.#shape !== 'events' || this.#rows.length > 0) return false
    this.#frames[kind] ??= this.#frame(kind)
    this.#out.bytes(this.#frames[kind].event(0, bytes, from, to))
    return true
  }

  call (index: number, id: string | null, name: string | null, args: string): void {
    this.#calls.add(index, id, name, args)
  }

  logprobs (rows: readonly unknown[]): void {
    for (const row of rows) this.#rows.push(row)
  }

  end (end: ChatEnd): void {
    this.#end = end
    if (this.#shape === 'whole') return
    const calls = this.#callParts()
    this.#piece({ candidates: [{ content: contentOf(calls.length > 0 ? calls : [{ text: '' }]), ...this.#ending() }], ...this.#usage() })
    if (this.#shape === 'list') this.#out.write(']\n')
  }

  take (): Buffer | null {
    return this.#out.take()
  }

  whole (): object {
    const parts = [
      ...this.#thought === '' ? [] : [{ text: this.#thought, thought: true }],
      ...this.#text === '' ? [] : [{ text: this.#text }],
      ...this.#callParts()
    ]
    const content = contentOf(parts.length === 0 ? [{ text: '' }] : parts)
    return { candidates: [{ content, ...this.#ending() }], ...this.#usage(), ...this.#head() }
  }

  /** The dialect says it. */
  fail (): boolean {
    return false
  }

  #head (): object {
    return { modelVersion: this.#model, responseId: this.#id }
  }

  #piece (fields: object): void {
    const json = JSON.stringify({ ...fields, ...this.#head() })
    if (this.#shape === 'events') this.#out.write(`data: ${json}\n\n`)
    else this.#out.write(`${this.#begun ? ',\n' : '['}${json}`)
    this.#begun = true
  }

  #frame (kind: TextKind): DeltaFrame {
    const part = kind === 'text' ? { text: '' } : { text: '', thought: true }
    const json = JSON.stringify({ candidates: [{ content: contentOf([part]), index: 0 }], ...this.#head() })
    const at = json.indexOf('""') + 1
    return new DeltaFrame(`data: ${json.slice(0, at)}`, null, `${json.slice(at)}\n\n`)
  }

  #ending (): object {
    return { finishReason: reasons[this.#end!.reason] ?? 'STOP', index: 0, ...this.#takeRows() }
  }

  #usage (): object {
    return { usageMetadata: usageOf(this.#end!.usage) }
  }

  #takeRows (): object {
    if (this.#rows.length === 0) return {}
    const rows = this.#rows.filter(isObject)
    this.#rows = []
    return {
      logprobsResult: {
        chosenCandidates: likelihoods(rows),
        topCandidates: rows.map(({ top_logprobs: top }) =>
          ({ candidates: likelihoods(Array.isArray(top) ? top.filter(isObject) : []) }))
      }
    }
  }

  #callParts (): object[] {
    return this.#calls.made().map(({ id, name, args }) => ({
      functionCall: { ...id === null ? {} : { id }, name, args }
    }))
  }
}

function likelihoods (rows: readonly Json[]): object[] {
  return rows.map(({ token, logprob }) => ({ token, logProbability: logprob }))
}

function contentOf (parts: readonly object[]): object {
  return { parts, role: 'model' }
}

export function usageOf ({ input, output, cached, reasoning }: ChatUsage): object {
  return {
    promptTokenCount: input,
    candidatesTokenCount: Math.max(output - reasoning, 0),
    totalTokenCount: input + output,
    ...cached === 0 ? {} : { cachedContentTokenCount: cached },
    ...reasoning === 0 ? {} : { thoughtsTokenCount: reasoning }
  }
}
