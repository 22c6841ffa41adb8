import assert from 'node:assert/strict'
import OpenAI from 'openai-newest'
import { ResponsesWS } from 'openai-newest/resources/responses/ws'
import { check, sentence, tool, fitsTool, caller, url } from './check.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything' })
const told = ({ output }) => output.find(({ type }) => type === 'message').content[0].text

/** Asks on one connection, one after the other; each resolves with its response. */
async function connected (work) {
  const connection = new ResponsesWS(client)
  const events = connection.stream()
  const ask = async request => {
    connection.send({ type: 'response.create', model: 'agent', input: 'Who are you?', ...request })
    for (;;) {
      const { value } = await events.next()
      if (value.type === 'error') throw value.error
      if (value.type === 'close') throw new Error('the connection closed')
      if (value.type === 'message' && value.message.type === 'response.completed') return value.message
    }
  }
  try {
    await work(ask)
  } finally {
    connection.close()
  }
}

await check('responses over a WebSocket, one after the other, without keeping them', () => connected(async ask => {
  const { response: first } = await ask({ store: false })
  assert.equal(told(first), sentence)
  const { response: second } = await ask({ store: false, previous_response_id: first.id })
  assert.equal(told(second), sentence)
  assert.ok(second.usage.input_tokens > first.usage.input_tokens)
  await assert.rejects(client.responses.retrieve(second.id), { status: 404 })
}))
await check('responses over a WebSocket that are kept', () => connected(async ask => {
  const { response } = await ask({})
  assert.equal((await client.responses.retrieve(response.id)).output_text, sentence)
  await client.responses.delete(response.id)
}))
await check('responses over a WebSocket in a lane', () => connected(async ask => {
  assert.equal((await ask({ stream_id: 'main', store: false })).stream_id, 'main')
}))
await check('responses over a WebSocket with a tool', () => connected(async ask => {
  const { response } = await ask({ model: caller, store: false, tools: [{ type: 'function', strict: false, ...tool }], tool_choice: 'required' })
  fitsTool(response.output.find(({ type }) => type === 'function_call').arguments)
}))
await check('a response that cannot be gone on from is told by its code, and the connection goes on', () => connected(async ask => {
  const error = await ask({ previous_response_id: 'resp_0123456789abcdef0123456789abcdef' }).catch(failure => failure)
  assert.equal(error.error.error.code, 'previous_response_not_found')
  assert.equal(told((await ask({ store: false })).response), sentence)
}))
