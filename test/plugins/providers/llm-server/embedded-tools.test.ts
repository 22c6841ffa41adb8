import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { answerReader } from '../../../../plugins/providers/llm-server/embedded/chat/answer-reader.js'
import { toolFamilies, type ToolFamily } from '../../../../plugins/providers/llm-server/embedded/chat/tool-family.js'
import { toolTypes } from '../../../../plugins/providers/llm-server/embedded/chat/tool-types.js'
import { callGrammar } from '../../../../plugins/providers/llm-server/embedded/grammar/output.js'
import { nothingSaid, say } from '../../../../plugins/providers/llm-server/embedded/wire.js'
import { modelFile, post, startEmbedded, stream } from './support.js'

interface Call {
  readonly id: string
  readonly function: { readonly name: string, readonly arguments: string }
}

interface Probable { readonly token: string, readonly logprob: number, readonly top_logprobs: readonly object[] }

interface Said {
  readonly choices: ReadonlyArray<{
    readonly index: number
    readonly finish_reason: string
    readonly message: { readonly content: string, readonly reasoning_content?: string, readonly tool_calls?: readonly Call[] }
    readonly text: string
    readonly logprobs?: { readonly content: readonly Probable[] }
  }>
  readonly usage: { readonly prompt_tokens: number, readonly completion_tokens: number }
}

const user = { role: 'user', content: 'x' }
const parameters = { type: 'object', properties: { city: { enum: ['Bern', 'Oslo'] }, days: { type: 'integer', minimum: 1, maximum: 3 } }, required: ['city', 'days'] }
const weather = { type: 'function', function: { name: 'weather', description: 'It rains', parameters } }
const clock = { type: 'function', function: { name: 'clock' } }

/** As Qwen and Hermes have it, in few words. */
const template = '{% if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>{% endif %}{% for message in messages %}<|{{ message.role }}|>' +
  '{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}' +
  '{% for call in message.tool_calls or [] %}<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>{% endfor %}' +
  '{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}'

/** An engine whose model says a sentence, in the words of a template. */
async function engineSaying (t: Test, sentence: string): Promise<string> {
  const model = modelFile(t, { sentence })
  const file = join(model, '..', 'template.jinja')
  writeFileSync(file, template)
  return (await startEmbedded(t, ['--model', model, '--ctx-size', '2048', '--parallel', '2', '--kv-unified', '--chat-template-file', file])).url
}

const twoCalls = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"city": "Bern", "days": 2}}\n</tool_call>\n<tool_call>\n{"name":"clock","arguments":{}}\n</tool_call>'

t.test('a model that calls tools by itself', async t => {
  const url = await engineSaying(t, twoCalls)
  const chat = async (body: object): Promise<Said> => (await post(url, '/v1/chat/completions', { messages: [user], temperature: 0, ...body })).json as unknown as Said
  const tools = [weather, clock]

  await t.test('its calls are told whole, and piece by piece on a stream', async t => {
    const { choices: [choice] } = await chat({ tools })
    t.match(choice, {
      finish_reason: 'tool_calls',
      message: { content: 'Let me see.', tool_calls: [{ id: /^\w{32}$/, type: 'function', function: { name: 'weather', arguments: '{"city": "Bern", "days": 2}' } }, { function: { name: 'clock', arguments: '{}' } }] }
    })
    const { chunks, text } = await stream(url, '/v1/chat/completions', { messages: [user], tools, temperature: 0 })
    t.equal(text, 'Let me see.')
    const deltas = chunks.flatMap(chunk => chunk.choices[0]?.delta?.tool_calls ?? []) as unknown as ReadonlyArray<Partial<Call> & Pick<Call, 'function'> & { index: number }>
    t.same(deltas.filter(delta => delta.id !== undefined).map(delta => [delta.index, delta.function.name]), [[0, 'weather'], [1, 'clock']])
    t.equal(deltas.filter(delta => delta.index === 0).map(delta => delta.function.arguments).join(''), '{"city": "Bern", "days": 2}')
    t.ok(deltas.filter(delta => delta.index === 0).length > 3, 'as they are written')
    t.equal(chunks.flatMap(chunk => chunk.choices).at(-1)?.finish_reason, 'tool_calls')
  })

  await t.test('one call where only one is wanted: the model is stopped behind it', async t => {
    const all = await chat({ tools })
    const { choices: [choice], usage } = await chat({ tools, parallel_tool_calls: false })
    t.match(choice, { finish_reason: 'tool_calls', message: { tool_calls: { length: 1 } } })
    t.ok(usage.completion_tokens < all.usage.completion_tokens)
    const { chunks } = await stream(url, '/v1/chat/completions', { messages: [user], tools, temperature: 0, parallel_tool_calls: false })
    t.equal(JSON.stringify(chunks).includes('clock'), false)
  })

  await t.test('without tools, or with none to be chosen, it is text', async t => {
    for (const body of [{}, { tools, tool_choice: 'none' }]) {
      t.match((await chat(body)).choices, [{ finish_reason: 'stop', message: { content: twoCalls, tool_calls: undefined } }])
    }
  })

  await t.test('a call that is cut off is told as far as it came', async t => {
    const { choices: [choice] } = await chat({ tools, max_tokens: 7 })
    t.match(choice, { finish_reason: 'length', message: { tool_calls: [{ function: { name: 'weather' } }] } })
  })

  await t.test('earlier calls and their results are read as the template writes them, tools as they were given', async t => {
    const call = { id: 'a1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern","days":2}' } }
    const messages = [user, { role: 'assistant', content: null, reasoning_content: 'Hm.', tool_calls: [call] }, { role: 'tool', tool_call_id: 'a1', content: [{ type: 'text', text: 'rain' }] }]
    const { json } = await post(url, '/apply-template', { messages, tools: [weather] })
    t.equal(json.prompt, '<tools>{"type": "function", "function": {"name": "weather", "description": "It rains", "parameters": {"type": "object", "properties": {"city": {"enum": ["Bern", "Oslo"]}, ' +
    '"days": {"type": "integer", "minimum": 1, "maximum": 3}}, "required": ["city", "days"]}}}</tools><|user|>x<|assistant|><think>Hm.</think><tool_call>{"name": "weather", "arguments": {"city": "Bern", "days": 2}}</tool_call>' +
    '<|tool|>rain<|assistant|>')
    t.match((await chat({ messages, tools: [weather] })).choices, [{ message: { content: 'Let me see.' } }])
  })

  await t.test('a call that is demanded is one, whatever the model would say, in the words of any family', async t => {
    for (const choice of ['required', { type: 'function', function: { name: 'weather' } }]) {
      const { choices: [forced] } = await chat({ tools: [weather], tool_choice: choice, temperature: 1.5, seed: 1 })
      t.equal(forced!.finish_reason, 'tool_calls')
      for (const { function: { name, arguments: text } } of forced!.message.tool_calls!) t.match({ name, ...JSON.parse(text) as object }, { name: 'weather', city: /^(Bern|Oslo)$/, days: /^[123]$/ })
    }
    const told = { type: 'object', properties: { ...parameters.properties, note: { type: 'string' } }, required: ['city', 'days'] }
    for (const family of Object.values<ToolFamily>(toolFamilies)) {
      const grammar = callGrammar([{ name: 'weather', parameters: told }], { family, several: false, thoughts: 'none' })
      const { json } = await post(url, '/v1/completions', { prompt: 'x', grammar, temperature: 1.5, seed: 4, max_tokens: 600 })
      const { choices: [{ text }] } = json as unknown as { choices: [{ text: string }] }
      const [reader, said] = [answerReader({
        family, thoughtsAs: 'reasoning', thoughts: 'none', tools: { family, names: new Set(['weather']), types: toolTypes([{ function: { name: 'weather', parameters: told } }]), parallel: true }
      }), nothingSaid()]
      say(said, [...reader.push(text), ...reader.end()], [])
      t.equal(said.calls[0]?.name, 'weather', `${family.name}: ${text.slice(0, 80)}`)
      t.match(said.calls[0]?.arguments, /^\{\s*"city":\s*"(Bern|Oslo)",\s*"days":\s*[123]/)
    }
  })
})

t.test('the thoughts of a reasoning model are kept apart from its answer', async t => {
  const url = await engineSaying(t, '<think> I should greet. </think> Hello there')
  const chat = async (body: object): Promise<Said> => (await post(url, '/v1/chat/completions', { messages: [user], ...body })).json as unknown as Said

  await t.test('its thoughts are told beside its answer', async t => {
    t.match((await chat({})).choices, [{ finish_reason: 'stop', message: { content: ' Hello there', reasoning_content: ' I should greet. ' } }])
    t.match((await chat({ max_tokens: 3 })).choices, [{ finish_reason: 'length', message: { content: /^$/, reasoning_content: /I should $/ } }])
    t.match((await chat({ reasoning_format: 'none' })).choices, [{ message: { content: '<think> I should greet. </think> Hello there', reasoning_content: undefined } }])
    const { chunks, text } = await stream(url, '/v1/chat/completions', { messages: [user] })
    t.equal(text, ' Hello there')
    const deltas = chunks.map(chunk => chunk.choices[0]?.delta as Partial<Said['choices'][0]['message']> | undefined)
    t.equal(deltas.map(delta => delta?.reasoning_content ?? '').join(''), ' I should greet. ')
  })

  await t.test('an answer with a shape may begin with thoughts', async t => {
    const format = { type: 'json_schema', json_schema: { name: 'x', schema: { const: 7 } } }
    const { message } = (await chat({ response_format: format, temperature: 0 })).choices[0]!
    t.same([JSON.parse(message.content), message.reasoning_content], [7, ' I should greet. '])
    const forced = (await chat({ tools: [weather], tool_choice: 'required', temperature: 0 })).choices[0]!
    t.match(forced, { finish_reason: 'tool_calls', message: { reasoning_content: ' I should greet. ', tool_calls: [{ function: { name: 'weather' } }] } })
  })
})

t.test('probabilities, several answers and seeds', async t => {
  const { url } = await startEmbedded(t, ['--model', modelFile(t), '--ctx-size', '512', '--parallel', '2', '--kv-unified'])
  const ask = async (path: string, body: object): Promise<Said> => (await post(url, path, body)).json as unknown as Said
  const chat = async (body: object): Promise<Said> => ask('/v1/chat/completions', { messages: [user], ...body })

  await t.test('each token has its own and those of the likeliest, whole and streamed', async t => {
    const { choices: [choice] } = await chat({ logprobs: true, top_logprobs: 2, max_tokens: 3 })
    const { content } = choice!.logprobs!
    t.equal(content.map(({ token }) => token).join(''), choice!.message.content)
    t.match(content[0], { id: Number, token: 'Hello! ', bytes: [...Buffer.from('Hello! ')], top_logprobs: [{ token: 'Hello! ' }, { token: String }] })
    t.ok(content.every(({ logprob, top_logprobs: top }) => Math.abs(logprob) < 1e-6 && top.length === 2))
    t.equal((await chat({ logprobs: true, max_tokens: 1 })).choices[0]!.logprobs!.content[0]!.top_logprobs.length, 20)
    const alone = (await chat({ logprobs: true, top_logprobs: 0, max_tokens: 1 })).choices[0]!
    t.equal(alone.logprobs!.content[0]!.top_logprobs.length, 0)
    t.equal((await chat({ max_tokens: 1 })).choices[0]!.logprobs, undefined)
    const { chunks, text } = await stream(url, '/v1/chat/completions', { messages: [user], logprobs: true, top_logprobs: 1, stop: ['the demo'] })
    t.equal(text, 'Hello! I am ')
    const streamed = chunks.flatMap(chunk => (chunk.choices[0] as Partial<Said['choices'][0]> | undefined)?.logprobs?.content ?? [])
    t.same(streamed.map(({ token }) => token), ['Hello! ', 'I ', 'am '], 'what is left out of the answer is left out of them')
  })

  await t.test('completions have them in llama-server\'s shape and in that of OpenAI', async t => {
    const { choices: [choice] } = await ask('/v1/completions', { prompt: 'x', logprobs: 1, max_tokens: 2 })
    t.match(choice!.logprobs, { content: [{ token: 'Hello! ' }, { token: 'I ' }], tokens: ['Hello! ', 'I '], token_logprobs: [Number, Number], top_logprobs: [{ 'Hello! ': Number }, { 'I ': Number }], text_offset: [0, 7] })
    const { chunks } = await stream(url, '/v1/completions', { prompt: 'x', logprobs: 0, max_tokens: 2 })
    const told = chunks.map(chunk => (chunk.choices[0] as { logprobs?: unknown } | undefined)?.logprobs)
    t.match(told, [{ text_offset: [0] }, { text_offset: [7] }, null])
  })

  await t.test('what is told is what there was before anything was cut off, and what is picked follows the options', async t => {
    // two tokens that a bias makes all there is: equally likely
    const body = { prompt: 'x', logprobs: 2, max_tokens: 1, logit_bias: { 93: 1000, 475: 1000 } }
    const seen = new Set<string>()
    for (let seed = 0; seed < 12; seed++) {
      const { choices: [choice] } = await ask('/v1/completions', { ...body, seed })
      t.ok(Math.abs(choice!.logprobs!.content[0]!.logprob - Math.log(0.5)) < 1e-3)
      seen.add(choice!.text)
      t.equal((await ask('/v1/completions', { ...body, seed })).choices[0]!.text, choice!.text, 'the same seed, the same token')
    }
    t.equal(seen.size, 2, 'chance picks either')
    const greedy = await Promise.all([1, 2, 3].map(async seed => ask('/v1/completions', { ...body, seed, top_k: 1 })))
    t.equal(new Set(greedy.map(({ choices }) => choices[0]!.text)).size, 1, 'top_k 1 picks one')
    t.equal((await ask('/v1/completions', { ...body, min_p: 2 })).choices[0]!.logprobs!.content.length, 1, 'the likeliest is never cut off')
  })

  await t.test('several answers to one prompt read it once, and one seed makes each of them another', async t => {
    const body = { n: 3, max_tokens: 1, logit_bias: { 93: 1000, 475: 1000 }, seed: 5 }
    const first = await chat(body)
    t.same(first.choices.map(({ index }) => index), [0, 1, 2])
    t.equal(first.usage.prompt_tokens, (await chat({ max_tokens: 1 })).usage.prompt_tokens)
    t.equal(first.usage.completion_tokens, 3)
    const texts = async (seed: number): Promise<string[]> =>
      (await chat({ ...body, n: 8, seed })).choices.map(({ message }) => message.content)
    t.same(await texts(5), await texts(5))
    t.equal(new Set(await texts(5)).size, 2)
  })
})
