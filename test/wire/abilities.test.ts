import OpenAI from 'openai'
import t, { type Test } from 'tap'
import gemini from '../../plugins/dialects/gemini/index.js'
import ollama from '../../plugins/dialects/ollama/index.js'
import hub from '../../plugins/services/hub/index.js'
import library from '../../plugins/services/library/index.js'
import pull from '../../plugins/services/pull/index.js'
import messageRoutes from '../../plugins/v1/messages/index.js'
import modelRoutes from '../../plugins/v1/models/index.js'
import responseRoutes from '../../plugins/v1/responses/index.js'
import { SlotTurns } from '../../plugins/v1/batches/slot-turns.js'
import textRoutes from '../../plugins/v1/text/index.js'
import { FakeClock } from '../../kernel/testing/fake-clock.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'
import type { AnyPlugin, EngineProvider } from '../../kernel/contract/index.js'
import { until } from './wire-gateway.js'

const abilities = {
  agent: { vision: false, audio: false, json_schema: true },
  eyes: { vision: true, tools: true, json_schema: true },
  twin: { vision: false, json_schema: false },
  mute: { tools: false },
  handy: { tools: true },
  plain: { vision: false },
  sights: { vision: true }
}

function slot (model: string, context = 8192, head = 'provider = "fake"'): string {
  return `type = "llm"\n${head}\ndevice = "cpu"\n[model]\ndefault = "${model}"\ncontext_size = ${context}\n`
}

interface Abilities extends TestGateway {
  readonly started: string[]
  /** The last request that reached an engine. */
  last (): { readonly slot: string, readonly body: Readonly<Record<string, unknown>> }
}

/** `agent` and `twin` run one model without a projector, `eyes` one that sees. Each engine answers with its slot's name. */
async function setup (
  t: Test, more: Readonly<Record<string, string>> = {}, plugins: readonly AnyPlugin[] = []
): Promise<Abilities> {
  const started: string[] = []
  let last = { slot: '', body: {} }
  const runtime = new FakeEngineRuntime({
    onStart: ({ slot, engine }) => {
      started.push(slot)
      engine.answer(({ body }) => {
        last = { slot, body: JSON.parse(body.toString()) as object }
        const choices = [{ index: 0, message: { role: 'assistant', content: slot }, finish_reason: 'stop' }]
        return { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ from: slot, choices })] }
      })
    }
  })
  const can: Pick<EngineProvider, 'abilities'> = { abilities: ({ slot: { name } }) => abilities[name as keyof typeof abilities] ?? {} }
  const chat = { path: '/v1/chat/completions', streaming: true, body: 'json' } as const
  const gateway = await createTestGateway({
    runtime,
    plugins: [
      createFakeProviderPlugin(can), createFakeProviderPlugin({ name: 'chatty', surfaces: { chat }, ...can }),
      textRoutes, modelRoutes, messageRoutes, responseRoutes, ...plugins
    ],
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[dispatcher]\nlist_unloaded = true\n[aliases]\n"gpt" = "svc/agent"\n',
      'etc/svc/slots/agent.toml': slot('text-model'),
      'etc/svc/slots/eyes.toml': slot('vision-model'),
      'etc/svc/slots/twin.toml': slot('text-model', 32_768),
      ...Object.fromEntries(Object.entries(more).map(([name, file]) => [`etc/svc/slots/${name}.toml`, file])),
      'var/lib/svc/registry/registry.toml': ['text-model', 'vision-model', 'tool-model'].map(id => `[models.${id}]\nname = "${id}"\npath = "/dev/null"\n`).join('')
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, { started, last: () => last })
}

const image = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }]
const schema = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } }

interface Answer {
  readonly from?: string
  readonly error?: { readonly code: string, readonly param: string, readonly message: string, readonly details: unknown }
}

t.test('a request goes to a slot that can do what it asks', async t => {
  const gateway = await setup(t)
  const post = async (body: object, path = '/v1/chat/completions'): Promise<Response> => await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) })
  const ask = async (body: object, path?: string): Promise<string> => {
    const answer = await (await post(body, path)).json() as Answer
    return answer.from ?? `${answer.error!.code} ${answer.error!.param}`
  }
  const text = [{ role: 'user', content: 'hi' }]

  t.equal(await ask({ model: 'text-model', messages: text }), 'agent')
  t.equal(await ask({ model: 'text-model', messages: [{ role: 'user', content: 'x'.repeat(60_000) }] }), 'twin', 'of one model, the slot whose context holds it')
  t.equal(await ask({ model: 'text-model', messages: text, response_format: schema }), 'agent', 'of one model, the slot that knows schemas')
  t.equal(await ask({ model: 'svc/agent', messages: image }), 'eyes', 'a role goes to the slot that sees')
  t.equal(await ask({ model: 'gpt', messages: image }), 'eyes', 'so does an alias of a role')
  t.equal(await ask({ model: 'svc/agent', messages: text }), 'agent')
  t.equal(await ask({ model: 'eyes', messages: image }), 'eyes')
  t.equal(await ask({ model: 'twin', messages: text, response_format: schema }), 'model.ability_missing response_format')
  t.equal(await ask({ model: 'agent', messages: text, tools: [{ type: 'function', function: { name: 'f' } }] }), 'agent', 'what is unknown is the engine\'s to judge')
  t.equal(await ask({ model: 'agent', input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:' }] }] }, '/v1/responses'), 'model.ability_missing input')
  const told = await (await post({ model: 'agent', max_tokens: 5, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x' } }] }] }, '/v1/messages')).json()
  t.match(told, { type: 'error', error: { type: 'invalid_request_error', code: 'model.ability_missing' } }, 'in the shape of the route')
})

t.test('who waits for a slot learns which of several a request goes to, and its body is read once', async t => {
  const { dispatcher } = (await setup(t)).gateway.inference()
  for (const [request, slot] of [[{ messages: image }, 'eyes'], [{ messages: [], response_format: schema }, 'agent']] as const) {
    let reads = 0
    const asked = {
      surface: 'chat',
      get body () {
        reads++
        return Buffer.from(JSON.stringify({ model: 'svc/agent', ...request }))
      }
    } as const
    for (let times = 0; times < 3; times++) t.match(dispatcher.target('svc/agent', 'chat', asked), { slot })
    t.equal(reads, 1)
  }
})

t.test('a row of a batch waits for the slot that can do what it asks, and for no other of its name', async t => {
  const { dispatcher: dispatch, slots } = (await setup(t)).gateway.inference()
  const busy = { inFlight: 1, waiting: 0 }
  const status: typeof slots.status = name => ({ ...slots.status(name), ...name === 'agent' ? busy : {} })
  const turns = new SlotTurns({ clock: new FakeClock(), dispatch, requests: { list: () => [] }, slots: { status } })
  const bodyOf = (messages: unknown): Buffer => Buffer.from(JSON.stringify({ model: 'svc/agent', messages }))
  const over = new AbortController()
  const waiting = turns.take('one', 'svc/agent', ['chat'], bodyOf([{ role: 'user', content: 'hi' }]), over.signal)
  const release = await turns.take('two', 'svc/agent', ['chat'], bodyOf(image), over.signal)
  release()
  over.abort(new Error('still waiting'))
  await t.rejects(waiting, { message: 'still waiting' }, 'the other one is busy')
})

t.test('tools go to a slot whose model calls them', async t => {
  const gateway = await setup(t, { mute: slot('tool-model'), handy: slot('tool-model') })
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const ask = async (body: object, path = '/v1/chat/completions'): Promise<Answer> =>
    await (await gateway.fetch(path, { method: 'POST', body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], ...body }) })).json() as Answer
  t.equal((await ask({ model: 'tool-model', tools })).from, 'handy', 'of one model, the slot that calls tools')
  t.equal((await ask({ model: 'mute', tools: [] })).from, 'mute', 'no tools ask nothing')
  t.equal((await ask({ model: 'mute', tools, tool_choice: 'none' })).from, 'mute')
  t.match(await ask({ model: 'mute', tools }), {
    error: {
      code: 'model.ability_missing', param: 'tools', details: { ability: 'tools', slots: ['mute'] },
      message: /it needs a model that calls tools, and slot 'mute' cannot; use .*'handy'.* instead/
    }
  })
  t.match(await ask({ model: 'mute', max_tokens: 5, tools: [{ name: 'f', input_schema: { type: 'object' } }] }, '/v1/messages'), {
    type: 'error', error: { type: 'invalid_request_error', code: 'model.ability_missing' }
  })
})

t.test('what a slot is asked over another surface is chosen, shaped and refused in the words of the client', async t => {
  const gateway = await setup(t, {
    plain: slot('tool-model', 8192, 'provider = "chatty"\nenable_thinking = true'),
    sights: slot('tool-model', 8192, 'provider = "chatty"\nenable_thinking = false')
  })
  const post = async (path: string, body: object): Promise<Answer> => await (await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) })).json() as Answer
  const input = [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AA==' }] }]
  const messages = [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }] }]
  t.match(await post('/v1/responses', { model: 'plain', input }), {
    error: { code: 'model.ability_missing', param: 'input', details: { ability: 'vision', slots: ['plain'], able: ['eyes', 'sights'] } }
  })
  t.match(await post('/v1/messages', { model: 'plain', max_tokens: 5, messages }), {
    type: 'error', error: { type: 'invalid_request_error', code: 'model.ability_missing', details: { able: ['eyes', 'sights'] } }
  })
  t.strictSame(gateway.started, [], 'nothing is loaded for it')

  await gateway.slots.ensureReady('plain', new AbortController().signal)
  await post('/v1/responses', { model: 'tool-model', input: 'hi' })
  t.match(gateway.last(), { slot: 'plain', body: { chat_template_kwargs: { enable_thinking: true } } }, 'the slot that runs')
  for (const [path, body] of [['/v1/responses', { input }], ['/v1/messages', { max_tokens: 5, messages }]] as const) {
    await post(path, { model: 'tool-model', ...body })
    t.match(gateway.last(), { slot: 'sights', body: { chat_template_kwargs: { enable_thinking: false } } }, `${path} is shaped for the slot that serves it`)
  }
})

t.test('what Ollama\'s and Gemini\'s clients ask is shaped for the slot that serves it', async t => {
  const thinks = (isOn: boolean): string => `provider = "fake"\nenable_thinking = ${isOn}`
  const gateway = await setup(t, {
    agent: slot('text-model', 8192, thinks(true)),
    eyes: slot('vision-model', 16_384, thinks(false)),
    mute: slot('tool-model', 8192, thinks(true)),
    handy: slot('tool-model', 8192, thinks(false))
  }, [hub, library, pull, ollama, gemini])
  const { slots } = gateway
  const post = async (path: string, body: object): Promise<Response> => await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) })
  const shape = (slot: string, enable: boolean): object => ({ slot, body: { chat_template_kwargs: { enable_thinking: enable } } })
  const picture = 'iVBORw0KGgoAAAANSUhEUg'
  const tool = { name: 'f', description: 'of it', parameters: { type: 'object', properties: {} } }

  const chat = { model: 'svc/agent', stream: false, messages: [{ role: 'user', content: 'what is it?', images: [picture] }] }
  await slots.ensureReady('agent', new AbortController().signal)
  const seen = await post('/api/chat', { ...chat, options: { num_ctx: 16_384 } })
  t.match(await seen.json(), { model: 'svc/agent', message: { content: 'eyes' }, done: true })
  t.match(gateway.last(), shape('eyes', false))
  t.equal(seen.headers.get('x-svc-warning'), null, 'the context is that of the slot that sees')
  t.match((await post('/api/generate', { model: 'svc/agent', stream: false, prompt: 'x', images: [picture], options: { num_ctx: 8192 } })).headers.get('x-svc-warning'), /the slot has 16384 tokens/)
  t.match(gateway.last(), shape('eyes', false))

  const before = slots.idleTimeoutMs('agent')
  await (await post('/api/chat', { ...chat, keep_alive: '1h' })).json()
  t.equal(slots.idleTimeoutMs('eyes'), 3_600_000, 'the engine that has answered stays')
  t.equal(slots.idleTimeoutMs('agent'), before)
  await (await post('/api/chat', { ...chat, keep_alive: 0 })).json()
  await until(() => slots.status('eyes').state === 'offline', 'the engine that has answered goes')
  t.equal(slots.status('agent').state, 'ready', 'and no other one')

  const text = { ...chat, messages: [{ role: 'user', content: 'hi' }] }
  await (await post('/api/chat', text)).json()
  t.match(gateway.last(), shape('agent', true))
  await slots.ensureReady('mute', new AbortController().signal)
  await (await post('/api/chat', { ...text, model: 'tool-model' })).json()
  t.match(gateway.last(), shape('mute', true), 'the slot that runs')
  await (await post('/api/chat', { ...text, model: 'tool-model', tools: [{ type: 'function', function: tool }] })).json()
  t.match(gateway.last(), shape('handy', false), 'tools')

  const contents = [{ role: 'user', parts: [{ text: 'what is it?' }, { inlineData: { mimeType: 'image/png', data: picture } }] }]
  const plain = [{ role: 'user', parts: [{ text: 'hi' }] }]
  for (const [model, body, expected] of [
    ['svc/agent', { contents }, shape('eyes', false)],
    ['svc/agent', { contents: plain }, shape('agent', true)],
    ['tool-model', { contents: plain, tools: [{ functionDeclarations: [tool] }] }, shape('handy', false)]
  ] as const) {
    t.equal((await post(`/v1beta/models/${model}:generateContent`, body)).status, 200)
    t.match(gateway.last(), expected, `${model} of Gemini's`)
  }
})

t.test('a request that its slot cannot serve is refused for good, before anything is loaded', async t => {
  const gateway = await setup(t)
  const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'agent', messages: image, stream: true }) })
  t.equal(response.status, 400)
  t.equal(response.headers.get('x-should-retry'), 'false')
  const { error } = await response.json() as Answer
  t.match(error, { code: 'model.ability_missing', param: 'messages', details: { model: 'agent', ability: 'vision', slots: ['agent'], able: ['eyes'] } })
  t.equal(error!.message, 'model \'agent\' cannot take this request: it needs a model that takes images, and slot \'agent\' cannot; use \'eyes\' instead')
  t.strictSame(gateway.started, [])

  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'none' })
  await t.rejects(client.chat.completions.create({ model: 'text-model', messages: image as never }), { status: 400, code: 'model.ability_missing' }, 'the client does not try again')
  t.strictSame(gateway.started, [])
})

t.test('the list of models tells what each slot can do, and its context', async t => {
  const gateway = await setup(t)
  const { data } = await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string, capabilities: string[], context_length: number }> }
  const rows = Object.fromEntries(data.map(({ id, capabilities, context_length: context }) => [id, [context, ...capabilities]]))
  t.match(rows, {
    'agent': [8192, 'chat', 'json_schema'], 'eyes': [8192, 'chat', 'tools', 'vision', 'json_schema'], 'twin': [32_768, 'chat'], 'svc/agent': [8192, 'chat', 'json_schema']
  })
})
