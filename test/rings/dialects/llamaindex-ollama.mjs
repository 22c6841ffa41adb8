import assert from 'node:assert/strict'
import { Ollama, OllamaEmbedding } from '@llamaindex/ollama'
import { caller, check, fitsTool, sentence, tool, url } from '../js/check.mjs'

const config = { host: process.env.RING_OLLAMA ?? url }
const llm = new Ollama({ model: 'agent', config })
const messages = [{ role: 'user', content: 'Who are you?' }]

await check('Ollama: chat', async () => assert.equal((await llm.chat({ messages })).message.content, sentence))
await check('Ollama: chat, streamed', async () => {
  let text = ''
  for await (const { delta } of await llm.chat({ messages, stream: true })) text += delta
  assert.equal(text, sentence)
})
await check('Ollama: complete', async () => assert.equal((await llm.complete({ prompt: 'Who are you?' })).text, sentence))
await check('Ollama: a tool, and its result', async () => {
  const called = { metadata: { name: tool.name, description: tool.description, parameters: tool.parameters }, call: () => 'done' }
  const { message } = await new Ollama({ model: caller, config }).chat({ messages, tools: [called] })
  const [{ id, input }] = message.options.toolCall
  fitsTool(input)
  const result = { role: 'user', content: 'done', options: { toolResult: { id, result: 'done', isError: false } } }
  assert.equal((await llm.chat({ messages: [...messages, message, result] })).message.content, sentence)
})
await check('OllamaEmbedding', async () => {
  assert.ok((await new OllamaEmbedding({ model: 'embed', config }).getTextEmbedding('one')).length > 10)
})
