import t from 'tap'
import messageRoutes from '../../../plugins/v1/messages/index.js'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import textRoutes from '../../../plugins/v1/text/index.js'
import { saysOneCall } from '../../../plugins/v1/text/one-call.js'
import { chatOnlyGateway, chunksOf, usage, wholeOf, type Said } from './chat-only.js'

const tool = { name: 'weather', parameters: { type: 'object' } }
const messages = [{ role: 'user', content: 'hi' }]
const piece = (index: number, args: string, id?: string): Said['deltas'][number] => ({
  tool_calls: [{ index, ...id === undefined ? {} : { id, type: 'function' }, function: { ...id === undefined ? {} : { name: 'weather' }, arguments: args } }]
})
/** A second call that the limit of the answer cuts, with a word between both. */
const two: Said = {
  deltas: [piece(0, '', 'call_a'), piece(0, '{"place":'), piece(0, '"Rome"}'), { content: 'and' }, piece(1, '{"pl', 'call_b'), piece(2, '', 'call_c')],
  finish: 'length'
}
const one: Said = { deltas: two.deltas.slice(0, 4), finish: 'tool_calls' }

t.test('a client that wants one call at a time gets the first of those that an engine makes', async t => {
  const { gateway, says, asked } = await chatOnlyGateway(t, [messageRoutes, responseRoutes, textRoutes])
  const post = (path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const order = { model: 'agent', messages, tools: [{ type: 'function', function: tool }], parallel_tool_calls: false }
  says(two)

  const whole = await post('/v1/chat/completions', order)
  t.match(whole.headers.get('content-type'), 'application/json')
  t.strictSame(await whole.json(), JSON.parse(wholeOf(one)))
  t.equal(asked().parallel_tool_calls, false, 'the engine is told as well')
  const streamed = await post('/v1/chat/completions', { ...order, stream: true })
  t.match(streamed.headers.get('content-type'), 'text/event-stream')
  t.equal(await streamed.text(), chunksOf(one).join(''), 'with the usage that the engine counts')

  const response = { model: 'agent', input: 'hi', tools: [{ type: 'function', ...tool }], parallel_tool_calls: false, store: false }
  const told = { status: 'completed', output: [{ type: 'function_call', call_id: 'call_a', arguments: '{"place":"Rome"}' }], usage: { output_tokens: usage.completion_tokens } }
  const answered = await (await post('/v1/responses', response)).json() as { output: Array<{ type: string }> }
  t.match({ ...answered, output: answered.output.filter(({ type }) => type === 'function_call') }, told)
  t.notMatch(await (await post('/v1/responses', { ...response, stream: true })).text(), /call_b|call_c|response\.incomplete/)

  const message = { model: 'agent', max_tokens: 9, messages, tools: [{ name: 'weather', input_schema: {} }], tool_choice: { type: 'any', disable_parallel_tool_use: true } }
  const said = await (await post('/v1/messages', message)).json() as { content: Array<{ type: string }> }
  t.match({ ...said, content: said.content.filter(({ type }) => type === 'tool_use') }, { stop_reason: 'tool_use', content: [{ id: 'call_a' }] })
  t.notMatch(await (await post('/v1/messages', { ...message, stream: true })).text(), /call_b|call_c|max_tokens/)
})

t.test('whatever else a request with tools says, its answer passes byte for byte', async t => {
  const { gateway, says } = await chatOnlyGateway(t, [textRoutes])
  const ask = async (body: object): Promise<string> => {
    const given = { messages, tools: [{ type: 'function', function: tool }], ...body }
    const headers = { 'content-type': 'application/json' }
    return (await gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body: JSON.stringify(given) })).text()
  }
  says(two)
  const alone = { tools: [], parallel_tool_calls: false }
  const bodies = [{}, { parallel_tool_calls: true }, { parallel_tool_calls: null }, alone]
  for (const body of bodies.slice(0, 3)) t.equal(await ask({ model: 'agent', ...body }), wholeOf(two))
  t.equal(await ask({ model: 'gpt-9', parallel_tool_calls: false }), wholeOf(two), 'an upstream judges it itself')
  says(one)
  for (const body of bodies) t.equal(await ask({ model: 'agent', ...body, stream: true }), chunksOf(one).join(''))
  says(two, { status: 400, chunks: ['{"error":{"message":"no such tool"}}'] })
  t.equal(await ask({ model: 'agent', parallel_tool_calls: false }), '{"error":{"message":"no such tool"}}')
})

t.test('only a body that says false to parallel calls is read for that', t => {
  for (const text of ['{}', '{"parallel_tool_calls":true}', '{"parallel_tool_calls" : null}', '{"x":"parallel_tool_calls","y":false}', '{"parallel_tool_calls"']) {
    t.notOk(saysOneCall(Buffer.from(text)), text)
  }
  for (const text of ['{"parallel_tool_calls":false}', '{"parallel_tool_calls"\n :\t false}', '{"parallel_tool_calls":true,"parallel_tool_calls":false}']) {
    t.ok(saysOneCall(Buffer.from(text)), text)
  }
  t.end()
})
