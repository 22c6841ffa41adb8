import assert from 'node:assert/strict'
import { constructLlmApi } from '@continuedev/openai-adapters'
import { caller, check, engine, failureOf, fitsTool, requestsOf, sentence, tool, url } from './check.mjs'

const { signal } = new AbortController()
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Who are you?' }]

async function tries (name, api) {
  await check(`${name}: chat`, async () => {
    const answer = await api.chatCompletionNonStream({ model: 'agent', messages, stream: false, max_tokens: 200 }, signal)
    assert.equal(answer.choices[0].message.content, sentence)
  })
  await check(`${name}: chat, streamed`, async () => {
    let text = ''
    for await (const chunk of api.chatCompletionStream({ model: 'agent', messages, stream: true, max_tokens: 200 }, signal)) text += chunk.choices[0]?.delta.content ?? ''
    assert.equal(text, sentence)
  })
  await check(`${name}: a tool, streamed`, async () => {
    let args = ''
    const order = { model: caller, messages, stream: true, max_tokens: 200, tools: [{ type: 'function', function: tool }], tool_choice: 'required' }
    for await (const chunk of api.chatCompletionStream(order, signal)) args += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? ''
    fitsTool(args)
  })
  await check(`${name}: a model that nobody knows is asked for once`, async () => {
    const took = await requestsOf(async () => {
      await failureOf(api.chatCompletionNonStream({ model: 'nobody', messages, stream: false, max_tokens: 5 }, signal))
    })
    assert.equal(took, 1)
  })
}

const apiBase = `${url}/v1/`
for (const provider of ['openai', 'lmstudio', 'llama.cpp', 'vllm']) {
  const api = constructLlmApi({ provider, apiKey: 'anything', apiBase })
  if (api === undefined) continue
  await tries(provider, api)
}
const api = constructLlmApi({ provider: 'openai', apiKey: 'anything', apiBase })
await check('list', async () => {
  assert.ok((await api.list()).some(({ id }) => id === 'svc/agent'))
})
await check('completions, whole and streamed', async () => {
  assert.equal((await api.completionNonStream({ model: 'agent', prompt: 'Once', stream: false }, signal)).choices[0].text, sentence)
  let text = ''
  for await (const chunk of api.completionStream({ model: 'agent', prompt: 'Once', stream: true }, signal)) text += chunk.choices[0]?.text ?? ''
  assert.equal(text, sentence)
})
await check('embed', async () => {
  assert.equal((await api.embed({ model: 'embed', input: ['one', 'two'] })).data.length, 2)
})
await check('rerank', async () => {
  const { data, results } = await api.rerank({ model: 'rerank', query: 'cats', documents: ['dogs 2', 'cats 9'] })
  assert.equal((data ?? results).length, 2)
})
for (const provider of ['openai', 'mistral', 'llamastack']) {
  const gaps = constructLlmApi({ provider, apiKey: 'anything', apiBase })
  const order = { model: 'agent', prompt: 'def one():', suffix: 'end', max_tokens: 200, stream: true }
  const read = async () => {
    let text = ''
    for await (const chunk of gaps.fimStream(order, signal)) text += chunk.choices[0]?.delta.content ?? ''
    return text
  }
  if (engine === 'llama') await check(`${provider}: fim`, async () => assert.equal(await read(), sentence))
  else await check(`${provider}: fim, on an engine that fills no gaps`, async () => assert.match(String(await failureOf(read())), /does not serve \/infill; install llama-server/))
}
await tries('anthropic', constructLlmApi({ provider: 'anthropic', apiKey: 'anything', apiBase }))
