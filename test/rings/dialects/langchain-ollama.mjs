import assert from 'node:assert/strict'
import { ChatOllama, Ollama, OllamaEmbeddings } from '@langchain/ollama'
import { caller, check, fitsTool, sentence, tool, url } from '../js/check.mjs'

const baseUrl = process.env.RING_OLLAMA ?? url
const chat = new ChatOllama({ baseUrl, model: 'agent' })

await check('ChatOllama: invoke', async () => {
  const answer = await chat.invoke([['system', 'Be brief.'], ['user', 'Who are you?']])
  assert.equal(answer.content, sentence)
  assert.ok(answer.usage_metadata.output_tokens > 10)
})
await check('ChatOllama: stream', async () => {
  let text = ''
  for await (const { content } of await chat.stream('Who are you?')) text += content
  assert.equal(text, sentence)
})
await check('ChatOllama: a schema', async () => {
  const schema = { type: 'object', properties: { mood: { enum: ['good', 'bad'] } }, required: ['mood'] }
  const { mood } = await chat.withStructuredOutput(schema, { method: 'jsonSchema' }).invoke('How are you?')
  assert.match(mood, /^(good|bad)$/)
})
await check('ChatOllama: a tool', async () => {
  const { tool_calls: calls } = await new ChatOllama({ baseUrl, model: caller }).bindTools([{ type: 'function', function: tool }]).invoke('x')
  fitsTool(calls[0].args)
})
await check('Ollama: a prompt', async () => assert.equal(await new Ollama({ baseUrl, model: 'agent' }).invoke('Who are you?'), sentence))
await check('OllamaEmbeddings', async () => {
  const vectors = await new OllamaEmbeddings({ baseUrl, model: 'embed' }).embedDocuments(['one', 'two'])
  assert.ok(vectors.length === 2 && vectors[0].length > 10)
})
