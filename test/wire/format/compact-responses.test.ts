import OpenAI from 'openai'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import t from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { chatOnlyGateway } from './chat-only.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const model = 'agent'
const PICTURE = 'data:image/png;base64,iVBORw0KGgo='
const talk: ResponseInputItem[] = [
  { role: 'user', content: 'My name is Ada.' },
  { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: '{"at":"Rome"}' },
  { type: 'function_call_output', call_id: 'call_a', output: 'sun' },
  { role: 'user', content: [{ type: 'input_text', text: 'Look.' }, { type: 'input_image', image_url: PICTURE, detail: 'auto' }] },
  { role: 'assistant', content: 'A cat.' }
]

t.test('a conversation is brought to a summary', async t => {
  const { gateway, says, asked, upstream } = await chatOnlyGateway(t, [responseRoutes])
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const summary = 'Ada asked for the weather in Rome: sun.'

  t.test('of all of it, behind what the user said, and a request goes on from there', async t => {
    says({ deltas: [{ reasoning_content: 'hm' }, { content: summary }] })
    const compacted = await client.responses.compact({ model, input: talk, instructions: 'Be brief.' })
    t.match(compacted, { id: /^resp_/, object: 'response.compaction', usage: { input_tokens: 20, output_tokens: 7, total_tokens: 27 } })
    t.match(compacted.output, [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'My name is Ada.' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text' }, { type: 'input_image', image_url: PICTURE }] },
      { type: 'compaction', id: /^cmp_/, encrypted_content: String }
    ])
    t.match(asked(), { max_tokens: 4096, chat_template_kwargs: { enable_thinking: false } }, 'none of its tokens go into thoughts')
    const [task, said] = asked().messages as [{ role: string }, { role: string, content: Array<{ type: string, text?: string }> }]
    t.equal(task.role, 'system')
    t.match(said, { role: 'user', content: [{ type: 'text' }, { type: 'image_url', image_url: { url: PICTURE } }, { type: 'text' }] })
    const text = said.content.map(part => part.text ?? '').join('')
    for (const part of ['Be brief.', 'My name is Ada.', 'weather', 'Rome', 'sun', 'A cat.']) t.match(text, part)

    says({ deltas: [{ content: 'You are Ada.' }] })
    const input = [...compacted.output, { role: 'user' as const, content: 'Who am I?' }] as ResponseInputItem[]
    await client.responses.create({ model, input })
    t.match(asked(), {
      messages: [
        { role: 'user', content: 'My name is Ada.' }, { role: 'user' },
        { role: 'assistant', content: new RegExp(summary) }, { role: 'user', content: 'Who am I?' }
      ]
    })
    await client.responses.compact({ model, input })
    t.match(JSON.stringify(asked().messages), summary, 'a summary goes into the next one')
  })

  t.test('of what is kept', async t => {
    says({ deltas: [{ content: 'Hello, Ada.' }] })
    const { id } = await client.responses.create({ model, input: 'I am Ada.' })
    says({ deltas: [{ content: summary }] })
    const { output } = await client.responses.compact({ model, previous_response_id: id })
    t.match(output, [{ role: 'user', content: [{ text: 'I am Ada.' }] }, { type: 'compaction' }])
    t.match(JSON.stringify(asked().messages), 'Hello, Ada.')
    await t.rejects(client.responses.compact({ model, previous_response_id: 'resp_1' }), { message: /previous_response_id/ })
  })

  t.test('by a model that writes one, or it fails', async t => {
    says({ deltas: [{ reasoning_content: 'hm' }] })
    await t.rejects(client.responses.compact({ model, input: 'hi' }), { message: /no summary/ })
    says({ deltas: [] }, { status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"too long"}}'] })
    await t.rejects(client.responses.compact({ model, input: 'hi' }), { message: /too long/ })
    await t.rejects(client.responses.compact({ model, input: [{ type: 'computer_call' }] as never }), { message: /computer_call/ })
    await t.rejects(client.responses.compact({ model, input: [], instructions: 'Be brief.' }), { status: 400, message: /'input' has nothing of a conversation/ })
  })

  t.test('by the upstream where it has the route, in its own words', async t => {
    const own = { id: 'resp_9', object: 'response.compaction', created_at: 1, output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }], usage: {} }
    upstream.engine.answer({ headers: JSON_TYPE, chunks: [JSON.stringify(own)] })
    t.strictSame(await client.responses.compact({ model: 'gpt-9', input: 'hi' }), own)
    t.match(upstream.calls.at(-1), { url: /\/responses\/compact$/ })
    t.match(JSON.parse(upstream.calls.at(-1)!.body.toString()), { input: 'hi' })
  })

  t.test('by the model of an upstream that speaks chat alone, in words that any of them knows', async t => {
    says({ deltas: [{ content: summary }] })
    await client.responses.compact({ model: 'gpt-9', input: 'hi' })
    t.strictSame(Object.keys(asked()), ['model', 'max_tokens', 'messages'])
  })
})

t.test('the tokens of a request for a response are counted', async t => {
  const { gateway, says, upstream } = await chatOnlyGateway(t, [responseRoutes])
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const engine = gateway.runtime.engine('agent')
  const tools = [{ type: 'function' as const, name: 'weather', parameters: {}, strict: false }]

  t.test('by the template and tokenizer of an engine', async t => {
    engine.answer(({ url }) => ({ headers: JSON_TYPE, chunks: [url.endsWith('/tokenize') ? '{"tokens":[1,2,3]}' : '{"prompt":"hi there"}'] }))
    const { data, response } = await client.responses.inputTokens.count({ model, input: talk.slice(0, 3), instructions: 'x', tools }).withResponse()
    t.strictSame(data, { object: 'response.input_tokens', input_tokens: 3 })
    t.equal(response.headers.get('x-svc-estimate'), null)
    const warned = await client.responses.inputTokens.count({ model, input: 'hi', tools: [{ type: 'web_search' }] }).withResponse()
    t.match(warned.response.headers.get('x-svc-warning'), /web_search/, 'what its request is warned of')
    const template = engine.requests.find(({ url }) => url.endsWith('/apply-template'))!
    t.match(JSON.parse(template.body.toString()), {
      messages: [{ role: 'system' }, { role: 'user' }, { role: 'assistant', tool_calls: [{}] }, { role: 'tool' }], tools: [{ function: { name: 'weather' } }]
    })
  })

  t.test('with what it goes on from, and estimated where an engine has no tokenizer', async t => {
    says({ deltas: [{ content: 'Hello, Ada, '.repeat(100) }] })
    const { id } = await client.responses.create({ model, input: 'I am Ada.' })
    const count = async (body: object): Promise<number> => {
      const { data, response } = await client.responses.inputTokens.count({ model, ...body }).withResponse()
      t.equal(response.headers.get('x-svc-estimate'), 'input_tokens')
      return data.input_tokens
    }
    const alone = await count({ input: 'more' })
    t.ok(alone < 20, String(alone))
    const behind = await count({ input: 'more', previous_response_id: id })
    t.ok(behind > 290, String(behind))
    const { id: conversation } = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'x'.repeat(400) }] })
    t.ok(await count({ conversation }) > 99)
    await t.rejects(client.responses.inputTokens.count({ model, input: 'x', previous_response_id: 'resp_1' }), { message: /previous_response_id/ })
  })

  t.test('by the upstream where it has the route', async t => {
    upstream.engine.answer({ headers: JSON_TYPE, chunks: ['{"object":"response.input_tokens","input_tokens":11}'] })
    t.strictSame(await client.responses.inputTokens.count({ model: 'gpt-9', input: 'hi' }), { object: 'response.input_tokens', input_tokens: 11 })
    t.match(upstream.calls.at(-1), { url: /\/responses\/input_tokens$/ })
  })
})
