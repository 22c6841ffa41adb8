import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import * as ai from 'ai'
import { z } from 'zod'
import { caller, check, failureOf, fitsTool, media, png, requestsOf, seer, sentence, thinker, tool, url, wav } from './check.mjs'

const prompt = 'Who are you?'
const schema = z.object({ mood: z.enum(['good', 'bad']), sure: z.boolean() })
const tools = { [tool.name]: ai.tool({ description: tool.description, inputSchema: ai.jsonSchema(tool.parameters) }) }

/** What an application does with a language model, whoever makes it. */
async function tries (name, model, { forms = 'agent' } = {}) {
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
    const { object } = await ai.generateObject({ model: model(forms), prompt, schema })
    assert.match(object.mood, /^(good|bad)$/)
    const streamed = ai.streamObject({ model: model(forms), prompt, schema })
    for await (const _ of streamed.partialObjectStream);
    assert.equal(typeof (await streamed.object).sure, 'boolean')
  })
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
  await check(`${name}: the loop of tools, where the model chooses, streamed`, async () => {
    let ran = 0
    const result = ai.streamText({
      model: model(caller), prompt, stopWhen: ai.stepCountIs(2),
      tools: { [tool.name]: { ...tools[tool.name], execute: () => { ran++; return 'done' } } }
    })
    await result.consumeStream()
    assert.deepEqual([(await result.steps).length, ran, await result.finishReason], [2, 2, 'tool-calls'])
  })
  await check(`${name}: an output of the text functions`, async () => {
    const { output } = await ai.generateText({ model: model(forms), prompt, output: ai.Output.object({ schema }) })
    assert.equal(typeof output.sure, 'boolean')
  })
  await check(`${name}: a picture, as bytes and as a data URL`, async () => {
    for (const image of [Buffer.from(png, 'base64'), `data:image/png;base64,${png}`]) {
      const content = [{ type: 'text', text: 'What is it?' }, { type: 'image', image }]
      const { text } = await ai.generateText({ model: model(seer), messages: [{ role: 'user', content }] })
      assert.equal(text, 'A picture.')
    }
  })
  await check(`${name}: a model that thinks, and a turn behind it`, async () => {
    const order = { model: model(thinker), prompt, maxOutputTokens: 2048 }
    const first = await ai.generateText(order)
    assert.equal(first.text.trim(), 'Hello there')
    const streamed = ai.streamText(order)
    await streamed.consumeStream()
    assert.equal((await streamed.text).trim(), 'Hello there')
    const messages = [{ role: 'user', content: prompt }, ...first.response.messages, { role: 'user', content: 'And now?' }]
    const second = await ai.generateText({ ...order, prompt: undefined, messages })
    assert.ok(second.usage.inputTokens > first.usage.inputTokens)
  })
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
await check('legacy completions, whole and streamed', async () => {
  for (const model of [openai.completion('agent'), compatible.completionModel('agent')]) {
    assert.equal((await ai.generateText({ model, prompt: 'Once' })).text, sentence)
    const streamed = ai.streamText({ model, prompt: 'Once' })
    await streamed.consumeStream()
    assert.equal(await streamed.text, sentence)
  }
})
await check('embed and embedMany', async () => {
  for (const model of [openai.embedding('embed'), compatible.textEmbeddingModel('embed')]) {
    assert.ok((await ai.embed({ model, value: 'one' })).embedding.length > 10)
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
// an object is the forced call of a tool `json` there, which llama-server does where the template of the model has tools
await tries('anthropic', anthropic, media ? { forms: 'former' } : {})
await check('anthropic: an object by outputFormat', async () => {
  const providerOptions = { anthropic: { structuredOutputMode: 'outputFormat' } }
  const { object } = await ai.generateObject({ model: anthropic('agent'), prompt, schema, providerOptions })
  assert.equal(typeof object.sure, 'boolean')
})
if (media) {
  await check('generateImage', async () => {
    for (const model of [openai.image('sdxl-turbo'), compatible.imageModel('sdxl-turbo')]) {
      const { image } = await ai.experimental_generateImage({ model, prompt: 'a red apple', size: '256x256' })
      assert.equal(Buffer.from(image.base64, 'base64').subarray(1, 4).toString(), 'PNG')
    }
  })
  await check('generateImage of a name that it asks for no form of the answer, and from another image', async () => {
    const model = openai.image('gpt-image-1')
    const { image } = await ai.experimental_generateImage({ model, prompt: 'a red apple', size: '256x256' })
    assert.equal(Buffer.from(image.base64, 'base64').subarray(1, 4).toString(), 'PNG')
    const prompt = { text: 'a green apple', images: [image.uint8Array] }
    const { image: edited } = await ai.experimental_generateImage({ model, prompt, size: '256x256' })
    assert.equal(Buffer.from(edited.base64, 'base64').subarray(1, 4).toString(), 'PNG')
  })
  await check('transcribe, where nothing is said', async () => {
    const error = await failureOf(ai.experimental_transcribe({ model: openai.transcription('whisper-1'), audio: wav() }))
    assert.equal(error.name, 'AI_NoTranscriptGeneratedError')
    assert.match(error.responses[0].body.text, /^\s*$/)
  })
  await check('generateSpeech', async () => {
    const { audio } = await ai.experimental_generateSpeech({ model: openai.speech('tts'), text: 'One sentence.', voice: 'alloy' })
    assert.ok(audio.uint8Array.length > 100)
  })
}
