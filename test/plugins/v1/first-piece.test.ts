import t, { type Test } from 'tap'
import { giverOf, translated, type ChunkReader } from '../../../kernel/contract/http/translated.js'
import type { DispatchService } from '../../../kernel/contract/index.js'
import { CallSink } from '../../../kernel/dispatch/call/call-sink.js'
import { GeminiAnswer } from '../../../plugins/dialects/gemini/answer.js'
import { chatForm, OllamaAnswer } from '../../../plugins/dialects/ollama/talk/answer.js'
import { MessageEvents } from '../../../plugins/v1/messages/chat-events.js'
import { askChat, type AnswerWriter } from '../../../plugins/v1/over-chat/ref.js'
import { ChatChunks } from '../../../plugins/v1/over-messages/chat-chunks.js'
import { ResponseWriter } from '../../../plugins/v1/responses/chat-answer.js'
import { chatRequest } from '../../../plugins/v1/responses/chat-request.js'

const SSE = 'text/event-stream'
const clock = { now: () => 0, monotonic: () => 0 }
const request = { ...chatRequest({ model: 'm', input: 'x' }, null, { keeps: false, previous: null, conversation: null }), stream: true }
const writers: Readonly<Record<string, () => AnswerWriter>> = {
  'a response': () => new ResponseWriter(request, { model: 'm', createdAt: 1 }),
  'a message': () => new MessageEvents('m'),
  'an answer of Gemini': () => new GeminiAnswer('m', 'events', true),
  'an answer of Ollama': () => new OllamaAnswer({ model: 'm', clock, startedAt: 0, isCold: false, form: chatForm }, true)
}

class Reader implements ChunkReader {
  readonly got: string[] = []
  data (chunk: Buffer): boolean {
    this.got.push(chunk.toString())
    return true
  }

  flush (): void { this.got.push('FLUSH') }
  end (): void { this.got.push('END') }
  fail (): void { this.got.push('FAILED') }
}

/** Checks that what says `one` has left before what says `two` is looked at, of chunks that came together. */
function checkFirst (t: Test, { got }: Reader): void {
  t.match(got[0], /one/)
  t.notMatch(got[0], /two/)
  t.equal(got[1], 'FLUSH')
  t.match(got[2], /two[^]*three/)
  t.equal(got.filter(piece => piece === 'FLUSH').length, 1)
}

const chat = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const begin = chat({ role: 'assistant', content: '' })
const rest = [chat({ content: 'two' }), chat({ content: 'three' }), chat({}, 'stop'), 'data: [DONE]\n\n'].join('')

async function asked (writer: () => AnswerWriter): Promise<{ readonly call: CallSink, readonly reader: Reader }> {
  const { signal } = new AbortController()
  const call = new CallSink(signal)
  const dispatch = { call: () => call.answer } as unknown as DispatchService
  call.head(200, ['content-type', SSE])
  const { body } = await askChat(dispatch, { request: { requestId: 'r', headers: {} }, body: {}, stream: true, writer, warnings: [], signal })
  const reader = new Reader()
  giverOf(body as AsyncIterable<Buffer>)!.give(reader)
  return { call, reader }
}

for (const [name, writer] of Object.entries(writers)) {
  t.test(`the first piece of ${name} leaves before the others are translated that came with it`, async t => {
    const together = await asked(writer)
    together.call.data(Buffer.from(begin + chat({ content: 'one' }) + rest))
    checkFirst(t, together.reader)
    const behind = await asked(writer)
    behind.call.data(Buffer.from(begin))
    behind.call.data(Buffer.from(chat({ content: 'one' }) + rest))
    t.ok(behind.reader.got.findIndex(piece => piece.includes('one')) < behind.reader.got.indexOf('FLUSH'))
    t.notMatch(behind.reader.got[behind.reader.got.indexOf('FLUSH') - 1], /two/)
  })

  t.test(`nothing of ${name} is handed on twice where an engine sends an event at a time`, async t => {
    const { call, reader } = await asked(writer)
    for (const event of [begin, chat({ content: 'one' }), ...rest.split(/(?<=\n\n)/)]) call.data(Buffer.from(event))
    t.notOk(reader.got.includes('FLUSH'))
    t.match(reader.got.join(''), /one[^]*two[^]*three/)
  })
}

t.test('the first piece of a call leaves before the others', async t => {
  const call = (args: string): string => chat({ tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'go', arguments: args } }] })
  const { call: sink, reader } = await asked(writers['a message']!)
  sink.data(Buffer.from(begin + call('one') + call('two') + call('three') + chat({}, 'tool_calls') + 'data: [DONE]\n\n'))
  checkFirst(t, reader)
})

t.test('the first piece of a chat that is made of a message leaves before the others', async t => {
  const call = new CallSink(new AbortController().signal)
  call.head(200, ['content-type', SSE])
  const { body } = await call.answer
  const reader = new Reader()
  giverOf(translated(body, new ChatChunks({ id: 'c', created: 1, model: 'm' }, true)))!.give(reader)
  const event = (type: string, members: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
  const delta = (text: string): string => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
  call.data(Buffer.from([event('message_start', { message: { model: 'x' } }), ...['one', 'two', 'three'].map(delta), event('message_stop', {})].join('')))
  checkFirst(t, reader)
})

t.test('an answer whose writer cannot be made fails with that, and its call is given up', async t => {
  const control = new AbortController()
  const call = new CallSink(control.signal)
  let left = 0
  call.onGone = () => { left++ }
  call.watch()
  const dispatch = { call: () => call.answer } as unknown as DispatchService
  const writer = (): never => { throw new Error('no writer') }
  const asked = askChat(dispatch, { request: { requestId: 'r', headers: {} }, body: {}, stream: true, writer, warnings: [], signal: control.signal })
  await t.rejects(asked, { message: 'no writer' })
  control.abort()
  t.equal(left, 1)
})
