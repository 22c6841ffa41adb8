import { randomBytes } from 'node:crypto'
import type { GenerationEnd } from './generate.js'
import { ToolCallReader, type CallDelta } from './tool-call-reader.js'

/** What the answers to one request have in common. `created` in epoch seconds. */
export interface AnswerHead {
  readonly id: string
  readonly created: number
  readonly model: string
}

/** The two shapes of a generated answer. Chunks go on an event stream; `full` is the plain answer. */
export interface AnswerFormat {
  /** Said once per choice before its first text; null where the format has no such thing. */
  opening (index: number): object | null
  /** Null while there is nothing to tell. */
  piece (index: number, text: string): object | null
  closing (index: number, end: GenerationEnd): object
  /** After all choices, when the client asked for usage; null where `closing` has it already. */
  usage (ends: readonly GenerationEnd[]): object | null
  full (texts: readonly string[], ends: readonly GenerationEnd[]): object
}

/** 32 letters and digits after the prefix, as the field writes them. */
export function answerId (prefix: string): string {
  return `${prefix}-${randomBytes(24).toString('base64url').replace(/[-_]/g, '0')}`
}

export function chatFormat (answer: AnswerHead, includeUsage: boolean): AnswerFormat {
  const { head, chunk } = chunksOf(answer)
  return {
    opening: index => chunk(index, { role: 'assistant', content: '' }, null),
    piece: (index, text) => chunk(index, { content: text }, null),
    closing: (index, end) => ({ ...chunk(index, {}, end.finishReason), ...includeUsage ? {} : { timings: timings(end) } }),
    usage: ends => includeUsage ? { choices: [], ...head, usage: usage(ends), timings: timings(ends[0]!) } : null,
    full: (texts, ends) => ({
      choices: texts.map((content, index) => ({
        finish_reason: ends[index]!.finishReason, index, message: { role: 'assistant', content }
      })),
      ...head,
      object: 'chat.completion',
      usage: usage(ends),
      timings: timings(ends[0]!)
    })
  }
}

/** An answer whose text is a call of one of the tools. */
export function callFormat (answer: AnswerHead, includeUsage: boolean, names: readonly string[]): AnswerFormat {
  const { chunk } = chunksOf(answer)
  const plain = chatFormat(answer, includeUsage)
  const readers = new Map<number, ToolCallReader>()
  const reader = (index: number): ToolCallReader => {
    if (!readers.has(index)) readers.set(index, new ToolCallReader(names))
    return readers.get(index)!
  }
  const reason = (end: GenerationEnd): string => end.finishReason === 'stop' ? 'tool_calls' : end.finishReason
  const delta = ({ name, arguments: text }: CallDelta): object => name === undefined
    ? { tool_calls: [{ index: 0, function: { arguments: text } }] }
    : { tool_calls: [{ index: 0, id: answerId('call'), type: 'function', function: { name, arguments: text } }] }
  return {
    opening: index => chunk(index, { role: 'assistant', content: null }, null),
    piece: (index, text) => {
      const told = reader(index).push(text)
      return told === null ? null : chunk(index, delta(told), null)
    },
    closing: (index, end) => {
      const told = reader(index).end(end.finishReason === 'stop')
      return { ...chunk(index, told === null ? {} : delta(told), reason(end)), ...includeUsage ? {} : { timings: timings(end) } }
    },
    usage: ends => plain.usage(ends),
    full: (texts, ends) => ({
      ...plain.full([], ends),
      choices: texts.map((text, index) => {
        const one = new ToolCallReader(names)
        const told = [one.push(text), one.end(ends[index]!.finishReason === 'stop')].filter(part => part !== null)
        const call = { name: told[0]?.name, arguments: told.map(part => part.arguments).join('') }
        const calls = call.name === undefined ? {} : { tool_calls: [{ id: answerId('call'), type: 'function', function: call }] }
        return { finish_reason: reason(ends[index]!), index, message: { role: 'assistant', content: null, ...calls } }
      })
    })
  }
}

interface Chunks {
  readonly head: object
  readonly chunk: (index: number, delta: object, finish: string | null) => object
}

function chunksOf ({ id, created, model }: AnswerHead): Chunks {
  const head = { created, id, model, object: 'chat.completion.chunk' }
  return { head, chunk: (index, delta, finish) => ({ choices: [{ finish_reason: finish, index, delta }], ...head }) }
}

export function completionFormat ({ id, created, model }: AnswerHead): AnswerFormat {
  const head = { created, id, model, object: 'text_completion' }
  const choice = (index: number, text: string, finish: string | null): object =>
    ({ text, index, logprobs: null, finish_reason: finish })
  return {
    opening: () => null,
    piece: (index, text) => ({ choices: [choice(index, text, null)], ...head }),
    closing: (index, end) => ({
      choices: [choice(index, '', end.finishReason)], ...head, usage: usage([end]), timings: timings(end)
    }),
    usage: () => null,
    full: (texts, ends) => ({
      choices: texts.map((text, index) => choice(index, text, ends[index]!.finishReason)),
      ...head,
      usage: usage(ends),
      timings: timings(ends[0]!)
    })
  }
}

function usage (ends: readonly GenerationEnd[]): object {
  const sum = (key: 'promptTokens' | 'completionTokens' | 'cachedTokens'): number => ends.reduce((total, end) => total + end[key], 0)
  const [prompt, completion] = [sum('promptTokens'), sum('completionTokens')]
  return {
    completion_tokens: completion,
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum('cachedTokens') }
  }
}

function timings (end: GenerationEnd): object {
  const read = end.promptTokens - end.cachedTokens
  return {
    cache_n: end.cachedTokens,
    prompt_n: read,
    prompt_ms: end.promptMs,
    prompt_per_token_ms: rate(end.promptMs, read),
    prompt_per_second: rate(read * 1000, end.promptMs),
    predicted_n: end.completionTokens,
    predicted_ms: end.predictedMs,
    predicted_per_token_ms: rate(end.predictedMs, end.completionTokens),
    predicted_per_second: rate(end.completionTokens * 1000, end.predictedMs)
  }
}

function rate (amount: number, per: number): number {
  return per === 0 ? 0 : amount / per
}
