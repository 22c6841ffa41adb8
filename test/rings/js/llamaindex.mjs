import assert from 'node:assert/strict'
import { OpenAI, OpenAIEmbedding, OpenAIResponses } from '@llamaindex/openai'
import { caller, check, failureOf, fitsTool, requestsOf, sentence, tool, url } from './check.mjs'

const config = { baseURL: `${url}/v1`, apiKey: 'anything' }
const messages = [{ role: 'user', content: 'Who are you?' }]

/** @param repeats OpenAIResponses gives the last piece once more for each event that brings no text, whoever the server */
async function tries (name, make, repeats = false) {
  await check(`${name}: chat`, async () => {
    assert.equal((await make('agent').chat({ messages })).message.content, sentence)
  })
  await check(`${name}: chat, streamed`, async () => {
    let text = ''
    for await (const { delta } of await make('agent').chat({ messages, stream: true })) text += delta
    assert.equal(repeats ? text.slice(0, sentence.length) : text, sentence)
  })
  await check(`${name}: complete`, async () => {
    assert.equal((await make('agent').complete({ prompt: 'Once' })).text, sentence)
  })
  await check(`${name}: a model that nobody knows is asked for once`, async () => {
    const took = await requestsOf(async () => {
      assert.equal((await failureOf(make('nobody').chat({ messages }))).status, 404)
    })
    assert.equal(took, 1)
  })
}

const calls = { metadata: { name: tool.name, description: tool.description, parameters: tool.parameters }, call: () => 'done' }

await tries('OpenAI', model => new OpenAI({ ...config, model }))
await check('OpenAI: a tool', async () => {
  const llm = new OpenAI({ ...config, model: caller, additionalChatOptions: { tool_choice: 'required' }, supportToolCall: true })
  const { message } = await llm.chat({ messages, tools: [calls] })
  fitsTool(message.options.toolCall[0].input)
})
await tries('OpenAIResponses', model => new OpenAIResponses({ ...config, model }), true)
await check('OpenAIEmbedding', async () => {
  const model = new OpenAIEmbedding({ ...config, model: 'embed' })
  assert.ok((await model.getTextEmbedding('one')).length > 10)
  assert.equal((await model.getTextEmbeddings(['one', 'two'])).length, 2)
})
