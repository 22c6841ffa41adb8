import OpenAI from 'openai'
import t, { type Test } from 'tap'
import messageRoutes from '../../plugins/v1/messages/index.js'
import modelRoutes from '../../plugins/v1/models/index.js'
import responseRoutes from '../../plugins/v1/responses/index.js'
import textRoutes from '../../plugins/v1/text/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'

const abilities = {
  agent: { vision: false, audio: false, json_schema: true },
  eyes: { vision: true, tools: true, json_schema: true },
  twin: { vision: false, json_schema: false },
  mute: { tools: false },
  handy: { tools: true }
}

function slot (model: string, context = 8192): string {
  return `type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "${model}"\ncontext_size = ${context}\n`
}

/** `agent` and `twin` run one model without a projector, `eyes` one that sees. Each engine answers with its slot's name. */
async function setup (
  t: Test, more: Readonly<Record<string, string>> = {}
): Promise<TestGateway & { readonly started: string[] }> {
  const started: string[] = []
  const runtime = new FakeEngineRuntime({
    onStart: ({ slot, engine }) => {
      started.push(slot)
      engine.answer(() => ({ headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ from: slot })] }))
    }
  })
  const gateway = await createTestGateway({
    runtime,
    plugins: [
      createFakeProviderPlugin({ abilities: ({ slot: { name } }) => abilities[name as keyof typeof abilities] ?? {} }),
      textRoutes, modelRoutes, messageRoutes, responseRoutes
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
  return Object.assign(gateway, { started })
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
      message: /it needs a model that calls tools, and slot 'mute' cannot; .*'handy'.* can be asked instead/
    }
  })
  t.match(await ask({ model: 'mute', max_tokens: 5, tools: [{ name: 'f', input_schema: { type: 'object' } }] }, '/v1/messages'), {
    type: 'error', error: { type: 'invalid_request_error', code: 'model.ability_missing' }
  })
})

t.test('a request that its slot cannot serve is refused for good, before anything is loaded', async t => {
  const gateway = await setup(t)
  const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'agent', messages: image, stream: true }) })
  t.equal(response.status, 400)
  t.equal(response.headers.get('x-should-retry'), 'false')
  const { error } = await response.json() as Answer
  t.match(error, { code: 'model.ability_missing', param: 'messages', details: { model: 'agent', ability: 'vision', slots: ['agent'], able: ['eyes'] } })
  t.equal(error!.message, 'model \'agent\' cannot take this request: it needs a model that takes images, and slot \'agent\' cannot; \'eyes\' can be asked instead')
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
