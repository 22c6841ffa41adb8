import type { AnswerPart, AnswerReader } from './chat/answer-part.js'
import type { GenerationEnd } from './generate.js'
import type { RankedToken } from './tokens/logprobs.js'
import { answerId, timings, usage, type AnswerFormat, type AnswerHead, type Said } from './wire.js'

export interface ChatWish {
  readonly reader: () => AnswerReader
  readonly n: number
  /** Tell usage in a last chunk of a stream. */
  readonly includeUsage: boolean
}

export function chatFormat (answer: AnswerHead, { reader, n, includeUsage }: ChatWish): AnswerFormat {
  const head = { ...answer, object: 'chat.completion.chunk' }
  return {
    reader,
    choice (index) {
      const chunk = (delta: object, finish: string | null, tokens: readonly RankedToken[] = []): object =>
        ({ choices: [{ finish_reason: finish, index, delta, ...logprobs(tokens) }], ...head })
      let calls = 0
      return {
        opening: chunk({ role: 'assistant', content: null }, null),
        chunks (parts, tokens) {
          const deltas = joined(parts).map(part => deltaOf(part, part.call === undefined ? calls : ++calls))
          return deltas.map((delta, i) => chunk(delta, null, i < deltas.length - 1 ? [] : tokens))
        },
        closing: (end, tokens) =>
          ({ ...chunk({}, reasonOf(end, calls), tokens), ...includeUsage ? {} : { timings: timings(end) } })
      }
    },
    usage: ends => includeUsage ? { choices: [], ...head, usage: usage(ends, n), timings: timings(ends[0]!) } : null,
    full: (said, ends) => ({
      choices: said.map((one, index) => ({
        finish_reason: reasonOf(ends[index]!, one.calls.length), index, message: messageOf(one), ...logprobs(one.tokens)
      })),
      ...head,
      object: 'chat.completion',
      usage: usage(ends, n),
      timings: timings(ends[0]!)
    })
  }
}

function reasonOf ({ finishReason }: GenerationEnd, calls: number): string {
  return calls > 0 && finishReason === 'stop' ? 'tool_calls' : finishReason
}

/** A call with the first of its arguments, or something else. */
interface Delta {
  readonly text?: string
  readonly reasoning?: string
  readonly call?: string
  arguments?: string
}

function joined (parts: readonly AnswerPart[]): Delta[] {
  const deltas: Delta[] = []
  for (const part of parts) {
    const last = deltas.at(-1)
    if (part.kind === 'call') deltas.push({ call: part.name, arguments: '' })
    else if (part.kind === 'arguments' && last?.arguments !== undefined) last.arguments += part.text
    else deltas.push(part.kind === 'text' ? { text: part.text } : part.kind === 'reasoning' ? { reasoning: part.text } : { arguments: part.text })
  }
  return deltas
}

/** @param calls how many there are, with this one */
function deltaOf ({ text, reasoning, call, arguments: args }: Delta, calls: number): object {
  if (text !== undefined) return { content: text }
  if (reasoning !== undefined) return { reasoning_content: reasoning }
  const index = calls - 1
  if (call === undefined) return { tool_calls: [{ index, function: { arguments: args } }] }
  return { tool_calls: [{ index, id: answerId(), type: 'function', function: { name: call, arguments: args } }] }
}

function messageOf ({ text, reasoning, calls }: Said): object {
  return {
    role: 'assistant',
    content: text,
    ...reasoning === '' ? {} : { reasoning_content: reasoning },
    ...calls.length === 0 ? {} : { tool_calls: calls.map(call => ({ type: 'function', function: call, id: answerId() })) }
  }
}

function logprobs (tokens: readonly RankedToken[]): object {
  return tokens.length === 0 ? {} : { logprobs: { content: tokens } }
}
