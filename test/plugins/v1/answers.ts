import fc from 'fast-check'
import { ChatReader, type AnswerWriter } from '../../../plugins/v1/over-chat/ref.js'

export interface Call { readonly id: string, readonly name: string, readonly args: string }
/** An answer of chat, in pieces. */
export interface Answer {
  readonly thoughts: readonly string[]
  readonly texts: readonly string[]
  /** Why it does not answer; behind its texts. */
  readonly refusals: readonly string[]
  readonly calls: readonly Call[]
}

// the unit 'binary' would be the same, after a second for a table of all of them
const character = fc.oneof(fc.integer({ min: 0, max: 0xD7FF }), fc.integer({ min: 0xE000, max: 0x10FFFF }))
  .map(code => String.fromCodePoint(code))
const piece = fc.oneof(
  fc.string({ minLength: 1 }), fc.string({ unit: character, minLength: 1 }), fc.constantFrom('"', '\\', '\n', 'é🎈', '"content":"x"', '[DONE]')
)
const key = fc.string({ minLength: 1 }).filter(name => name !== '__proto__')
const args = fc.dictionary(key, fc.oneof(fc.string(), fc.integer(), fc.boolean())).map(value => JSON.stringify(value))
const call = fc.record({ name: fc.stringMatching(/^[a-z_]{1,20}$/), args })
export const answers: fc.Arbitrary<Answer> = fc.record({
  thoughts: fc.array(piece, { maxLength: 3 }),
  texts: fc.array(piece, { maxLength: 12 }),
  refusals: fc.array(piece, { maxLength: 2 }),
  calls: fc.array(call, { maxLength: 3 })
}).map(({ calls, ...rest }) => ({ ...rest, calls: calls.map((one, i) => ({ id: `call_${i}`, ...one })) }))
  .filter(({ thoughts, texts, refusals, calls }) => [thoughts, texts, refusals, calls].some(said => said.length > 0))

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

export function streamOf ({ thoughts, texts, refusals, calls }: Answer): string {
  return [
    chunk({ role: 'assistant', content: null }),
    ...thoughts.map(text => chunk({ reasoning_content: text })),
    ...texts.map(text => chunk({ content: text })),
    ...refusals.map(refusal => chunk({ refusal })),
    ...calls.flatMap(({ id, name, args: said }, index) => [
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: said.slice(0, 3) } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: said.slice(3) } }] })
    ]),
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'), 'data: [DONE]\n\n'
  ].join('')
}

/** The same answer as a message of a conversation in chat, in which a refusal is a text. */
export function messageOf ({ thoughts, texts, refusals, calls }: Answer): object {
  const said = [...texts, ...refusals]
  return {
    role: 'assistant', content: said.length === 0 ? null : said.join(''),
    ...thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('') },
    ...calls.length === 0
      ? {}
      : { tool_calls: calls.map(({ id, name, args: said }) => ({ id, type: 'function', function: { name, arguments: said } })) }
  }
}

/** A stream, cut where it is said, as a writer tells it. */
export function told<W extends AnswerWriter> (writer: W, stream: Buffer, cuts: readonly number[] = []): W {
  const reader = new ChatReader(writer)
  const marks = [0, ...cuts, stream.length]
  for (const [i, mark] of marks.slice(1).entries()) reader.push(stream.subarray(marks[i]!, mark))
  reader.end()
  return writer
}
