import assert from 'node:assert/strict'
import { Ollama } from 'ollama'
import { caller, check, engine, failureOf, fitsTool, png, seer, sentence, thinker, tool, url } from '../js/check.mjs'

const client = new Ollama({ host: process.env.RING_OLLAMA ?? url })
const messages = [{ role: 'user', content: 'Who are you?' }]
const schema = { type: 'object', properties: { mood: { enum: ['good', 'bad'] }, sure: { type: 'boolean' } }, required: ['mood', 'sure'] }

async function joined (stream, piece) {
  let text = ''
  let last
  for await (const part of stream) {
    text += piece(part)
    last = part
  }
  return { text, last }
}

await check('version', async () => assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/))
await check('list', async () => {
  const { models } = await client.list()
  assert.ok(models.some(({ name }) => name === 'svc/agent:latest'), models.map(({ name }) => name).join(' '))
})
await check('show', async () => {
  const shown = await client.show({ model: 'agent' })
  assert.ok(shown.capabilities.includes('completion'))
  assert.ok(Object.entries(shown.model_info).some(([key, value]) => key.endsWith('.context_length') && value > 0), JSON.stringify(shown.model_info))
})
await check('chat', async () => {
  const answer = await client.chat({ model: 'agent:latest', messages, keep_alive: '10m' })
  assert.equal(answer.message.content, sentence)
  assert.equal(answer.done_reason, 'stop')
  assert.ok(answer.eval_count > 10 && answer.prompt_eval_count > 0 && answer.total_duration > 0 && answer.eval_duration > 0)
})
await check('chat, streamed', async () => {
  const { text, last } = await joined(await client.chat({ model: 'agent', messages, stream: true }), part => part.message.content)
  assert.equal(text, sentence)
  assert.ok(last.done && last.eval_count > 10)
})
await check('chat with options', async () => {
  const answer = await client.chat({ model: 'agent', messages, options: { num_predict: 3, temperature: 0, seed: 1 } })
  assert.equal(answer.done_reason, 'length')
  assert.equal(answer.eval_count, 3)
})
await check('chat with a schema', async () => {
  const { message } = await client.chat({ model: 'agent', messages, format: schema })
  assert.equal(typeof JSON.parse(message.content).sure, 'boolean')
})
await check('chat with a tool, whole and streamed', async () => {
  const order = { model: caller, messages, tools: [{ type: 'function', function: tool }] }
  const { message } = await client.chat(order)
  fitsTool(message.tool_calls[0].function.arguments)
  const calls = []
  for await (const part of await client.chat({ ...order, stream: true })) calls.push(...part.message.tool_calls ?? [])
  fitsTool(calls[0].function.arguments)
})
await check('chat with the result of a tool', async () => {
  const { message } = await client.chat({
    model: 'agent',
    messages: [
      ...messages, { role: 'assistant', content: '', tool_calls: [{ function: { name: tool.name, arguments: {} } }] },
      { role: 'tool', tool_name: tool.name, content: 'done' }
    ]
  })
  assert.equal(message.content, sentence)
})
await check('chat with a model of an upstream, whole and streamed', async () => {
  const order = { model: `${seer}:latest`, messages }
  const { message, prompt_eval_count: asked } = await client.chat(order)
  assert.equal(message.content, 'Hello, world é🎈.')
  assert.equal(asked, 12)
  assert.equal((await joined(await client.chat({ ...order, stream: true }), part => part.message.content)).text, message.content)
})
await check('chat and generate with images, as bytes and in Base64', async () => {
  for (const images of [[Buffer.from(png, 'base64')], [png]]) {
    const { message } = await client.chat({ model: seer, messages: [{ role: 'user', content: 'What is it?', images }] })
    assert.equal(message.content, 'A picture.')
    assert.equal((await client.generate({ model: seer, prompt: 'What is it?', images })).response, 'A picture.')
  }
})
await check('images for a model that has no eyes', async () => {
  const error = await failureOf(client.chat({ model: 'agent', messages: [{ role: 'user', content: 'What is it?', images: [png] }] }))
  assert.equal(error.status_code, 400)
  assert.match(error.message, /takes images/)
})
await check('chat that thinks, whole and streamed, and a turn behind it', async () => {
  const order = { model: thinker, messages, think: true }
  const { message } = await client.chat(order)
  const fits = ({ thinking, content }) => assert.deepEqual([thinking.trim(), content.trim()], ['I should greet.', 'Hello there'])
  fits(message)
  const told = { thinking: '', content: '' }
  for await (const part of await client.chat({ ...order, stream: true })) {
    told.thinking += part.message.thinking ?? ''
    told.content += part.message.content
  }
  fits(told)
  const behind = await client.chat({ ...order, think: false, messages: [...messages, message, { role: 'user', content: 'And now?' }] })
  assert.ok(behind.prompt_eval_count > 10)
})
await check('generate that thinks', async () => {
  const { thinking, response } = await client.generate({ model: thinker, prompt: 'Who are you?', think: true })
  assert.deepEqual([thinking.trim(), response.trim()], ['I should greet.', 'Hello there'])
})
await check('generate', async () => {
  assert.equal((await client.generate({ model: 'agent', prompt: 'Who are you?', system: 'Be brief.' })).response, sentence)
})
await check('generate, streamed', async () => {
  const { text } = await joined(await client.generate({ model: 'agent', prompt: 'Who are you?', stream: true }), part => part.response)
  assert.equal(text, sentence)
})
await check('generate, raw', async () => {
  const { text, last } = await joined(await client.generate({ model: 'agent', prompt: 'Once', raw: true, stream: true }), part => part.response)
  assert.equal(text, sentence)
  assert.ok(last.done)
})
if (engine === 'llama') {
  await check('generate, between two texts', async () => {
    assert.equal((await client.generate({ model: 'agent', prompt: 'def one():', suffix: 'end' })).response, sentence)
    const { text } = await joined(await client.generate({ model: 'agent', prompt: 'def one():', suffix: 'end', stream: true }), part => part.response)
    assert.equal(text, sentence)
  })
}
await check('embed', async () => {
  const { embeddings, prompt_eval_count: tokens } = await client.embed({ model: 'embed', input: ['one', 'two'] })
  assert.equal(embeddings.length, 2)
  assert.ok(embeddings[0].length > 10 && tokens > 0)
})
await check('embeddings', async () => assert.ok((await client.embeddings({ model: 'embed', prompt: 'one' })).embedding.length > 10))
await check('ps', async () => {
  const { models } = await client.ps()
  assert.ok(models.some(({ name, expires_at: at }) => name === 'agent:latest' && new Date(at) > new Date()))
})
await check('copy and delete', async () => {
  assert.equal((await client.copy({ source: 'agent', destination: 'gpt-4.1' })).status, 'success')
  assert.equal((await client.chat({ model: 'gpt-4.1', messages })).message.content, sentence)
  assert.equal((await client.delete({ model: 'gpt-4.1' })).status, 'success')
  assert.equal((await failureOf(client.delete({ model: 'gpt-4.1' }))).status_code, 404)
})
await check('create', async () => {
  assert.equal((await client.create({ model: 'mario', from: 'agent' })).status, 'success')
  const { last } = await joined(await client.create({ model: 'luigi', from: 'agent', stream: true }), () => '')
  assert.equal(last.status, 'success')
  assert.match((await failureOf(client.create({ model: 'x', from: 'agent', system: 'You are Mario.' }))).message, /'system' is not supported/)
  for (const model of ['mario', 'luigi']) await client.delete({ model })
})
await check('pull of what nothing knows', async () => {
  assert.match((await failureOf(client.pull({ model: 'nothing' }))).message, /no source is known/)
  assert.match((await failureOf(client.pull({ model: 'nothing', stream: true }))).message, /no source is known/)
})
await check('pull, whole and streamed, and what was pulled under a name of its own', async () => {
  const model = 'hf.co/org/tiny-GGUF:Q4_K_M'
  const { text, last } = await joined(await client.pull({ model, stream: true }), ({ status, completed, total }) => completed === total ? `${status}\n` : '')
  assert.match(text, /pulling manifest\n(?:.*\n)*verifying sha256 digest\n/)
  assert.equal(last.status, 'success')
  assert.equal((await client.pull({ model })).status, 'success')
  assert.ok((await client.show({ model })).details.family.length > 0)
  assert.equal((await client.create({ model: 'tiny', from: model })).status, 'success')
  // its file says that it makes vectors
  assert.ok((await client.embed({ model: 'tiny', input: 'one' })).embeddings[0].length > 10)
})
await check('push is refused', async () => assert.equal((await failureOf(client.push({ model: 'agent' }))).status_code, 501))
await check('systemone, which that release of Ollama does not have yet', async () => {
  const question = { type: 'choice', instructions: 'Which?', choices: ['a', 'b'] }
  assert.equal((await failureOf(client.systemone({ model: 'agent', questions: [question] }))).status_code, 404)
})
await check('a model that nothing knows', async () => {
  const error = await failureOf(client.chat({ model: 'nobody', messages, stream: true }))
  assert.equal(error.status_code, 404)
  assert.match(error.message, /nobody/)
})
await check('abort', async () => {
  const stream = await client.chat({ model: 'endless', messages, stream: true })
  const left = failureOf((async () => { for await (const part of stream) if (part.message.content !== '') stream.abort() })())
  assert.equal((await left).name, 'AbortError')
})
await check('unload and load', async () => {
  assert.equal((await client.generate({ model: 'agent', prompt: '', keep_alive: 0 })).done_reason, 'unload')
  assert.equal((await client.generate({ model: 'agent', prompt: '' })).done_reason, 'load')
})
