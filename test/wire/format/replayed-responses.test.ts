import OpenAI from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import t from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { chatOnlyGateway, type Said } from './chat-only.js'
import { until } from '../wire-gateway.js'

const model = 'agent'
const parameters = { type: 'object', properties: {} }
const tools = [
  { type: 'function' as const, name: 'weather', parameters, strict: false },
  { type: 'custom' as const, name: 'shell' }
]
const call = (index: number, name: string, args: string): object => ({ index, id: `call_${index}`, type: 'function', function: { name, arguments: args } })
/** Longer than a piece, with a character of two halves where a piece ends. */
const LONG = `${'a'.repeat(2047)}🎈${'é'.repeat(3000)}`
const saying: Said = {
  deltas: [{ reasoning_content: 'hm' }, { content: LONG }, { tool_calls: [call(0, 'weather', '{"at":1}'), call(1, 'shell', '{"input":"ls"}')] }],
  finish: 'tool_calls'
}

async function all (stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

t.test('a kept response is streamed again', async t => {
  const { gateway, says } = await chatOnlyGateway(t, [responseRoutes])
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const engine = gateway.runtime.engine('agent')
  const failure = (query: string, id: string): Promise<Response> => fetch(`${gateway.baseUrl}/v1/responses/${id}?${query}`)

  t.test('its events have the names and the order of the stream that it came by, and make the same response', async t => {
    says(saying)
    const live = await all(await client.responses.create({ model, input: 'hi', tools, stream: true }))
    const last = live.at(-1)!
    if (last.type !== 'response.completed') return t.fail(last.type)
    const { id } = last.response
    const again = await all(await client.responses.retrieve(id, { stream: true }))
    const kinds = (events: readonly ResponseStreamEvent[]): string[] =>
      events.map(({ type }) => type).filter((type, i, types) => type !== types[i - 1])
    const byItem = (events: readonly ResponseStreamEvent[]): unknown[] => [0, 1, 2, 3].map(index =>
      kinds(events.filter(event => 'output_index' in event && event.output_index === index)))
    t.strictSame(byItem(again), byItem(live))
    t.strictSame(kinds(again).slice(0, 2), ['response.created', 'response.in_progress'])
    t.strictSame(again.map(({ sequence_number: number }) => number), again.map((_, i) => i))
    const { output_text: _, ...kept } = await client.responses.retrieve(id)
    t.strictSame(again.at(-1), { type: 'response.completed', sequence_number: again.length - 1, response: kept })
    const texts = again.flatMap(event => event.type === 'response.output_text.delta' ? [event.delta] : [])
    t.equal(texts.join(''), LONG)
    t.ok(texts.length > 1, 'in pieces')
    t.notOk(texts.some(text => /[\ud800-\udbff]$/.test(text)), 'that are whole characters')
    t.match(again[0], { response: { id, status: 'in_progress', output: { length: 0 }, usage: null } })
    t.match(again.find(({ type }) => type === 'response.output_item.added'), { item: { status: 'in_progress' } })

    t.test('and the client\'s own reader puts it together', async t => {
      const final = await client.responses.stream({ response_id: id }).finalResponse()
      const output = [{}, {}, { name: 'weather', arguments: '{"at":1}' }, { name: 'shell', input: 'ls' }]
      t.match(final, { id, status: 'completed', output_text: LONG, output })
    })

    t.test('a reader goes on behind each number as if it had not been away', async t => {
      for (let after = 0; after < again.length; after++) {
        const rest = await client.responses.retrieve(id, { stream: true, starting_after: after })
        t.strictSame(await all(rest), again.slice(after + 1))
      }
      await t.rejects(client.responses.retrieve(id, { stream: true, starting_after: again.length }), { code: 'validation.invalid', message: /starting_after/ })
    })
  })

  t.test('one that is being made in the background begins at once and goes on when it is over', async t => {
    let go = (): void => {}
    const after = new Promise<void>(resolve => { go = resolve })
    says({ deltas: [{ content: 'Done.' }] }, { after })
    const { id } = await client.responses.create({ model, input: 'hi', background: true })
    await until(() => engine.active > 0, 'the engine works')
    const stream = (await client.responses.retrieve(id, { stream: true }))[Symbol.asyncIterator]()
    const begun: unknown[] = []
    for (let i = 0; i < 3; i++) begun.push((await stream.next()).value)
    t.match(begun, [
      { type: 'response.created', response: { status: 'queued' } }, { type: 'response.queued' },
      { type: 'response.in_progress', response: { id, status: 'in_progress' } }
    ])
    const left = new AbortController()
    await client.responses.retrieve(id, { stream: true }, { signal: left.signal })
    left.abort()
    go()
    const rest = await all({ [Symbol.asyncIterator]: () => stream })
    t.match(rest.at(-1), { type: 'response.completed', response: { id, status: 'completed', background: true } })
    const again = await all(await client.responses.retrieve(id, { stream: true }))
    t.strictSame(again.slice(3), rest, 'later it is the same')
    t.match(again.slice(0, 3), [{ response: { status: 'queued' } }, { type: 'response.queued' }, { response: { status: 'in_progress', output: { length: 0 } } }])
    t.strictSame(await all(await client.responses.retrieve(id, { stream: true, starting_after: 2 })), rest)
  })

  t.test('one that is cancelled or deleted meanwhile ends its stream', async t => {
    says(saying, { headAfterMs: Infinity })
    const start = async (): Promise<{ id: string, rest: Promise<ResponseStreamEvent[]> }> => {
      const { id } = await client.responses.create({ model, input: 'hi', background: true })
      const stream = await client.responses.retrieve(id, { stream: true, starting_after: 1 })
      const events = stream[Symbol.asyncIterator]()
      t.match(await events.next(), { value: { type: 'response.in_progress' } })
      return { id, rest: all({ [Symbol.asyncIterator]: () => events }) }
    }
    const cancelled = await start()
    await client.responses.cancel(cancelled.id)
    t.match(await cancelled.rest, [{ type: 'response.incomplete', response: { status: 'cancelled' } }])
    const deleted = await start()
    const told = t.rejects(deleted.rest, { code: 'responses.not_found' })
    await client.responses.delete(deleted.id)
    await told
  })

  t.test('what cannot be had is refused before a stream begins', async t => {
    await t.rejects(client.responses.retrieve('resp_1', { stream: true }), { status: 404, code: 'responses.not_found' })
    const refused = [['stream=perhaps', 'stream'], ...['-1', '', '0x3', '1e3', ' 1', '1.5'].map(text => [`stream=true&starting_after=${text}`, 'starting_after'] as const), ['starting_after=1', 'starting_after']] as const
    for (const [query, param] of refused) {
      const answer = await failure(query, 'resp_1')
      t.equal(answer.status, 400, query)
      t.match(await answer.text(), param)
    }
  })
})
