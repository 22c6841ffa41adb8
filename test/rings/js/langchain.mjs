import assert from 'node:assert/strict'
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { z } from 'zod'
import { caller, check, failureOf, fitsTool, requestsOf, sentence, tool, url } from './check.mjs'

const configuration = { baseURL: `${url}/v1` }
const chat = (model, more = {}) => new ChatOpenAI({ model, apiKey: 'anything', configuration, ...more })
const schema = z.object({ mood: z.enum(['good', 'bad']), sure: z.boolean() })
const forced = [{ type: 'function', function: tool }]

async function tries (name, more) {
  await check(`${name}: invoke`, async () => {
    const answer = await chat('agent', more).invoke([new SystemMessage('Be brief.'), new HumanMessage('Who are you?')])
    assert.equal(answer.text, sentence)
    assert.ok(answer.usage_metadata.total_tokens > 0)
  })
  await check(`${name}: stream`, async () => {
    let whole
    for await (const chunk of await chat('agent', more).stream('Who are you?')) whole = whole === undefined ? chunk : whole.concat(chunk)
    assert.equal(whole.text, sentence)
    assert.ok(whole.usage_metadata.output_tokens > 10)
  })
  await check(`${name}: batch`, async () => {
    const answers = await chat('agent', more).batch(['one', 'two', 'three'])
    assert.deepEqual(answers.map(({ text }) => text), [sentence, sentence, sentence])
  })
  await check(`${name}: withStructuredOutput`, async () => {
    assert.match((await chat('agent', more).withStructuredOutput(schema).invoke('x')).mood, /^(good|bad)$/)
    assert.match((await chat('agent', more).withStructuredOutput(schema, { method: 'jsonSchema', strict: true }).invoke('x')).mood, /^(good|bad)$/)
  })
  await check(`${name}: bindTools, whole and streamed, and the result`, async () => {
    const model = chat(caller, more).bindTools(forced, { tool_choice: 'required' })
    const asked = new HumanMessage('Who are you?')
    const answer = await model.invoke([asked])
    fitsTool(answer.tool_calls[0].args)
    let whole
    for await (const chunk of await model.stream([asked])) whole = whole === undefined ? chunk : whole.concat(chunk)
    fitsTool(whole.tool_calls[0].args)
    const after = await chat('agent', more).invoke([asked, answer, new ToolMessage({ content: 'done', tool_call_id: answer.tool_calls[0].id })])
    assert.equal(after.text, sentence)
  })
}

await tries('chat completions')
await tries('responses', { useResponsesApi: true })
await check('a model that nobody knows is asked for once', async () => {
  let error
  const took = await requestsOf(async () => { error = await failureOf(chat('nobody').invoke('x')) })
  assert.equal(error.status, 404, String(error))
  assert.equal(took, 1)
})
await check('completions', async () => {
  assert.equal(await new OpenAI({ model: 'agent', apiKey: 'anything', configuration }).invoke('Once'), sentence)
})
await check('embeddings', async () => {
  const model = new OpenAIEmbeddings({ model: 'embed', apiKey: 'anything', configuration })
  assert.equal((await model.embedDocuments(['one', 'two'])).length, 2)
  assert.ok((await model.embedQuery('one')).length > 10)
})
