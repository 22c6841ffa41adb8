import assert from 'node:assert/strict'
import fc from '../../../property.js'
import t from 'tap'
import { canCallTools, canSee } from '../../../../plugins/v1/omni/abilities.js'
import { attachmentsOf, withNames } from '../../../../plugins/v1/omni/attachments.js'
import { toolCallsOf } from '../../../../plugins/v1/omni/completion.js'
import { streamEvents, type StreamEvent } from '../../../../plugins/v1/omni/sse-events.js'
import { readRound } from '../../../../plugins/v1/omni/streamed-round.js'
import { StreamedCalls } from '../../../../plugins/v1/omni/streamed-calls.js'
import { slotOf } from '../../../kernel/slots/plan/launch-input.js'

async function read (bytes: Buffer, cuts: readonly number[]): Promise<StreamEvent[]> {
  const places = [...new Set(cuts.map(cut => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  const pieces = [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length))
  const body = { async* [Symbol.asyncIterator] () { yield* pieces } }
  const events: StreamEvent[] = []
  for await (const event of streamEvents(body)) events.push(event)
  return events
}

t.test('an empty reason, as LocalAI has it in every chunk, keeps no text back', async t => {
  const events = ['At ', 'Acme.', ''].map((content, i) => JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: i < 2 ? '' : 'stop' }] }))
  const round = readRound((async function* () { for (const data of events) yield { raw: Buffer.from(data), data } })(), 1, null)
  t.strictSame([String((await round.next()).value), String((await round.next()).value)], events.slice(0, 2))
  t.match(await round.next(), { done: true, value: { message: { content: 'At Acme.' }, kept: { length: 1 } } })
})

t.test('a stream is cut into its events, wherever it was cut on its way', async () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 12 }).filter(text => !/[\r\n]/.test(text))
  const event = fc.record({
    lines: fc.array(line, { minLength: 1, maxLength: 3 }),
    space: fc.constantFrom('', ' '),
    end: fc.constantFrom('\n', '\r\n'),
    comment: fc.boolean()
  })
  const streams = fc.array(event, { maxLength: 6 })
  await fc.assert(fc.asyncProperty(streams, fc.array(fc.nat(), { maxLength: 12 }), async (events, cuts) => {
    const text = events.map(({ lines, space, end, comment }) =>
      `${comment ? `: hm${end}` : ''}${lines.map(line => `data:${space}${line}${end}`).join('')}${end}`)
    const bytes = Buffer.from(text.join(''))
    const seen = await read(bytes, cuts)
    assert.deepEqual(Buffer.concat(seen.map(({ raw }) => raw)), bytes, 'no byte is lost or changed')
    const said = (line: string, space: string): string => space === '' && line.startsWith(' ') ? line.slice(1) : line
    const expected = events.map(({ lines, space }) => lines.map(line => said(line, space)).join('\n'))
    assert.deepEqual(seen.map(({ data }) => data).filter(data => data !== null), expected)
  }), { numRuns: 1000 })
})

t.test('what comes without an end, and what never ends', async t => {
  t.strictSame((await read(Buffer.from('data: a\n\ndata: b'), [])).map(({ data }) => data), ['a', 'b'])
  const endless = { async* [Symbol.asyncIterator] () { for (let i = 0; i < 100; i++) yield Buffer.alloc(1024 * 1024, 'x') } }
  await t.rejects((async () => { for await (const _ of streamEvents(endless)); })(), { code: 'dispatch.upstream_failed' })
})

t.test('streamed calls are put together by their index', async t => {
  const calls = new StreamedCalls()
  calls.add([{ index: 1, id: 'b', function: { name: 'two', arguments: '{' } }, { index: 0, function: { name: 'one' } }])
  calls.add([{ index: 0, function: { name: 'one', arguments: '{"a":' } }, null])
  calls.add([{ index: 0, function: { arguments: '1}' } }, { index: 1, id: 'other', function: { arguments: '}' } }])
  t.strictSame(calls.whole(3).slice(0, 2), [
    { id: 'call_3_0', type: 'function', function: { name: 'one', arguments: '{"a":1}' } },
    { id: 'b', type: 'function', function: { name: 'two', arguments: '{}' } }
  ])
  t.strictSame(toolCallsOf({ tool_calls: [{ function: { name: 'x', arguments: { a: 1 } } }, { id: '', function: { name: 'y' } }] }, 2), [
    { id: 'call_2_0', type: 'function', function: { name: 'x', arguments: '{"a":1}' } }, { id: 'call_2_1', type: 'function', function: { name: 'y', arguments: '{}' } }
  ], 'arguments as an object, and none at all')
})

t.test('attachments have names, in order, over all messages', async t => {
  const image = (url: string): object => ({ type: 'image_url', image_url: { url } })
  const audio = { type: 'input_audio', input_audio: { data: 'AA==', format: 'mp3' } }
  const text = { type: 'text', text: 'x' }
  const messages = [
    { role: 'system', content: 'be' }, { role: 'user', content: [text, image('one'), audio] }, null,
    { role: 'user', content: [{ type: 'image_url', image_url: 'two' }, { type: 'image_url' }, null] }
  ]
  t.strictSame([...attachmentsOf(messages)], [
    ['image_1', { kind: 'image', content: 'one', format: '' }], ['audio_1', { kind: 'audio', content: 'AA==', format: 'mp3' }],
    ['image_2', { kind: 'image', content: 'two', format: '' }]
  ])
  const named = (name: string): object => ({ type: 'text', text: `[attached: ${name}]` })
  t.strictSame(withNames(messages, { image: true, audio: false }), [
    messages[0], { role: 'user', content: [text, named('image_1'), audio] }, null,
    { role: 'user', content: [named('image_2'), { type: 'image_url' }, null] }
  ])
  t.strictSame(withNames(messages, { image: false, audio: false }), messages)
})

t.test('who can call tools, and who can see', async t => {
  const model = (row: object) => ({ get: () => ({ tags: [], capabilities: [], metadata: {}, mmproj: null, ...row }) as never })
  const none = { get: () => undefined }
  const slot = (labels: string[], more: object = {}) => slotOf({ model: { default: 'm', labels }, ...more }, 'a')
  t.equal(canCallTools(slot(['tool-calling']), none), true)
  t.equal(canCallTools(slot([]), model({ tags: ['tool-calling'] })), true)
  t.equal(canCallTools(slot([]), model({ metadata: { tool_calling: true } })), true)
  t.equal(canCallTools(slot([]), model({ metadata: { tool_calling: 'yes' } })), false)
  t.equal(canCallTools(slot(['vision']), none), false)
  t.equal(canSee(slot(['vision']), none), true)
  t.equal(canSee(slot([]), model({ capabilities: ['vision'] })), true)
  t.equal(canSee(slot([]), model({ mmproj: '/p' })), true)
  t.equal(canSee(slot(['vision'], { vision: false }), model({ mmproj: '/p' })), false)
  t.equal(canSee(slot([]), none), false)
})
