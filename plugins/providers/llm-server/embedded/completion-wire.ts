import { plainReader } from './chat/answer-part.js'
import { legacyLogprobs, type RankedToken } from './tokens/logprobs.js'
import { timings, usage, type AnswerFormat, type AnswerHead } from './wire.js'

/** @param n answers to each prompt */
export function completionFormat (answer: AnswerHead, n: number): AnswerFormat {
  const head = { ...answer, object: 'text_completion' }
  const choice = (index: number, text: string, finish: string | null, tokens: readonly RankedToken[] = [], offset = 0): object =>
    ({ text, index, logprobs: tokens.length === 0 ? null : legacyLogprobs(tokens, offset), finish_reason: finish })
  return {
    reader: () => plainReader,
    choice (index) {
      let offset = 0
      return {
        opening: null,
        chunks: (parts, tokens) => parts.map(part => {
          const text = part.kind === 'text' ? part.text : ''
          const chunk = { choices: [choice(index, text, null, tokens, offset)], ...head }
          offset += text.length
          return chunk
        }),
        closing: (end, tokens) => ({
          choices: [choice(index, '', end.finishReason, tokens, offset)], ...head, usage: usage([end], 1), timings: timings(end)
        })
      }
    },
    usage: () => null,
    full: (said, ends) => ({
      choices: said.map(({ text, tokens }, index) => choice(index, text, ends[index]!.finishReason, tokens)),
      ...head,
      usage: usage(ends, n),
      timings: timings(ends[0]!)
    })
  }
}
