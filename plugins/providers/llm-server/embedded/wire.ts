import { randomBytes } from 'node:crypto'
import type { GenerationEnd } from './generate.js'

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
  piece (index: number, text: string): object
  closing (index: number, end: GenerationEnd): object
  /** After all choices, when the client asked for usage; null where `closing` has it already. */
  usage (ends: readonly GenerationEnd[]): object | null
  full (texts: readonly string[], ends: readonly GenerationEnd[]): object
}

/** 32 letters and digits after the prefix, as the field writes them. */
export function answerId (prefix: string): string {
  return `${prefix}-${randomBytes(24).toString('base64url').replace(/[-_]/g, '0')}`
}

export function chatFormat ({ id, created, model }: AnswerHead, includeUsage: boolean): AnswerFormat {
  const head = { created, id, model, object: 'chat.completion.chunk' }
  const chunk = (index: number, delta: object, finish: string | null): object =>
    ({ choices: [{ finish_reason: finish, index, delta }], ...head })
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
