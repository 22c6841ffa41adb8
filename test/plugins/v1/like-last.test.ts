import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { GeminiAnswer } from '../../../plugins/dialects/gemini/answer.js'
import { chatForm, generateForm, OllamaAnswer } from '../../../plugins/dialects/ollama/talk/answer.js'
import { MessageEvents } from '../../../plugins/v1/messages/chat-events.js'
import { bodyObject, ChatReader, EventData, type AnswerWriter } from '../../../plugins/v1/over-chat/ref.js'
import { ChatChunks } from '../../../plugins/v1/over-messages/chat-chunks.js'
import { ResponseWriter } from '../../../plugins/v1/responses/chat-answer.js'
import { chatRequest } from '../../../plugins/v1/responses/chat-request.js'

const request = { ...chatRequest({ model: 'm', input: 'x' }, null, { keeps: false, previous: null, conversation: null }), stream: true }
const answered = { model: 'm "é"', clock: { now: () => 0, monotonic: () => 0 }, startedAt: 0, isCold: false }
const writers: Readonly<Record<string, () => AnswerWriter>> = {
  'responses': () => new ResponseWriter(request, { model: 'm', createdAt: 1 }), 'messages': () => new MessageEvents('m'),
  'gemini': () => new GeminiAnswer('m "é"', 'events', true),
  'gemini as a list': () => new GeminiAnswer('m', 'list', false),
  'ollama': () => new OllamaAnswer({ ...answered, form: chatForm }, true),
  'ollama of one prompt': () => new OllamaAnswer({ ...answered, form: generateForm }, true)
}

interface Told {
  readonly type: string
  readonly sequence_number: number
  readonly delta?: string
  readonly text?: string
}

const same = (text: string): string =>
  text.replaceAll(/\b(resp|rs|msg|fc|toolu)_\w{24,32}/g, '$1').replaceAll(/"responseId":"\w+"/g, '')

/** What a writer makes of a stream whose every event is read: its bytes, or the code of the failure. */
function readWhole (writer: AnswerWriter, stream: Buffer): string {
  const [reader, cutter] = [new ChatReader(writer), new EventData()]
  return outcome(writer, () => {
    for (const data of cutter.push(stream)) reader.event(data)
    reader.end()
  })
}

function readInParts (writer: AnswerWriter, stream: Buffer, cuts: readonly number[]): string {
  const reader = new ChatReader(writer)
  return outcome(writer, () => {
    const marks = [0, ...cuts, stream.length]
    for (const [i, mark] of marks.slice(1).entries()) reader.push(stream.subarray(marks[i]!, mark))
    reader.end()
  })
}

function outcome (writer: AnswerWriter, work: () => void): string {
  let end = ''
  try {
    work()
  } catch (error) {
    end = (error as { readonly code?: string }).code ?? String(error)
  }
  return `${same(writer.take()?.toString() ?? '')}${end}`
}

/** A text as an engine may write it in JSON, also in ways that `JSON.stringify` does not. */
const literals = fc.oneof(
  { weight: 5, arbitrary: fc.string({ minLength: 1, maxLength: 6 }).map(text => JSON.stringify(text).slice(1, -1)) },
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }).map(text => JSON.stringify(text).slice(1, -1)) },
  { weight: 2, arbitrary: fc.constantFrom('\\n', '\\"', '\\\\', ' a', '\\n\\n', 'é', '日本', '🎈') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '', '\\/', '\\u00e9', '\\ud83c', '\\udf88', '\\u0007', '\\x', '\\', '"', '\t', '\u2028', '","role":"x', 'a"},"logprobs":{"content":[{}]},"b":{"c":"'
    )
  }
)
/** Stands for a member that differs in each chunk. */
const PADDED = ',"obfuscation":'
const paddings = fc.constantFrom('"a8Xk"', '""', '"0"', '"_-~"', '"\\n"', '"é"', 'null', '"xyzXYZ0123456789"', '{"obfuscation":"a"}', '"a","obfuscation":"b"')
const pieces = fc.array(fc.record({
  key: fc.constantFrom('content', 'content', 'content', 'reasoning_content', 'reasoning'), literal: literals, padding: paddings
}), { maxLength: 12 })
const shapes = fc.record({
  frame: fc.constantFrom('data: ', 'data:'),
  end: fc.constantFrom('\n\n', '\n\n', '\r\n\r\n'),
  /** Behind the text and what belongs to it. */
  more: fc.constantFrom('', ',"created":1', ',"usage":null', ',"é":"日本"', ',"timings":{"predicted_ms":1}', PADDED, PADDED),
  space: fc.constantFrom('', ' '),
  isRaw: fc.boolean()
})

t.test('what differs from the event before in its text alone becomes the same bytes as what is read, wherever it is cut', t => {
  const cuts = fc.array(fc.nat(), { maxLength: 12 })
  fc.assert(fc.property(pieces, shapes, cuts, (said, { frame, end, more, space, isRaw }, places) => {
    const chunk = (delta: string, finish: string, padding = '"a"'): string =>
      `${frame}{"choices":[{"finish_reason":${finish},"index":0,"delta":${delta}}],"model":"m"${more}${more === PADDED ? padding : ''}}${end}`
    const text = [
      chunk('{"role":"assistant","content":null}', 'null'),
      ...said.map(({ key, literal, padding }) => chunk(`{"${key}":${space}"${literal}"}`, 'null', padding)), chunk('{}', '"stop"'), `${frame}[DONE]${end}`
    ].join('')
    const stream = Buffer.from(text)
    // bytes that are no text
    if (isRaw && said.length > 1) stream[stream.lastIndexOf('"}}],"model"') - 1] = 0xff
    const marks = [...new Set(places.map(place => place % stream.length))].sort((a, b) => a - b)
    for (const make of Object.values(writers)) {
      const whole = readWhole(make(), stream)
      assert.equal(readInParts(make(), stream, marks), whole)
      // an event at a time, as engines send them
      const ends = [...text.matchAll(/\r?\n\r?\n/g)].map(({ index, 0: gap }) => Buffer.byteLength(text.slice(0, index)) + gap.length)
      if (ends.at(-1) === stream.length) assert.equal(readInParts(make(), stream, ends.slice(0, -1)), whole)
    }
  }), { numRuns: 400 })
  t.end()
})

t.test('the events of a message become the same chunks, whether they are read or compared with the one before', t => {
  const head = { id: 'c', created: 1, model: 'm' }
  const event = (type: string, members: string): string => `event: ${type}\ndata: {"type":"${type}"${members}}\n\n`
  const delta = (index: number, kind: string, literal: string): string =>
    event('content_block_delta', `,"index":${index},"delta":{"type":"${kind}_delta","${kind}":"${literal}"}`)
  const texts = fc.array(fc.record({ kind: fc.constantFrom('text', 'text', 'thinking'), literal: literals, index: fc.nat({ max: 1 }) }), { maxLength: 12 })
  const read = (parts: readonly Buffer[]): string => {
    const chunks = new ChatChunks(head, true)
    const told: Array<Buffer | null> = []
    try {
      for (const part of parts) told.push(chunks.chunk(part, piece => told.push(piece)))
      chunks.end()
    } catch (error) {
      told.push(chunks.failed().last, Buffer.from((error as { readonly code: string }).code))
    }
    return told.map(part => part?.toString() ?? '').join('')
  }
  fc.assert(fc.property(texts, fc.array(fc.nat(), { maxLength: 12 }), (said, places) => {
    const events = [
      event('message_start', ',"message":{"model":"x"}'), ...said.map(({ kind, literal, index }) => delta(index, kind, literal)),
      event('ping', ''), event('message_stop', '')
    ]
    // a space makes each unlike the one before
    const unlike = Buffer.from(events.map((one, i) => one.replace('{', `{${' '.repeat(i)}`)).join(''))
    const stream = Buffer.from(events.join(''))
    const marks = [0, ...new Set(places.map(place => place % stream.length).sort((a, b) => a - b)), stream.length]
    const whole = read([unlike])
    assert.equal(read([stream]), whole)
    assert.equal(read(events.map(one => Buffer.from(one))), whole)
    assert.equal(read(marks.slice(1).map((mark, i) => stream.subarray(marks[i], mark))), whole)
  }), { numRuns: 300 })
  t.end()
})

t.test('thousands of events of one answer are numbered one by one, and its last ones repeat the whole text', t => {
  const words = Array.from({ length: 1_200 }, (_, i) => i % 7 === 0 ? '\n' : ` "${i}" é`)
  const chunks = words.map(content => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`)
  const writer = writers.responses!()
  const reader = new ChatReader(writer)
  for (const chunk of chunks) reader.push(Buffer.from(chunk))
  reader.push(Buffer.from('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'))
  const events = writer.take()!.toString().split('\n\n').slice(0, -1).map(event => JSON.parse(event.slice(event.indexOf('data: ') + 6)) as Told)
  t.ok(events.every(({ sequence_number: number }, i) => number === i))
  t.strictSame(events.flatMap(({ type, delta }) => type === 'response.output_text.delta' ? [delta] : []), words)
  t.equal(events.find(({ type }) => type === 'response.output_text.done')?.text, words.join(''))
  t.end()
})

void t.test('the body of a request is read once in a turn, and anew in the next one', async t => {
  const [one, other] = [Buffer.from('{"a":1}'), Buffer.from('{"a":2}')]
  const first = bodyObject(one)
  t.equal(bodyObject(one), first)
  t.same([bodyObject(other), bodyObject(one)], [{ a: 2 }, { a: 1 }], 'what else is read is not mistaken for it')
  const last = bodyObject(one)
  await new Promise(resolve => { setImmediate(resolve) })
  t.not(bodyObject(one), last)
  t.throws(() => bodyObject(Buffer.from('[]')), { code: 'request.not_an_object' })
  t.throws(() => bodyObject(Buffer.from('{')), { code: 'request.invalid_json' })
})
