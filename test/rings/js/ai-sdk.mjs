import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import * as ai from 'ai'
import { z } from 'zod'
import { caller, check, failureOf, fitsTool, media, requestsOf, sentence, tool, url } from './check.mjs'

const prompt = 'Who are you?'
const schema = z.object({ mood: z.enum(['good', 'bad']), sure: z.boolean() })
const tools = { [tool.name]: ai.tool({ description: tool.description, inputSchema: ai.jsonSchema(tool.parameters) }) }

/** What an application does with a language model, whoever makes it. */
async function tries (name, model, { forces = true, providerOptions = {} } = {}) {
  await check(`${name}: generateText`, async () => {
    const { text, usage, finishReason } = await ai.generateText({ model: model('agent'), prompt, system: 'Be brief.' })
    assert.equal(text, sentence)
    assert.equal(finishReason, 'stop')
    assert.ok(usage.totalTokens > 0)
  })
  await check(`${name}: streamText, every part of it well-formed`, async () => {
    const parts = []
    const result = ai.streamText({ model: model('agent'), prompt, maxOutputTokens: 200, onError: ({ error }) => { throw error } })
    for await (const part of result.fullStream) parts.push(part)
    assert.deepEqual(parts.filter(({ type }) => type === 'error'), [])
    assert.equal(await result.text, sentence)
    assert.equal(await result.finishReason, 'stop')
    assert.deepEqual(await result.warnings ?? [], [])
  })
  await check(`${name}: generateObject and streamObject`, async () => {
    const { object } = await ai.generateObject({ model: model('agent'), prompt, schema, providerOptions })
    assert.match(object.mood, /^(good|bad)$/)
    const streamed = ai.streamObject({ model: model('agent'), prompt, schema, providerOptions })
    for await (const _ of streamed.partialObjectStream);
    assert.equal(typeof (await streamed.object).sure, 'boolean')
  })
  if (forces) {
    await check(`${name}: a tool, whole and streamed`, async () => {
      const order = { model: model(caller), prompt, tools, toolChoice: 'required' }
      const { toolCalls } = await ai.generateText(order)
      assert.equal(toolCalls[0].toolName, tool.name)
      fitsTool(toolCalls[0].input)
      const streamed = ai.streamText(order)
      await streamed.consumeStream()
      fitsTool((await streamed.toolCalls)[0].input)
    })
    await check(`${name}: the loop of tools ends where the application says`, async () => {
      let ran = 0
      const { steps } = await ai.generateText({
        model: model(caller), prompt, toolChoice: 'required', stopWhen: ai.stepCountIs(2),
        tools: { [tool.name]: { ...tools[tool.name], execute: () => { ran++; return 'done' } } }
      })
      assert.equal(steps.length, 2)
      assert.equal(ran, 2)
    })
  }
  await check(`${name}: a model that nobody knows is asked for once`, async () => {
    let error
    const took = await requestsOf(async () => { error = await failureOf(ai.generateText({ model: model('nobody'), prompt })) })
    assert.equal(error.statusCode, 404, String(error))
    assert.equal(took, 1)
  })
}

const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: 'anything' })
const compatible = createOpenAICompatible({ name: 'svc', baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true })
const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: 'anything' })

await tries('openai.chat', openai.chat)
await tries('openai-compatible', compatible)
await check('openai-compatible: without supportsStructuredOutputs', async () => {
  const plain = createOpenAICompatible({ name: 'svc', baseURL: `${url}/v1` })
  const answer = await ai.generateText({ model: plain('agent'), prompt })
  assert.equal(answer.text, sentence)
})
await check('embedMany', async () => {
  for (const model of [openai.embedding('embed'), compatible.textEmbeddingModel('embed')]) {
    const { embeddings } = await ai.embedMany({ model, values: ['one', 'two', 'three'] })
    assert.equal(embeddings.length, 3)
  }
})
await tries('openai', openai)
await check('openai: a conversation goes on, by references to what is kept and by the id of its last response', async () => {
  const model = openai('agent')
  const first = await ai.generateText({ model, prompt })
  const messages = [{ role: 'user', content: prompt }, ...first.response.messages, { role: 'user', content: 'And now?' }]
  const second = await ai.generateText({ model, messages })
  assert.equal(second.text, sentence)
  assert.ok(second.usage.inputTokens > first.usage.inputTokens)
  const { responseId: previousResponseId } = first.providerMetadata.openai
  const third = await ai.generateText({ model, prompt: 'And now?', providerOptions: { openai: { previousResponseId } } })
  assert.equal(third.text, sentence)
  assert.ok(third.usage.inputTokens > first.usage.inputTokens)
})
// by default a call of a tool is forced, which llama-server does not do where the model's template has no tools
await tries('anthropic', anthropic, media ? { providerOptions: { anthropic: { structuredOutputMode: 'outputFormat' } } } : {})
if (media) {
  await check('generateImage', async () => {
    const { image } = await ai.experimental_generateImage({ model: openai.image('sdxl-turbo'), prompt: 'a red apple', size: '256x256' })
    assert.equal(Buffer.from(image.base64, 'base64').subarray(1, 4).toString(), 'PNG')
  })
  await check('generateSpeech', async () => {
    const { audio } = await ai.experimental_generateSpeech({ model: openai.speech('tts'), text: 'One sentence.', voice: 'alloy' })
    assert.ok(audio.uint8Array.length > 100)
  })
}
