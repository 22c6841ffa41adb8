import assert from 'node:assert/strict'
import { GoogleGenAI } from '@google/genai'
import { caller, check, failureOf, fitsTool, sentence, tool, url } from '../js/check.mjs'

const ai = new GoogleGenAI({ apiKey: 'anything', httpOptions: { baseUrl: url } })
const contents = 'Who are you?'

await check('generateContent', async () => {
  const answer = await ai.models.generateContent({ model: 'agent', contents, config: { systemInstruction: 'Be brief.' } })
  assert.equal(answer.text, sentence)
  assert.equal(answer.candidates[0].finishReason, 'STOP')
  assert.ok(answer.usageMetadata.totalTokenCount > 10)
})
await check('generateContentStream', async () => {
  let text = ''
  for await (const chunk of await ai.models.generateContentStream({ model: 'agent', contents })) text += chunk.text
  assert.equal(text, sentence)
})
await check('a limit', async () => {
  const answer = await ai.models.generateContent({ model: 'agent', contents, config: { maxOutputTokens: 3, temperature: 0 } })
  assert.equal(answer.candidates[0].finishReason, 'MAX_TOKENS')
})
await check('a schema', async () => {
  const config = { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { mood: { type: 'STRING', enum: ['good', 'bad'] } }, required: ['mood'] } }
  assert.match(JSON.parse((await ai.models.generateContent({ model: 'agent', contents, config })).text).mood, /^(good|bad)$/)
})
await check('a function', async () => {
  const { name, description, parameters: parametersJsonSchema } = tool
  const config = { tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema }] }] }
  const answer = await ai.models.generateContent({ model: caller, contents, config })
  assert.equal(answer.functionCalls[0].name, name)
  fitsTool(answer.functionCalls[0].args)
})
await check('a chat', async () => {
  const chat = ai.chats.create({ model: 'agent' })
  assert.equal((await chat.sendMessage({ message: contents })).text, sentence)
  let text = ''
  for await (const chunk of await chat.sendMessageStream({ message: 'And again?' })) text += chunk.text
  assert.equal(text, sentence)
})
await check('countTokens', async () => assert.ok((await ai.models.countTokens({ model: 'agent', contents })).totalTokens > 3))
await check('models', async () => {
  const names = []
  for await (const { name } of await ai.models.list({ config: { pageSize: 2 } })) names.push(name)
  assert.ok(names.includes('models/svc/agent'), names.join(' '))
  assert.equal((await ai.models.get({ model: 'svc/agent' })).name, 'models/svc/agent')
})
await check('embedContent', async () => {
  const { embeddings } = await ai.models.embedContent({ model: 'embed', contents: ['one', 'two'] })
  assert.ok(embeddings.length === 2 && embeddings[0].values.length > 10)
})
await check('a model that nothing knows', async () => {
  const error = await failureOf(ai.models.generateContent({ model: 'nobody', contents }))
  assert.equal(error.status, 404)
  assert.match(error.message, /nobody/)
})
