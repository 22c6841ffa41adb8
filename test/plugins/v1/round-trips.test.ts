import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { chatMessages } from '../../../plugins/v1/messages/chat-messages.js'
import { WholeMessage } from '../../../plugins/v1/messages/chat-answer.js'
import { MessageEvents } from '../../../plugins/v1/messages/chat-events.js'
import { ChatReader, EventData, type AnswerWriter } from '../../../plugins/v1/over-chat/ref.js'
import { ResponseWriter } from '../../../plugins/v1/responses/chat-answer.js'
import { ChatMessages } from '../../../plugins/v1/responses/chat-messages.js'
import { chatRequest } from '../../../plugins/v1/responses/chat-request.js'
import { inputItems, sentItem } from '../../../plugins/v1/responses/kept/items.js'

interface Call { readonly id: string, readonly name: string, readonly args: string }
/** An answer of chat, in pieces. */
interface Answer { readonly thoughts: readonly string[], readonly texts: readonly string[], readonly calls: readonly Call[] }

const piece = fc.oneof(
  fc.string({ minLength: 1 }), fc.string({ unit: 'binary', minLength: 1 }), fc.constantFrom('"', '\\', '\n', 'é🎈', '"content":"x"', '[DONE]')
)
const key = fc.string({ minLength: 1 }).filter(name => name !== '__proto__')
const args = fc.dictionary(key, fc.oneof(fc.string(), fc.integer(), fc.boolean())).map(value => JSON.stringify(value))
const call = fc.record({ name: fc.stringMatching(/^[a-z_]{1,20}$/), args })
const answers: fc.Arbitrary<Answer> = fc.record({
  thoughts: fc.array(piece, { maxLength: 3 }), texts: fc.array(piece, { maxLength: 12 }), calls: fc.array(call, { maxLength: 3 })
}).map(({ calls, ...rest }) => ({ ...rest, calls: calls.map((one, i) => ({ id: `call_${i}`, ...one })) }))
  .filter(({ thoughts, texts, calls }) => thoughts.length + texts.length + calls.length > 0)

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

function streamOf ({ thoughts, texts, calls }: Answer): string {
  return [
    chunk({ role: 'assistant', content: null }),
    ...thoughts.map(text => chunk({ reasoning_content: text })),
    ...texts.map(text => chunk({ content: text })),
    ...calls.flatMap(({ id, name, args: said }, index) => [
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: said.slice(0, 3) } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: said.slice(3) } }] })
    ]),
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'), 'data: [DONE]\n\n'
  ].join('')
}

/** The same answer as a message of a conversation in chat. */
function messageOf ({ thoughts, texts, calls }: Answer): object {
  return {
    role: 'assistant', content: texts.length === 0 ? null : texts.join(''),
    ...thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('') },
    ...calls.length === 0
      ? {}
      : { tool_calls: calls.map(({ id, name, args: said }) => ({ id, type: 'function', function: { name, arguments: said } })) }
  }
}

function told<W extends AnswerWriter> (writer: W, stream: Buffer, cuts: readonly number[] = []): W {
  const [reader, cutter] = [new ChatReader(writer), new EventData()]
  const marks = [0, ...cuts, stream.length]
  for (const [i, mark] of marks.slice(1).entries()) {
    for (const data of cutter.push(stream.subarray(marks[i]!, mark))) reader.event(data)
  }
  reader.end()
  return writer
}

const request = chatRequest({ model: 'm', input: 'x' }, null, { keeps: false, previous: null, conversation: null })
const streaming = { ...request, stream: true }
const head = { model: 'm', createdAt: 1 }

/** What the events of a stream come to, by the last one. */
function lastOf (text: string): { readonly response: { readonly output: object[] } } {
  const event = text.split('\n\n').at(-2)!
  return JSON.parse(event.slice(event.indexOf('data: ') + 6)) as { response: { output: object[] } }
}

t.test('an answer of chat that goes into another dialect and comes back with the next request is the same', t => {
  const cuts = fc.array(fc.nat(), { maxLength: 10 })
  fc.assert(fc.property(answers, cuts, (answer, places) => {
    const stream = Buffer.from(streamOf(answer))
    const marks = [...new Set(places.map(place => place % stream.length))].sort((a, b) => a - b)
    const whole = told(new ResponseWriter(request, head), stream).whole() as { output: object[] }
    const { response: { output } } = lastOf(told(new ResponseWriter(streaming, head), stream, marks).take())
    const kept = inputItems(whole.output).flatMap(item => sentItem(item, false))
    for (const items of [whole.output, output, kept]) {
      const messages = new ChatMessages(true, [])
      messages.input(items)
      assert.deepEqual(messages.list, [messageOf(answer)])
    }
    const { content } = told(new WholeMessage('m'), stream).whole() as { content: object[] }
    const [message] = chatMessages({ messages: [{ role: 'assistant', content }] }, true, []) as [{ content: string | null }]
    // thoughts alone have an empty text there
    assert.deepEqual({ ...message, content: message.content === '' ? null : message.content }, messageOf(answer))
  }), { numRuns: 300 })
  t.end()
})

t.test('what a user says to a model is the same in chat and in a response', t => {
  const text = fc.string({ minLength: 1 }).map(value => [{ type: 'input_text', text: value }, { type: 'text', text: value }] as const)
  const image = fc.webUrl().map(url => {
    const detail = 'low'
    return [{ type: 'input_image', image_url: url, detail }, { type: 'image_url', image_url: { url, detail } }] as const
  })
  const sound = fc.base64String().map(data => {
    const audio = { data, format: 'wav' }
    return [{ type: 'input_audio', input_audio: audio }, { type: 'input_audio', input_audio: audio }] as const
  })
  const file = fc.base64String().map(data => {
    const pdf = `data:application/pdf;base64,${data}`
    return [{ type: 'input_file', filename: 'a.pdf', file_data: pdf }, { type: 'file', file: { filename: 'a.pdf', file_data: pdf } }] as const
  })
  const turn = fc.array(fc.oneof(text, image, sound, file), { minLength: 1, maxLength: 4 })
  fc.assert(fc.property(fc.array(turn, { minLength: 1, maxLength: 4 }), turns => {
    const messages = new ChatMessages(true, [])
    messages.input(turns.map(parts => ({ role: 'user', content: parts.map(([asked]) => asked) })))
    assert.deepEqual(messages.list, turns.map(parts => {
      const chat = parts.map(([, part]) => part)
      const isText = chat.every(part => part.type === 'text')
      return { role: 'user', content: isText ? chat.map(part => (part as { text: string }).text).join('\n') : chat }
    }))
  }), { numRuns: 200 })
  t.end()
})

t.test('a stream that is cut at any byte ends as one that failed, and what was told is the beginning of the whole', t => {
  const answer: Answer = {
    thoughts: ['hm', ' é'], texts: ['Hello', ' "you"', ' 🎈', ' and', ' more'], calls: [{ id: 'call_0', name: 'go', args: '{"a":"b"}' }]
  }
  const stream = Buffer.from(streamOf(answer))
  const done = stream.indexOf('"finish_reason":"tool_calls"')
  const same = (text: string): string => text.replaceAll(/\b(resp|rs|msg|fc|toolu)_\w{24,32}/g, '$1')
  const writers: Readonly<Record<string, () => AnswerWriter>> = {
    responses: () => new ResponseWriter(streaming, head), messages: () => new MessageEvents('m')
  }
  for (const [name, make] of Object.entries(writers)) {
    const whole = same(told(make(), stream).take())
    for (let cut = 0; cut <= stream.length; cut++) {
      const writer = make()
      const [reader, cutter] = [new ChatReader(writer), new EventData()]
      for (const part of [stream.subarray(0, cut), Buffer.from('')]) for (const data of cutter.push(part)) reader.event(data)
      const seen = same(writer.take())
      if (!whole.startsWith(seen)) t.fail(`${name} cut at ${cut} told something else`)
      if (cut <= done) assert.throws(() => reader.end(), { code: 'dispatch.upstream_failed' }, `${name} cut at ${cut}`)
    }
    for (let cut = 1; cut < stream.length; cut++) assert.equal(same(told(make(), stream, [cut]).take()), whole, `${name} in two parts at ${cut}`)
    t.pass(name)
  }
  t.end()
})
