import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { check, sentence, url } from './check.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything' })
const order = { model: 'agent', input: 'Who are you?' }

async function all (stream) {
  const events = []
  for await (const event of stream) events.push(event)
  return events
}

await check('responses in the background, streamed, left and read on from each event', async () => {
  const left = await client.responses.create({ ...order, background: true, stream: true })
  const { value: first } = await left[Symbol.asyncIterator]().next()
  left.controller.abort()
  const { id } = first.response
  const rest = await all(await client.responses.retrieve(id, { stream: true, starting_after: first.sequence_number }))
  const events = [first, ...rest]
  assert.deepEqual(events.map(event => event.sequence_number), events.map((_, i) => i))
  assert.equal(events.at(-1).type, 'response.completed')
  for (const after of [2, Math.floor(events.length / 2), events.length - 2]) {
    const behind = await all(await client.responses.retrieve(id, { stream: true, starting_after: after }))
    assert.deepEqual(behind, events.slice(after + 1))
  }
  assert.equal((await client.responses.stream({ response_id: id }).finalResponse()).output_text, sentence)
})
await check('a conversation, its items, and responses in it', async () => {
  const items = [{ type: 'message', role: 'user', content: 'I am Ada.' }]
  const conversation = await client.conversations.create({ metadata: { of: 'ring' }, items })
  const alone = await client.responses.create(order)
  const inside = await client.responses.create({ ...order, conversation: conversation.id })
  assert.equal(inside.output_text, sentence)
  assert.ok(inside.usage.input_tokens > alone.usage.input_tokens, 'the model read what is in it')
  const roles = []
  for await (const { role } of client.conversations.items.list(conversation.id, { order: 'asc' })) roles.push(role)
  assert.deepEqual(roles, ['user', 'user', 'assistant'])
  assert.deepEqual((await client.conversations.retrieve(conversation.id)).metadata, { of: 'ring' })
  assert.equal((await client.conversations.delete(conversation.id)).deleted, true)
})
await check('responses.compact, and on from there', async () => {
  const { output } = await client.responses.compact(order)
  assert.deepEqual(output.map(({ type }) => type), ['message', 'compaction'])
  const next = await client.responses.create({ ...order, input: [...output, { role: 'user', content: 'And now?' }] })
  assert.equal(next.output_text, sentence)
})
await check('responses.inputTokens.count', async () => {
  const { input_tokens: short } = await client.responses.inputTokens.count(order)
  const { input_tokens: long } = await client.responses.inputTokens.count({ ...order, instructions: 'Be brief, and answer in one sentence.' })
  assert.ok(short > 0 && long > short, `${short} and ${long}`)
})
