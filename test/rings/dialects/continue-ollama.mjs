import assert from 'node:assert/strict'
import { constructLlmApi } from '@continuedev/openai-adapters'
import { caller, check, engine, failureOf, fitsTool, sentence, tool, url } from '../js/check.mjs'

const api = constructLlmApi({ provider: 'ollama', apiBase: `${process.env.RING_OLLAMA ?? url}/v1/`, apiKey: 'none' })
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
await check('ollama of continue: a tool, streamed', async () => {
  let args = ''
  const order = { model: caller, messages, stream: true, tools: [{ type: 'function', function: tool }] }
  for await (const chunk of api.chatCompletionStream(order, signal)) args += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? ''
  fitsTool(args)
})
await check('ollama of continue: completions, whole and streamed', async () => {
  assert.equal((await api.completionNonStream({ model: 'agent', prompt: 'Once', stream: false }, signal)).choices[0].text, sentence)
  let text = ''
  for await (const chunk of api.completionStream({ model: 'agent', prompt: 'Once', stream: true }, signal)) text += chunk.choices[0]?.text ?? ''
  assert.equal(text, sentence)
})
const gap = async () => {
  let text = ''
  const order = { model: 'agent', prompt: 'def one():', suffix: 'end', max_tokens: 200, stream: true }
  for await (const chunk of api.fimStream(order, signal)) text += chunk.choices[0]?.delta.content ?? ''
  return text
}
if (engine === 'llama') await check('ollama of continue: fim', async () => assert.equal(await gap(), sentence))
else await check('ollama of continue: fim, on an engine that fills no gaps', async () => assert.match(String(await failureOf(gap())), /does not serve \/infill/))
await check('ollama of continue: embed', async () => {
  assert.equal((await api.embed({ model: 'embed', input: ['one', 'two'] })).data.length, 2)
})
await check('ollama of continue: rerank', async () => {
  const { data, results } = await api.rerank({ model: 'rerank', query: 'cats', documents: ['dogs 2', 'cats 9'] })
  assert.equal((data ?? results).length, 2)
})
await check('ollama of continue: list', async () => assert.ok((await api.list()).some(({ id }) => id === 'svc/agent')))
