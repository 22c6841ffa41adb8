import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { GeminiAnswer } from '../../../plugins/dialects/gemini/answer.js'
import { chatForm, generateForm, OllamaAnswer } from '../../../plugins/dialects/ollama/talk/answer.js'
import { chatMessages } from '../../../plugins/v1/messages/chat-messages.js'
import { WholeMessage } from '../../../plugins/v1/messages/chat-answer.js'
import { MessageEvents } from '../../../plugins/v1/messages/chat-events.js'
import { ChatReader, type AnswerWriter } from '../../../plugins/v1/over-chat/ref.js'
import { ChatChunks } from '../../../plugins/v1/over-messages/chat-chunks.js'
import { ResponseWriter } from '../../../plugins/v1/responses/chat-answer.js'
import { ChatMessages } from '../../../plugins/v1/responses/chat-messages.js'
import { chatRequest } from '../../../plugins/v1/responses/chat-request.js'
import { inputItems, sentItem } from '../../../plugins/v1/responses/kept/items.js'
import { answers, messageOf, streamOf, told, type Answer } from './answers.js'

/** What a writer has written so far. */
function taken (writer: AnswerWriter): string {
  return writer.take()?.toString() ?? ''
}

const request = chatRequest({ model: 'm', input: 'x' }, null, { keeps: false, previous: null, conversation: null })
const streaming = { ...request, stream: true }
const summarizing = { ...request, summarizes: true }
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
    const { response: { output } } = lastOf(taken(told(new ResponseWriter(streaming, head), stream, marks)))
    const kept = inputItems(whole.output).flatMap(item => sentItem(item, false))
    const summarized = told(new ResponseWriter(summarizing, head), stream).whole() as { output: object[] }
    const streamed = lastOf(taken(told(new ResponseWriter({ ...summarizing, stream: true }, head), stream, marks))).response
    for (const items of [whole.output, output, kept, summarized.output, streamed.output]) {
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
  // the paths of `webUrl` take a table of all that Unicode has: a second of processor time
  const url = fc.tuple(fc.constantFrom('http', 'https'), fc.domain(), fc.string({ unit: 'grapheme' }))
    .map(([scheme, host, path]) => `${scheme}://${host}/${encodeURIComponent(path)}`)
  const image = url.map(url => {
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
    thoughts: ['hm', ' é'], texts: ['Hello', ' "you"', ' 🎈', ' and', ' more'], refusals: ['No', ' more'], calls: [{ id: 'call_0', name: 'go', args: '{"a":"b"}' }]
  }
  const stream = Buffer.from(streamOf(answer))
  const done = stream.indexOf('"finish_reason":"tool_calls"')
  const same = (text: string): string => text.replaceAll(/\b(resp|rs|msg|fc|toolu)_\w{24,32}/g, '$1').replaceAll(/"responseId":"\w+"/g, '')
  const standing = { now: () => 0, monotonic: () => 0 }
  const writers: Readonly<Record<string, () => AnswerWriter>> = {
    'responses': () => new ResponseWriter(streaming, head),
    'messages': () => new MessageEvents('m'),
    'gemini': () => new GeminiAnswer('m', 'events', true),
    'gemini as a list': () => new GeminiAnswer('m', 'list', true),
    'ollama': () => new OllamaAnswer({ model: 'm', form: chatForm, clock: standing, startedAt: 0, isCold: false }, true),
    'ollama of one prompt': () => new OllamaAnswer({ model: 'm', form: generateForm, clock: standing, startedAt: 0, isCold: false }, true)
  }
  for (const [name, make] of Object.entries(writers)) {
    const whole = same(taken(told(make(), stream)))
    for (let cut = 0; cut <= stream.length; cut++) {
      const writer = make()
      const reader = new ChatReader(writer)
      for (const part of [stream.subarray(0, cut), Buffer.from('')]) reader.push(part)
      const seen = same(taken(writer))
      if (!whole.startsWith(seen)) t.fail(`${name} cut at ${cut} told something else`)
      if (cut <= done) assert.throws(() => reader.end(), { code: 'dispatch.upstream_failed' }, `${name} cut at ${cut}`)
    }
    for (let cut = 1; cut < stream.length; cut++) assert.equal(same(taken(told(make(), stream, [cut]))), whole, `${name} in two parts at ${cut}`)
    t.pass(name)
  }
  t.end()
})

t.test('a message that is cut at any byte ends as one that failed, and its chunks are the beginning of the whole', t => {
  const event = (type: string, members: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
  const block = (index: number, kind: object, deltas: readonly object[]): string[] => [
    event('content_block_start', { index, content_block: kind }),
    ...deltas.map(delta => event('content_block_delta', { index, delta })), event('content_block_stop', { index })
  ]
  const stream = Buffer.from([
    event('message_start', { message: { model: 'm', usage: { input_tokens: 3 } } }),
    ...block(0, { type: 'thinking', thinking: '' }, ['hm', ' é', ', so'].map(thinking => ({ type: 'thinking_delta', thinking }))),
    ...block(1, { type: 'text', text: '' }, ['Hello', ' "you"', ' 🎈', ' and'].map(text => ({ type: 'text_delta', text }))),
    ...block(2, { type: 'tool_use', id: 'toolu_0', name: 'go', input: {} }, ['{"a":', '"b"}'].map(json => ({ type: 'input_json_delta', partial_json: json }))),
    event('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }), event('message_stop', {})
  ].join(''))
  const read = (parts: readonly Buffer[]): { readonly told: string, readonly isWhole: boolean } => {
    const chunks = new ChatChunks({ id: 'c', created: 1, model: 'm' }, true)
    const pieces: Array<Buffer | null> = []
    for (const part of parts) pieces.push(chunks.chunk(part, piece => pieces.push(piece)))
    const told = pieces.map(piece => piece?.toString() ?? '').join('')
    const { last, isTold } = chunks.failed()
    assert.equal(last, null)
    if (!isTold) assert.throws(() => chunks.end(), { code: 'dispatch.upstream_failed' })
    return { told, isWhole: isTold }
  }
  const whole = read([stream])
  assert.match(whole.told, /"reasoning_content":", so".*"content":" 🎈".*"finish_reason":"tool_calls".*\[DONE\]\n\n$/s)
  for (let cut = 0; cut < stream.length; cut++) {
    const { told, isWhole } = read([stream.subarray(0, cut)])
    if (isWhole || !whole.told.startsWith(told)) t.fail(`cut at ${cut} told something else`)
    assert.deepEqual(read([stream.subarray(0, cut), stream.subarray(cut)]), whole, `in two parts at ${cut}`)
  }
  t.end()
})
