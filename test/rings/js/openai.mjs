import assert from 'node:assert/strict'
import OpenAI, { toFile } from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { caller, check, failureOf, fitsTool, media, requestsOf, sentence, tool, url, wav } from './check.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything' })
const messages = [{ role: 'user', content: 'Who are you?' }]
const shape = z.object({ mood: z.enum(['good', 'bad']), sure: z.boolean() })

await check('models.list', async () => {
  const ids = []
  for await (const { id } of client.models.list()) ids.push(id)
  assert.ok(ids.includes('svc/agent'), ids.join(' '))
})
await check('chat', async () => {
  const answer = await client.chat.completions.create({ model: 'agent', messages })
  assert.equal(answer.choices[0].message.content, sentence)
  assert.ok(answer.usage.total_tokens > 0)
})
await check('chat with content parts and every role', async () => {
  const answer = await client.chat.completions.create({
    model: 'agent',
    messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: [{ type: 'text', text: 'Who' }, { type: 'text', text: 'are you?' }] }]
  })
  assert.equal(answer.choices[0].message.content, sentence)
})
await check('chat, streamed with usage', async () => {
  let text = ''
  let usage
  for await (const chunk of await client.chat.completions.create({ model: 'agent', messages, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? ''
    usage = chunk.usage ?? usage
  }
  assert.equal(text, sentence)
  assert.ok(usage.completion_tokens > 10)
})
await check('chat.completions.stream', async () => {
  const stream = client.chat.completions.stream({ model: 'agent', messages })
  const events = []
  stream.on('content', delta => events.push(delta))
  assert.equal(await stream.finalContent(), sentence)
  assert.equal(events.join(''), sentence)
})
await check('chat.completions.parse', async () => {
  const answer = await client.chat.completions.parse({ model: 'agent', messages, response_format: zodResponseFormat(shape, 'state') })
  assert.match(answer.choices[0].message.parsed.mood, /^(good|bad)$/)
})
await check('chat.completions.stream with a schema', async () => {
  const answer = await client.chat.completions.stream({ model: 'agent', messages, response_format: zodResponseFormat(shape, 'state') }).finalChatCompletion()
  assert.equal(typeof answer.choices[0].message.parsed.sure, 'boolean')
})
await check('a forced tool, whole and streamed', async () => {
  const order = { model: caller, messages, tools: [{ type: 'function', function: tool }], tool_choice: 'required' }
  const answer = await client.chat.completions.create(order)
  fitsTool(answer.choices[0].message.tool_calls[0].function.arguments)
  const streamed = await client.chat.completions.stream(order).finalChatCompletion()
  fitsTool(streamed.choices[0].message.tool_calls[0].function.arguments)
})
await check('completions', async () => {
  assert.equal((await client.completions.create({ model: 'agent', prompt: 'Once' })).choices[0].text, sentence)
})
await check('embeddings', async () => {
  const { data, usage } = await client.embeddings.create({ model: 'embed', input: ['one', 'two'] })
  assert.deepEqual(data.map(row => row.index), [0, 1])
  assert.ok(data.every(row => row.embedding.length > 10 && row.embedding.every(Number.isFinite)))
  assert.ok(usage.prompt_tokens > 0)
})
await check('withResponse', async () => {
  const { data, response } = await client.chat.completions.create({ model: 'agent', messages }).withResponse()
  assert.equal(response.headers.get('content-type').split(';')[0], 'application/json')
  assert.equal(data._request_id, response.headers.get('x-request-id'))
  assert.ok(data._request_id)
})
await check('a model that nobody knows is refused once', async () => {
  let error
  const took = await requestsOf(async () => { error = await failureOf(client.chat.completions.create({ model: 'nobody', messages })) })
  assert.equal(error.status, 404)
  assert.equal(error.code, 'model.not_found')
  assert.equal(took, 1)
})
await check('a body that is wrong is refused once', async () => {
  let error
  const took = await requestsOf(async () => { error = await failureOf(client.chat.completions.create({ model: 'agent' })) })
  assert.equal(error.status, 400)
  assert.equal(took, 1)
})

await check('responses', async () => {
  assert.equal((await client.responses.create({ model: 'agent', input: 'Who are you?' })).output_text, sentence)
})
await check('responses, streamed as plain events', async () => {
  let text = ''
  const numbers = []
  for await (const event of await client.responses.create({ model: 'agent', input: messages, stream: true })) {
    numbers.push(event.sequence_number)
    if (event.type === 'response.output_text.delta') text += event.delta
  }
  assert.equal(text, sentence)
  assert.deepEqual(numbers, numbers.map((_, i) => i))
})
await check('responses.stream', async () => {
  const stream = client.responses.stream({ model: 'agent', input: 'Who are you?' })
  let snapshot = ''
  stream.on('response.output_text.delta', event => { snapshot = event.snapshot })
  const final = await stream.finalResponse()
  assert.equal(snapshot, sentence)
  assert.equal(final.output_text, sentence)
  assert.equal(final.status, 'completed')
  assert.ok(final.created_at > 1_600_000_000 && final.model && final.usage.total_tokens > 0)
})
await check('responses.parse', async () => {
  const answer = await client.responses.parse({ model: 'agent', input: 'x', text: { format: zodTextFormat(shape, 'state') } })
  assert.match(answer.output_parsed.mood, /^(good|bad)$/)
})
await check('responses.stream with a schema', async () => {
  const answer = await client.responses.stream({ model: 'agent', input: 'x', text: { format: zodTextFormat(shape, 'state') } }).finalResponse()
  assert.match(answer.output_parsed.mood, /^(good|bad)$/)
})
await check('responses with a tool, whole and streamed', async () => {
  const order = { model: caller, input: 'x', tools: [{ type: 'function', strict: false, ...tool }], tool_choice: 'required' }
  const whole = await client.responses.create(order)
  fitsTool(whole.output.find(({ type }) => type === 'function_call').arguments)
  const streamed = await client.responses.stream(order).finalResponse()
  fitsTool(streamed.output.find(({ type }) => type === 'function_call').arguments)
})
await check('responses with the result of a tool', async () => {
  const { output_text: text } = await client.responses.create({
    model: 'agent',
    input: [
      ...messages, { type: 'function_call', call_id: 'c1', name: tool.name, arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'done' }
    ]
  })
  assert.equal(text, sentence)
})
await check('responses that go on from kept ones, retrieve, inputItems.list and delete', async () => {
  const first = await client.responses.create({ model: 'agent', input: 'Who are you?' })
  const second = await client.responses.stream({ model: 'agent', input: 'And now?', previous_response_id: first.id }).finalResponse()
  assert.equal(second.output_text, sentence)
  assert.ok(second.usage.input_tokens > first.usage.input_tokens, 'the model read what came before')
  const kept = await client.responses.retrieve(second.id)
  assert.equal(kept.output_text, sentence)
  assert.equal(kept.previous_response_id, first.id)
  const items = []
  for await (const { role } of client.responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) items.push(role)
  assert.deepEqual(items, ['user', 'assistant', 'user'])
  const loose = await client.responses.create({ model: 'agent', input: 'x', store: false })
  await client.responses.delete(second.id)
  for (const id of [second.id, loose.id]) {
    let error
    const took = await requestsOf(async () => { error = await failureOf(client.responses.retrieve(id)) })
    assert.ok(error instanceof OpenAI.NotFoundError && took === 0, String(error))
  }
})
await check('responses in the background, polled and cancelled', async () => {
  let made = await client.responses.create({ model: 'agent', input: 'Who are you?', background: true })
  assert.equal(made.status, 'queued')
  while (made.status === 'queued' || made.status === 'in_progress') made = await client.responses.retrieve(made.id)
  assert.equal(made.output_text, sentence)
  const { id } = await client.responses.create({ model: 'endless', input: 'x', background: true, max_output_tokens: 1_000_000 })
  assert.equal((await client.responses.cancel(id)).status, 'cancelled')
})

if (media) {
  await check('audio.speech', async () => {
    const answer = await client.audio.speech.create({ model: 'tts', voice: 'alloy', input: 'One sentence.', response_format: 'wav' })
    assert.equal(Buffer.from(await answer.arrayBuffer()).subarray(0, 4).toString(), 'RIFF')
  })
  await check('audio.transcriptions', async () => {
    assert.equal(typeof (await client.audio.transcriptions.create({ model: 'stt', file: await toFile(wav(), 'a.wav') })).text, 'string')
  })
  await check('audio.transcriptions in every form', async () => {
    for (const form of ['text', 'srt', 'vtt']) {
      assert.equal(typeof await client.audio.transcriptions.create({ model: 'stt', file: await toFile(wav(), 'a.wav'), response_format: form }), 'string', form)
    }
    const verbose = await client.audio.transcriptions.create({ model: 'stt', file: await toFile(wav(), 'a.wav'), response_format: 'verbose_json', timestamp_granularities: ['segment'] })
    assert.ok(Number(verbose.duration) > 0.9)
  })
  await check('audio.transcriptions, streamed', async () => {
    const types = []
    for await (const event of await client.audio.transcriptions.create({ model: 'stt', file: await toFile(wav(), 'a.wav'), stream: true })) types.push(event.type)
    assert.equal(types.at(-1), 'transcript.text.done')
  })
  await check('images.generate', async () => {
    const { data } = await client.images.generate({ model: 'sdxl-turbo', prompt: 'a red apple', size: '256x256', response_format: 'b64_json' })
    assert.equal(Buffer.from(data[0].b64_json, 'base64').subarray(1, 4).toString(), 'PNG')
  })
}
