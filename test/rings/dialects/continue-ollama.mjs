import assert from 'node:assert/strict'
import { constructLlmApi } from '@continuedev/openai-adapters'
import { check, sentence, url } from '../js/check.mjs'

const api = constructLlmApi({ provider: 'ollama', apiBase: `${process.env.RING_OLLAMA ?? url}/v1`, apiKey: 'none' })
const { signal } = new AbortController()
const messages = [{ role: 'user', content: 'Who are you?' }]

await check('ollama of continue: chat', async () => {
  const answer = await api.chatCompletionNonStream({ model: 'agent', messages, stream: false }, signal)
  assert.equal(answer.choices[0].message.content, sentence)
})
await check('ollama of continue: chat, streamed', async () => {
  let text = ''
  for await (const chunk of api.chatCompletionStream({ model: 'agent', messages, stream: true }, signal)) text += chunk.choices[0]?.delta.content ?? ''
  assert.equal(text, sentence)
})
