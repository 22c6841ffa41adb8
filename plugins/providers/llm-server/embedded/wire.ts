import { randomBytes } from 'node:crypto'
import type { AnswerPart, AnswerReader } from './chat/answer-part.js'
import type { GenerationEnd } from './generate.js'
import type { RankedToken } from './tokens/logprobs.js'
import type { Piece } from './tokens/shown-text.js'

/** What the answers to one request have in common. `created` in epoch seconds. */
export interface AnswerHead {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly system_fingerprint: string
}

/** One choice of an answer, all of it. */
export interface Said {
  text: string
  reasoning: string
  readonly calls: Array<{ readonly name: string, arguments: string }>
  readonly tokens: RankedToken[]
}

/** The two shapes of a generated answer. Chunks go on an event stream; `full` is the plain answer. */
export interface AnswerFormat {
  /** A new one for each choice. */
  readonly reader: () => AnswerReader
  /** Chunks of one choice. */
  readonly choice: (index: number) => ChoiceFormat
  /** After all choices, when the client asked for usage; null where `closing` has it already. */
  usage (ends: readonly GenerationEnd[]): object | null
  full (said: readonly Said[], ends: readonly GenerationEnd[]): object
}

export interface ChoiceFormat {
  /** Said before the first text; null where the format has no such thing. */
  readonly opening: object | null
  /** What came, in order; the tokens belong to the last of it. */
  chunks (parts: readonly AnswerPart[], tokens: readonly RankedToken[]): object[]
  /** @param tokens that belong to nothing that was shown */
  closing (end: GenerationEnd, tokens: readonly RankedToken[]): object
}

export function nothingSaid (): Said {
  return { text: '', reasoning: '', calls: [], tokens: [] }
}

/** Adds to what was said. */
export function say (said: Said, parts: readonly AnswerPart[], tokens: Piece['tokens']): void {
  for (const part of parts) {
    if (part.kind === 'text') said.text += part.text
    else if (part.kind === 'reasoning') said.reasoning += part.text
    else if (part.kind === 'call') said.calls.push({ name: part.name, arguments: '' })
    else said.calls.at(-1)!.arguments += part.text
  }
  said.tokens.push(...tokens)
}

/** 32 letters and digits, as the field writes them. */
export function answerId (prefix?: string): string {
  const id = randomBytes(24).toString('base64url').replace(/[-_]/g, '0')
  return prefix === undefined ? id : `${prefix}-${id}`
}

/** @param n answers to each prompt, which is read and counted once */
export function usage (ends: readonly GenerationEnd[], n: number): object {
  const sum = (key: 'promptTokens' | 'completionTokens' | 'cachedTokens', few: readonly GenerationEnd[]): number => few.reduce((total, end) => total + end[key], 0)
  const first = ends.filter((_, i) => i % n === 0)
  const [prompt, completion] = [sum('promptTokens', first), sum('completionTokens', ends)]
  return {
    completion_tokens: completion,
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum('cachedTokens', first) }
  }
}

export function timings (end: GenerationEnd): object {
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
