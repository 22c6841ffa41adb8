import Anthropic, { BadRequestError as AnthropicBadRequest } from '@anthropic-ai/sdk'
import OpenAI, { APIUserAbortError } from 'openai'
import type { Response } from 'openai/resources/responses/responses'
import { ResponsesWS } from 'openai/resources/responses/ws'
import type { Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { rankGguf } from '../plugins/providers/llm-server/rank-gguf.js'
import { facts, questions } from '../plugins/providers/llm-server/support.js'

/** What a model that can do nothing else says: it wants two texts compared, whatever it is asked. */
export const callForTool = '<tool_call>\n{"name": "embed_text", "arguments": {"input": ["one", "two"]}}\n</tool_call>'

/** Calls and their results as one family of models writes them, which llama-server reads back. */
export const toolTemplate = `{%- if tools %}<|system|>You may call functions. Their signatures are within <tools></tools>:
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
For each call return a JSON object within <tool_call></tool_call>:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}<|assistant|>{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}
{%- elif message.role == 'tool' %}<|user|><tool_response> {{ message.content }} </tool_response>
{%- else %}{{ '<|' + message.role + '|>' + message.content }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}`

/** What a model that thinks says, in the words of `thinkingTemplate`, which llama-server reads back. */
export const thought = '<think> I should greet. </think> Hello there'

export const thinkingTemplate = '{% for message in messages %}<|{{ message.role }}|>{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}' +
  '{{ message.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}'

/** How many ports `textHome` takes. */
export const TEXT_PORTS = 7

const messages = [{ role: 'user' as const, content: 'Who are you?' }]

/**
 * Slots for every text surface: `agent` says the sentence, `endless` never stops, `caller` calls a tool, `thinker` thinks first,
 * `embed` and `rerank`, and `both`, which cannot be.
 */
export function textHome (home: string, ports: readonly number[]): Record<string, string | Buffer> {
  const store = `${home}/var/lib/svc/models`
  const slot = (type: string, model: string, port: number, extra = ''): string =>
    `type = "${type}"\ndevice = "cpu"\nport = ${port}\nidle_timeout_s = 0\n[model]\ndefault = "${model}"\ncontext_size = 8192\n${extra}`
  const files = {
    demo: bigramGguf({ infill: true }), endless: bigramGguf({ cycle: true }), ranker: rankGguf(),
    caller: bigramGguf({ sentence: callForTool }), thinker: bigramGguf({ sentence: thought })
  }
  return {
    ...Object.fromEntries(Object.entries(files).map(([name, file]) => [`var/lib/svc/models/${name}.gguf`, file])),
    'var/lib/svc/registry/registry.toml': Object.keys(files)
      .map(name => `[models.${name}]\npath = "${store}/${name}.gguf"\ncapabilities = ["chat"]\n`).join(''),
    'etc/svc/slots/agent.toml': slot('llm', 'demo', ports[0]!),
    'etc/svc/slots/endless.toml': slot('llm', 'endless', ports[1]!, '[server]\nextra_args = "--context-shift"\n'),
    // the default, so that no tool takes the one that cannot run
    'etc/svc/slots/embed.toml': `default = true\n${slot('embedding', 'demo', ports[2]!)}`,
    'etc/svc/slots/rerank.toml': slot('reranking', 'ranker', ports[3]!),
    'var/lib/svc/models/chat-templates/tools.jinja': toolTemplate,
    'etc/svc/slots/caller.toml': slot('llm', 'caller', ports[5]!, 'labels = ["tool-calling"]\n').replace('[model]', 'chat_template = "tools"\n[model]'),
    'var/lib/svc/models/chat-templates/thinking.jinja': thinkingTemplate,
    'etc/svc/slots/thinker.toml': slot('llm', 'thinker', ports[6]!).replace('[model]', 'chat_template = "thinking"\n[model]'),
    'etc/svc/slots/both.toml': slot('embedding', 'demo', ports[4]!, '[server]\nextra_args = "--reranking"\n')
  }
}

export function openai (url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything', maxRetries: 0 })
}

export function anthropic (url: string): Anthropic {
  return new Anthropic({ baseURL: url, apiKey: 'anything', maxRetries: 0 })
}

/** Chat, whole and streamed, and a stream that is left. */
export async function chats (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const answer = await client.chat.completions.create({ model: 'svc/agent', messages })
  t.equal(answer.choices[0]!.message.content, demoSentence)
  t.equal(answer.model, 'demo')
  let text = ''
  for await (const chunk of await client.chat.completions.create({ model: 'agent', messages, stream: true })) text += chunk.choices[0]?.delta.content ?? ''
  t.equal(text, demoSentence)
  const controller = new AbortController()
  const endless = await client.chat.completions.create({ model: 'endless', messages, stream: true, max_tokens: 1_000_000 }, { signal: controller.signal })
  let seen = 0
  for await (const _ of endless) if (++seen === 20) controller.abort()
  t.ok(seen >= 20 && seen < 100_000, 'a stream that is left')
}

/** Legacy completions, whole and streamed. */
export async function completes (t: Test, url: string): Promise<void> {
  const client = openai(url)
  t.equal((await client.completions.create({ model: 'demo', prompt: 'Once' })).choices[0]!.text, demoSentence)
  let text = ''
  for await (const chunk of await client.completions.create({ model: 'svc/agent', prompt: 'Once', stream: true })) text += chunk.choices[0]?.text ?? ''
  t.equal(text, demoSentence)
}

/** Recall that means something: each question's nearest text is the one that shares its words. */
export async function recalls (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const embed = async (input: string[] | number[][], format?: 'float'): Promise<number[][]> => {
    const { data } = await client.embeddings.create({ model: 'embed', input, ...format === undefined ? {} : { encoding_format: format } })
    return data.map(row => row.embedding)
  }
  const known = await embed(facts)
  const asked = await embed(questions)
  for (const [i, question] of asked.entries()) {
    const scores = known.map(fact => fact.reduce((sum, value, dim) => sum + value * question[dim]!, 0))
    t.equal(scores.indexOf(Math.max(...scores)), i, questions[i]!)
  }
  const floats = await embed(facts.slice(0, 2), 'float')
  const same = known.slice(0, 2).flat()
  t.ok(floats.flat().every((value, i) => Math.abs(value - same[i]!) < 1e-5), 'base64, which the client asks for by itself, and plain numbers say the same')
  t.equal((await embed([[10, 11, 12], [13]])).length, 2, 'tokens instead of texts')
  const nothing = { model: 'embed', input: 'x', encoding_format: null }
  t.match(await client.post('/embeddings', { body: nothing }), { data: { length: 1 } }, 'null says "not given"')
  const refused = await client.embeddings.create({ model: 'embed', input: 'word '.repeat(20_000) }).catch((error: unknown) => error)
  t.match(refused, { status: 400, message: /too large/ }, 'what cannot fit is not repeated by any SDK')
}

/** Reranking, which the client has no method of its own for; the test model scores a document by its last digit. */
export async function reranks (t: Test, url: string, path = '/rerank'): Promise<void> {
  const documents = ['about dogs 2', 'about cats 9', 'nothing', 'something 5']
  const body = { model: 'svc/rerank', query: 'cats', documents }
  const { results } = await openai(url).post<{ results: Array<{ index: number, relevance_score: number }> }>(path, { body })
  t.same([...results].sort((a, b) => b.relevance_score - a.relevance_score).map(({ index }) => index), [1, 3, 2, 0], path)
}

/** Two modes in one engine give scores that mean nothing, so such a slot is refused before it starts. */
export async function refusesBothModes (t: Test, url: string): Promise<void> {
  const refused = await openai(url).embeddings.create({ model: 'both', input: 'x' }).catch((error: unknown) => error)
  t.match(refused, { code: 'slot.load_failed', message: /one engine for embeddings and reranking/, error: { details: { reason: 'slot.config_error' } } })
  for (const [method, path, body] of [
    ['POST', '/api/slots', { name: 'other', type: 'reranking', device: 'cpu', model: { default: 'ranker' }, server: { extra_args: ['--embeddings'] } }],
    ['PUT', '/api/slots/rerank/config', { server: { extra_args: '--embedding' } }]
  ] as const) {
    const response = await fetch(`${url}${path}`, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    t.match({ status: response.status, body: await response.json() }, { status: 400, body: { error: { code: 'slot.config_error', message: /make two slots/ } } }, path)
  }
}

/** A model that calls a tool of the client's, whole and streamed. */
export async function callsTools (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const tools = [{
    type: 'function' as const,
    function: { name: 'embed_text', parameters: { type: 'object', properties: { input: { type: 'array', items: { type: 'string' } } } } }
  }]
  const body = { model: 'caller', messages, tools, temperature: 0 }
  const wanted = { name: 'embed_text', input: ['one', 'two'] }
  const { choices } = await client.chat.completions.create(body)
  t.equal(choices[0]!.finish_reason, 'tool_calls')
  const call = choices[0]!.message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall
  t.strictSame({ name: call.function.name, ...JSON.parse(call.function.arguments) as object }, wanted)
  let [name, args, finish]: [string, string, string | null] = ['', '', null]
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
    const piece = chunk.choices[0]?.delta.tool_calls?.[0]?.function
    name += piece?.name ?? ''
    args += piece?.arguments ?? ''
    finish ??= chunk.choices[0]?.finish_reason ?? null
  }
  t.strictSame([{ name, ...JSON.parse(args) as object }, finish], [wanted, 'tool_calls'])
}

const shape = {
  type: 'object',
  properties: { mood: { enum: ['good', 'bad'] }, sure: { type: 'boolean' }, level: { type: 'integer', minimum: 1, maximum: 5 } },
  required: ['mood', 'sure', 'level'],
  additionalProperties: false
}

/** Structured output, which holds the model to a shape whatever it would say. */
export async function keepsToShape (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const answer = await client.chat.completions.create({
    model: 'agent', messages, response_format: { type: 'json_schema', json_schema: { name: 'state', schema: shape, strict: true } }
  })
  t.match(JSON.parse(answer.choices[0]!.message.content!), { mood: /^(good|bad)$/, sure: Boolean, level: /^[1-5]$/ })
}

/** A tool that the client insists on, with a model that would say something else. */
export async function callsForcedTool (t: Test, url: string, model = 'agent'): Promise<void> {
  const client = openai(url)
  const tools = [{ type: 'function' as const, function: { name: 'set_state', parameters: shape } }]
  const forced = await client.chat.completions.create({ model, messages, tools, tool_choice: 'required', max_tokens: 400 })
  const call = forced.choices[0]!.message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall
  t.equal(call.function.name, 'set_state')
  t.match(JSON.parse(call.function.arguments), { mood: /^(good|bad)$/, sure: Boolean, level: /^[1-5]$/ })
  // a model of llama-server's that does not stop calls as long as it may
  const enough = 150
  const other = { name: 'another', parameters: { type: 'object', properties: {} } }
  const named = await client.chat.completions.create({
    model, messages, max_tokens: enough, tools: [{ type: 'function', function: other }, ...tools], tool_choice: { type: 'function', function: { name: 'set_state' } }
  })
  const calls = named.choices[0]!.message.tool_calls as OpenAI.ChatCompletionMessageFunctionToolCall[]
  t.strictSame([...new Set(calls.map(({ function: { name } }) => name))], ['set_state'], 'of several the one that is named')
  const response = await client.responses.create({
    model, input: 'x', max_output_tokens: enough, tool_choice: { type: 'function', name: 'set_state' },
    tools: [{ ...other, type: 'function', strict: false }, { type: 'function', name: 'set_state', parameters: shape, strict: false }]
  })
  t.strictSame([...new Set(response.output.flatMap(item => item.type === 'function_call' ? [item.name] : []))], ['set_state'])
  const message = await anthropic(url).messages.create({
    model, max_tokens: enough, messages, tool_choice: { type: 'tool', name: 'set_state' },
    tools: [{ name: 'another', input_schema: { type: 'object' } }, { name: 'set_state', input_schema: shape as { type: 'object' } }]
  })
  t.strictSame([...new Set(message.content.flatMap(block => block.type === 'tool_use' ? [block.name] : []))], ['set_state'])
}

/** A client that wants one call at a time, of a model that makes as many as it may, or as it says. */
export async function callsOnce (t: Test, url: string, model: string): Promise<void> {
  const [chat, { responses }, { messages: claude }] = [openai(url).chat.completions, openai(url), anthropic(url)]
  const [name, enough] = ['set_state', 150]
  const order = {
    model, messages, max_tokens: enough, parallel_tool_calls: false, tool_choice: 'required' as const,
    tools: [{ type: 'function' as const, function: { name, parameters: shape } }]
  }
  const completions = [await chat.create(order), await chat.stream({ ...order, stream: true }).finalChatCompletion()]
  for (const { choices: [choice] } of completions) {
    t.match(choice, { finish_reason: 'tool_calls', message: { tool_calls: [{ function: { name } }] } })
    t.equal(choice!.message.tool_calls!.length, 1)
  }
  const asked = {
    model, input: 'x', max_output_tokens: enough, parallel_tool_calls: false, tool_choice: 'required' as const,
    tools: [{ type: 'function' as const, name, parameters: shape, strict: false }]
  }
  const answers = [await responses.create(asked), await responses.stream({ ...asked, stream: true }).finalResponse()]
  for (const { output, status } of answers) {
    t.strictSame([status, output.filter(({ type }) => type === 'function_call').length], ['completed', 1])
  }
  const said = {
    model, messages, max_tokens: enough, tools: [{ name, input_schema: shape as { type: 'object' } }],
    tool_choice: { type: 'any' as const, disable_parallel_tool_use: true }
  }
  for (const { content, stop_reason: reason } of [await claude.create(said), await claude.stream(said).finalMessage()]) {
    t.strictSame([reason, content.filter(({ type }) => type === 'tool_use').length], ['tool_use', 1])
  }
}

/** The tool loop: the model of the test never stops calling, so the eighth answer is the last and is words. */
export async function usesTools (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const body = { model: 'caller', messages, omni: true, temperature: 0 }
  const whole = await client.chat.completions.create(body) as OpenAI.ChatCompletion & { _svc: { omni: object } }
  t.equal(whole.choices[0]!.message.content, callForTool)
  t.equal(whole.choices[0]!.finish_reason, 'stop')
  const ran = { name: 'embed_text', ok: true }
  t.strictSame(whole._svc.omni, { caller_slot: 'caller', rounds: 8, tools: Array.from({ length: 7 }, () => ran) })
  let text = ''
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
    t.notOk(chunk.choices[0]?.delta.tool_calls)
    text += chunk.choices[0]?.delta.content ?? ''
  }
  t.equal(text, callForTool)
  const plain = await client.chat.completions.create({ ...body, model: 'agent' })
  t.equal(plain.choices[0]!.message.content, demoSentence, 'a model that does not call tools')
}

/** The Messages API in its own client. */
export async function speaksMessages (t: Test, url: string): Promise<void> {
  const client = anthropic(url)
  const question = { model: 'svc/agent', max_tokens: 200, messages }
  const answer = await client.messages.create({ ...question, system: 'Be brief.' })
  t.match(answer, { type: 'message', role: 'assistant', content: [{ type: 'text', text: demoSentence }], stop_reason: 'end_turn', model: 'demo' })
  t.ok(answer.usage.output_tokens > 30)
  const stream = client.messages.stream(question)
  t.equal(await stream.finalText(), demoSentence)
  t.match(await client.messages.create({ ...question, max_tokens: 3 }), { stop_reason: 'max_tokens' })
  const refused = await client.messages.create({ ...question, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }] }] })
    .catch((error: unknown) => error)
  t.match(refused, { error: { type: 'error', error: { type: 'invalid_request_error', message: /image/ }, request_id: /./ } }, 'the engine\'s refusal, in the shape of the API')
  t.ok(refused instanceof AnthropicBadRequest, 'and with a status that SDKs do not repeat')
  const controller = new AbortController()
  const endless = await client.messages.create({ ...question, model: 'endless', max_tokens: 1_000_000, stream: true }, { signal: controller.signal })
  let seen = 0
  for await (const _ of endless) if (++seen === 20) controller.abort()
  t.ok(seen >= 20)
}

export async function countsTokens (t: Test, url: string): Promise<void> {
  const [short, long] = await Promise.all(['hi', 'hi '.repeat(50)].map(async content =>
    (await anthropic(url).messages.countTokens({ model: 'agent', messages: [{ role: 'user', content }] })).input_tokens))
  t.ok(short! > 0 && long! > short!)
}

export async function countsInputTokens (t: Test, url: string): Promise<void> {
  const [short, long] = await Promise.all(['hi', 'hi '.repeat(50)].map(async input =>
    (await openai(url).responses.inputTokens.count({ model: 'agent', input })).input_tokens))
  t.ok(short! > 0 && long! > short!)
}

/** A summary by a real engine, and a request that goes on from it. */
export async function compacts (t: Test, url: string): Promise<void> {
  const { responses } = openai(url)
  const { output, usage } = await responses.compact({ model: 'agent', input: [{ role: 'user', content: 'hi' }, { role: 'assistant', content: 'hello' }] })
  t.match(output, [{ type: 'message', role: 'user' }, { type: 'compaction', encrypted_content: String }])
  t.ok(usage.output_tokens > 0)
  const input = [...output, { role: 'user', content: 'Who are you?' }] as Parameters<typeof responses.create>[0]['input'] & object
  t.equal((await responses.create({ model: 'agent', input })).output_text, demoSentence)
}

/** The Responses API in the openai client. */
export async function speaksResponses (t: Test, url: string): Promise<void> {
  const client = openai(url)
  t.equal((await client.responses.create({ model: 'agent', input: 'Who are you?' })).output_text, demoSentence)
  let text = ''
  let last = ''
  for await (const event of await client.responses.create({ model: 'svc/agent', input: messages, stream: true })) {
    last = event.type
    if (event.type === 'response.output_text.delta') text += event.delta
  }
  t.strictSame([text, last], [demoSentence, 'response.completed'])
  t.equal((await client.responses.stream({ model: 'agent', input: 'Who are you?' }).finalResponse()).output_text, demoSentence)
  const embed = { type: 'function' as const, name: 'embed_text', parameters: { type: 'object' }, strict: false }
  const { output } = await client.responses.stream({ model: 'caller', input: messages, tools: [embed], temperature: 0 }).finalResponse()
  t.match(output.find(item => item.type === 'function_call'), { name: 'embed_text', arguments: /"one"/ })
  t.match(await client.responses.create({ model: 'agent' }).catch((error: unknown) => error), { status: 400, message: /input/ })
  const controller = new AbortController()
  const pending = client.responses.create({ model: 'endless', input: 'x', max_output_tokens: 1_000_000 }, { signal: controller.signal }).catch((error: unknown) => error)
  const isServed = async (): Promise<boolean> => {
    const { requests } = await (await fetch(`${url}/api/requests`)).json() as { requests: Array<{ model: string, slot: string | null, surface: string }> }
    return requests.some(({ model, slot, surface }) => model === 'endless' && surface === 'responses' && slot !== null)
  }
  while (!await isServed()) await new Promise(resolve => { setTimeout(resolve, 20) })
  controller.abort()
  t.ok(await pending instanceof APIUserAbortError)
}

/** Two requests on one connection, the second of which goes on from the first. */
export async function respondsOverSockets (t: Test, url: string): Promise<void> {
  const connection = new ResponsesWS(openai(url))
  t.teardown(() => connection.close())
  const response = (previous: string | null): Promise<Response> => new Promise((resolve, reject) => {
    connection.once('response.completed', event => resolve(event.response))
    connection.once('error', reject)
    const order = { type: 'response.create' as const, model: 'agent', input: 'Who are you?', store: false }
    connection.send(previous === null ? order : { ...order, previous_response_id: previous })
  })
  const first = await response(null)
  const second = await response(first.id)
  for (const { output } of [first, second]) t.match(output, [{ type: 'message', content: [{ text: demoSentence }] }])
  t.ok(second.usage!.input_tokens > first.usage!.input_tokens)
}

/** A conversation of the Responses API that goes on from what is kept, and one in the background. */
export async function keepsResponses (t: Test, url: string): Promise<void> {
  const { responses } = openai(url)
  const embed = { type: 'function' as const, name: 'embed_text', parameters: { type: 'object' }, strict: false }
  const order = { model: 'caller', tools: [embed], temperature: 0 }
  const first = await responses.create({ ...order, input: 'Who are you?' })
  const call = first.output.find(item => item.type === 'function_call')!
  const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'done' }
  const second = await responses.stream({ ...order, input: [result], previous_response_id: first.id }).finalResponse()
  t.ok(second.usage!.input_tokens > first.usage!.input_tokens, 'the engine read what came before')
  t.match(await responses.retrieve(second.id), { id: second.id, previous_response_id: first.id, status: 'completed' })
  const items: string[] = []
  for await (const { type } of responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) items.push(type)
  t.strictSame([items[0], items.at(-1)], ['message', 'function_call_output'])
  const queued = await responses.create({ model: 'endless', input: 'x', background: true, max_output_tokens: 1_000_000 })
  t.equal((await responses.retrieve(queued.id)).status, 'in_progress')
  t.equal((await responses.cancel(queued.id)).status, 'cancelled')
  let made = await responses.create({ model: 'agent', input: 'Who are you?', background: true })
  while (made.status === 'queued' || made.status === 'in_progress') made = await responses.retrieve(made.id)
  t.strictSame([made.status, made.output_text], ['completed', demoSentence])
  await responses.delete(first.id)
  t.match(await responses.retrieve(first.id).catch((error: unknown) => error), { status: 404, code: 'responses.not_found' })
}

/** A conversation that the gateway keeps: what was said before reaches the engine. */
export async function keepsConversations (t: Test, url: string): Promise<void> {
  const { conversations, responses } = openai(url)
  const { id } = await conversations.create({ items: [{ type: 'message', role: 'user', content: 'My name is Ada.' }] })
  const alone = await responses.create({ model: 'agent', input: 'Who are you?' })
  const inside = await responses.create({ model: 'agent', input: 'Who are you?', conversation: id })
  t.ok(inside.usage!.input_tokens > alone.usage!.input_tokens, 'the engine read what came before')
  const items: string[] = []
  for await (const item of conversations.items.list(id, { order: 'asc', limit: 2 })) items.push(item.id!)
  t.equal(items.length, 3)
  t.match(await conversations.items.retrieve(items[2]!, { conversation_id: id }), { role: 'assistant' })
  await conversations.items.delete(items[0]!, { conversation_id: id })
  t.match(await conversations.update(id, { metadata: { topic: 'names' } }), { metadata: { topic: 'names' } })
  await conversations.items.create(id, { items: [{ type: 'message', role: 'user', content: 'Bye.' }] })
  t.match(await conversations.retrieve(id), { metadata: { topic: 'names' } })
  await conversations.delete(id)
  t.match(await conversations.retrieve(id).catch((error: unknown) => error), { status: 404, code: 'responses.no_conversation' })
}

/** A schema, asked for in the words of the Responses API. */
export async function respondsInShape (t: Test, url: string): Promise<void> {
  const format = { type: 'json_schema' as const, name: 'state', schema: shape, strict: true }
  const { output_text: text } = await openai(url).responses.create({ model: 'agent', input: 'x', text: { format } })
  t.match(JSON.parse(text), { mood: /^(good|bad)$/, sure: Boolean, level: /^[1-5]$/ })
}

/** What llama-server answers with 500 although the request is at fault, so that every SDK repeats it. */
export async function refusesForGood (t: Test, url: string): Promise<void> {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const table: Array<[path: string, body: object, message: RegExp]> = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: [image] }] }, /image input is not supported|takes images/],
    ['/v1/chat/completions', { messages, tools: [{ type: 'function' }] }, /tool/],
    ['/v1/messages', { max_tokens: 5 }, /'messages' is required/],
    ['/v1/responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: image.image_url.url }] }] }, /image input|takes images/]
  ]
  for (const [path, body, message] of table) {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify({ model: 'agent', ...body }) })
    t.match([response.status, response.headers.get('x-should-retry')], [400, 'false'], `${path}: ${String(message)}`)
    t.match(await response.json(), { error: { message } })
  }
}
