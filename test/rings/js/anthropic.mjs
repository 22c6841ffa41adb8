import assert from 'node:assert/strict'
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { caller, check, failureOf, fitsTool, requestsOf, seer, sentence, thinker, tool, url } from './check.mjs'

const client = new Anthropic({ baseURL: url, apiKey: 'anything' })
const messages = [{ role: 'user', content: 'Who are you?' }]
const question = { model: 'agent', max_tokens: 200, messages }

await check('models.list and models.retrieve', async () => {
  const rows = []
  for await (const row of client.models.list()) rows.push(row)
  assert.ok(rows.every(({ id, display_name: name, created_at: at, type }) => id && name && !Number.isNaN(Date.parse(at)) && type === 'model'))
  assert.equal((await client.models.retrieve('svc/agent')).id, 'svc/agent')
})
await check('a model that nobody knows is refused once', async () => {
  let error
  const took = await requestsOf(async () => { error = await failureOf(client.messages.create({ ...question, model: 'nobody' })) })
  assert.ok(error instanceof Anthropic.NotFoundError)
  assert.equal(error.error.error.type, 'not_found_error')
  assert.equal(took, 1)
})

await check('messages', async () => {
  const answer = await client.messages.create({ ...question, system: 'Be brief.' })
  assert.equal(answer.content[0].text, sentence)
  assert.equal(answer.stop_reason, 'end_turn')
  assert.ok(answer.usage.output_tokens > 10)
})
await check('messages with content parts', async () => {
  const content = [{ type: 'text', text: 'Who' }, { type: 'text', text: 'are you?', cache_control: { type: 'ephemeral' } }]
  const answer = await client.messages.create({ ...question, system: [{ type: 'text', text: 'Be brief.' }], messages: [{ role: 'user', content }] })
  assert.equal(answer.content[0].text, sentence)
})
await check('messages, streamed as plain events', async () => {
  const types = []
  for await (const { type } of await client.messages.create({ ...question, stream: true })) {
    if (types.at(-1) !== type) types.push(type)
  }
  assert.deepEqual(types, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop'])
})
await check('messages.stream', async () => {
  const stream = client.messages.stream(question)
  let text = ''
  stream.on('text', delta => { text += delta })
  const final = await stream.finalMessage()
  assert.equal(text, sentence)
  assert.equal(final.content[0].text, sentence)
  assert.ok(final.usage.output_tokens > 10)
})
await check('a tool, whole and streamed, and its result', async () => {
  const order = {
    ...question, model: caller,
    tools: [{ name: tool.name, description: tool.description, input_schema: tool.parameters }], tool_choice: { type: 'any' }
  }
  const whole = await client.messages.create(order)
  assert.equal(whole.stop_reason, 'tool_use')
  fitsTool(whole.content.find(({ type }) => type === 'tool_use').input)
  const streamed = await client.messages.stream(order).finalMessage()
  const call = streamed.content.find(({ type }) => type === 'tool_use')
  fitsTool(call.input)
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'done' }] }
  const conversation = [...messages, { role: 'assistant', content: streamed.content }, result]
  const after = await client.messages.create({ ...question, messages: conversation, tools: order.tools })
  assert.ok(after.content.length > 0)
})
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const look = [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }] }]

await check('an image, whole, streamed and in the result of a tool', async () => {
  const order = { ...question, model: seer, messages: look }
  assert.equal((await client.messages.create(order)).content[0].text, 'A picture.')
  assert.equal(await client.messages.stream(order).finalText(), 'A picture.')
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: look[0].content }
  const conversation = [
    ...messages, { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: tool.name, input: {} }] }, { role: 'user', content: [result] }
  ]
  assert.equal((await client.messages.create({ ...order, messages: conversation })).content[0].text, 'A picture.')
})
await check('an image for a model that cannot see is refused once', async () => {
  let error
  const took = await requestsOf(async () => { error = await failureOf(client.messages.create({ ...question, messages: look })) })
  assert.ok(error instanceof Anthropic.BadRequestError, String(error))
  assert.match(error.message, /image/)
  assert.equal(took, 1)
})
await check('thinking, whole and streamed, and a turn behind it', async () => {
  const order = { ...question, model: thinker, max_tokens: 2048, thinking: { type: 'enabled', budget_tokens: 1024 } }
  const fits = ({ content, stop_reason: reason }) => {
    assert.deepEqual(content.map(({ type }) => type), ['thinking', 'text'])
    assert.equal(content[0].thinking.trim(), 'I should greet.')
    assert.equal(content[1].text.trim(), 'Hello there')
    assert.equal(reason, 'end_turn')
  }
  const whole = await client.messages.create(order)
  fits(whole)
  const stream = client.messages.stream(order)
  let thought = ''
  stream.on('thinking', delta => { thought += delta })
  fits(await stream.finalMessage())
  assert.equal(thought.trim(), 'I should greet.')
  fits(await client.messages.create({ ...order, messages: [...messages, { role: 'assistant', content: whole.content }, ...messages] }))
})
await check('countTokens', async () => {
  assert.ok((await client.messages.countTokens({ model: 'agent', messages })).input_tokens > 0)
})
await check('beta.messages', async () => {
  const answer = await client.beta.messages.create({ ...question, betas: ['context-1m-2025-08-07'] })
  assert.equal(answer.content[0].text, sentence)
})
await check('beta.messages.toolRunner, whole and streamed', async () => {
  const given = []
  const run = args => {
    given.push(args)
    return 'done'
  }
  const order = {
    ...question, model: caller, max_iterations: 2, tool_choice: { type: 'any' },
    tools: [betaTool({ name: tool.name, description: tool.description, inputSchema: tool.parameters, run })]
  }
  const reasons = []
  for await (const message of client.beta.messages.toolRunner(order)) reasons.push(message.stop_reason)
  assert.equal(reasons[0], 'tool_use')
  assert.equal(reasons.length, 2)
  for await (const stream of client.beta.messages.toolRunner({ ...order, stream: true })) await stream.finalMessage()
  assert.ok(given.length >= 2, String(given.length))
  given.forEach(fitsTool)
})
await check('a request that is wrong is refused once', async () => {
  let error
  const took = await requestsOf(async () => { error = await failureOf(client.messages.create({ model: 'agent', max_tokens: 5 })) })
  assert.ok(error instanceof Anthropic.BadRequestError, String(error))
  assert.ok(error.requestID)
  assert.equal(took, 1)
})
