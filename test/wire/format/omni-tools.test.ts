import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool } from '../../../kernel/contract/index.js'
import approvalRoutes from '../../../plugins/api/approvals/index.js'
import imageCache from '../../../plugins/api/images/index.js'
import images from '../../../plugins/v1/images/index.js'
import omni from '../../../plugins/v1/omni/index.js'
import approvals from '../../../plugins/services/approvals/index.js'
import { FakeClock } from '../../../kernel/testing/index.js'
import { toolEngine, type SeenChat, type Turn } from './tool-engine.js'
import { until, wireGateway } from '../wire-gateway.js'

const shop = definePlugin({
  name: 'shop',
  kind: 'mcp',
  apiVersion: 1,
  requires: { tools: core.tools },
  register (ctx) {
    ctx.services.tools.addServer({
      id: 'elsewhere', title: 'Elsewhere', description: 'not for chats', exposure: { direct: true, all: true, chats: false },
      tools: () => [{
        name: 'price', title: null, description: 'x', inputSchema: { type: 'object' }, outputSchema: null, gated: false, primary: null, secrets: [], annotations: {}
      }]
    })
    const item = z.strictObject({ id: z.string() })
    ctx.addTool(defineTool({ server: 'shop', name: 'price', description: 'Tells a price', input: item, handler: async ({ input, actor }) => ({ ...input, price: 3, actor }) }))
    ctx.addTool(defineTool({ server: 'shop', name: 'buy', description: 'Buys', input: item, gated: true, primary: 'id', handler: async ({ input }) => ({ bought: input.id }) }))
    ctx.addTool(defineTool({ server: 'admin', name: 'price', description: 'Another price', input: item, handler: async () => ({ price: 4 }) }))
  }
})

interface Asked {
  readonly status: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly json: any
}

interface RigOptions {
  readonly clock?: FakeClock
  readonly files?: Readonly<Record<string, string>>
}

async function rig (t: Test, svc = '', { files = {}, ...options }: RigOptions = {}) {
  const seen: SeenChat[] = []
  let script = toolEngine([{ content: 'nothing' }], seen)
  const gateway = await wireGateway(t, {
    ...options,
    plugins: [omni, images, imageCache, approvals, approvalRoutes, shop],
    svc: `[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.02\n${svc}`,
    files: {
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\nlabels = ["tool-calling"]\n',
      'etc/svc/agents/careful.toml': '[agent]\nname = "careful"\n[mcp.servers.shop]\nbuiltin = true\ntools = { allow = ["price"] }\n',
      ...files
    },
    onStart: ({ slot, engine }) => {
      const embedding = { headers: { 'content-type': 'application/json' }, chunks: ['{"data":[{"index":0,"embedding":[0.5,1]}]}'] }
      engine.answer(request => slot === 'embed' ? embedding : script(request))
    }
  })
  const post = (body: object, headers: Record<string, string> = {}): Promise<Response> => gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'do it' }], ...body })
  })
  return {
    gateway,
    seen,
    post,
    says: (turns: readonly Turn[]) => {
      seen.length = 0
      script = toolEngine(turns, seen)
    },
    ask: async (body: object, headers?: Record<string, string>): Promise<Asked> => {
      const response = await post(body, headers)
      return { status: response.status, json: await response.json() }
    },
    told: () => seen.at(-1)!.messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content as string) as unknown),
    offered: () => (seen[0]?.tools ?? []).map(tool => tool.function.name),
    /** The call that waits, once there is one. */
    waiting: async (): Promise<string> => {
      const rows = gateway.gateway.kernel().approvals
      await until(() => rows.pending() > 0, 'a call waits')
      return rows.list({ state: 'pending', limit: 1 })[0]!.id
    },
    decide: (id: string, verb: string, body?: object) => gateway.fetch(`/api/agent/approvals/${id}/${verb}`, {
      method: 'POST', ...body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    })
  }
}

t.test('a request that names a tool server lets its model call the tools of that server, and is told what ran', async t => {
  const it = await rig(t)
  it.says([{ calls: [['price', { id: 'a' }], ['price', { id: 7 }], ['nothing', {}]] }, { content: 'Three.' }])
  const { status, json } = await it.ask({ omni: { servers: ['shop'] }, tool_choice: 'required' }, { 'x-svc-agent': 'pi' })
  t.equal(status, 200, JSON.stringify(json))
  t.strictSame(it.offered(), ['price', 'buy'].sort())
  t.match(it.seen[0]!.tools!.find(tool => tool.function.name === 'price'), { function: { parameters: { type: 'object', required: ['id'] } } })
  t.strictSame(it.seen.map(({ tool_choice: choice }) => choice), ['required', undefined], 'the choice holds for the first answer')
  t.match(it.told(), [{ id: 'a', price: 3, actor: 'mcp:pi' }, { error: /validation\.invalid/ }, { error: /no tool 'nothing'/ }])
  t.match(json, { choices: [{ message: { content: 'Three.' } }], _svc: { omni: { rounds: 2, tools: [
    { name: 'price', ok: true, server: 'shop' }, { name: 'price', ok: false, server: 'shop' }, { name: 'nothing', ok: false }
  ] } } })
  const rows = it.gateway.gateway.kernel().activity.list({ action: 'mcp.tool.invoked' })
  t.strictSame(rows.map(({ actor, target, outcome }) => `${actor} ${target} ${outcome}`).sort(), ['mcp:pi shop/price error', 'mcp:pi shop/price ok'])

  it.says([{ content: 'ok' }])
  await it.ask({ omni: { servers: ['shop', 'admin'], tools: ['admin/price', 'shop/price'] }, tools: [{ type: 'function', function: { name: 'price', parameters: { type: 'object' } } }] })
  t.strictSame(it.offered(), ['price', 'admin_price', 'shop_price'], 'a name that is taken gets its server\'s before it')
  await it.ask({ omni: { servers: ['shop'] } }, { 'x-svc-agent': ' CAREFUL ' })
  t.strictSame((it.seen.at(-1)!.tools ?? []).map(tool => tool.function.name), ['price'], 'an agent with a file has what the file allows')
})

t.test('the tools that a request names join those of the gateway, run beside them, and count as rounds like them', async t => {
  const it = await rig(t, '', { files: { 'etc/svc/slots/embed.toml': 'type = "embedding"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' } })
  it.says([{ calls: [['embed_text', { input: ['a'] }], ['price', { id: 'a' }]] }, { content: 'Done.' }])
  const { json } = await it.ask({ omni: { tools: ['shop/price'] } })
  t.strictSame(it.offered(), ['embed_text', 'price'])
  t.match(it.told(), [{ dimensions: 2 }, { id: 'a', price: 3 }])
  t.match(json._svc, { omni: { rounds: 2, tools: [{ name: 'embed_text', ok: true }, { name: 'price', ok: true, server: 'shop' }] } })
  it.says([{ calls: [['price', { id: 'a' }]] }])
  await it.ask({ omni: { tools: ['shop/price'] } })
  t.strictSame(it.seen.map(({ tool_choice: choice }) => choice), [...Array.from({ length: 7 }, () => undefined), 'none'])
})

t.test('a model is told when no operator has decided after a while, and the call still waits', async t => {
  const clock = new FakeClock()
  const it = await rig(t, '', { clock })
  it.says([{ calls: [['buy', { id: 'a' }]] }, { content: 'Later.' }])
  const answer = it.ask({ omni: { servers: ['shop'] } })
  const id = await it.waiting()
  await clock.advance(300_000)
  t.match(await answer, { status: 200, json: { choices: [{ message: { content: 'Later.' } }] } })
  t.match(it.told(), [{ status: 'pending_approval', approval_id: id }])
  t.match(await (await it.decide(id, 'approve')).json(), { approval: { state: 'executed', result: { bought: 'a' } } })
})

t.test('a gated call waits for the operator, with signs of life, and its result goes to the model', async t => {
  const it = await rig(t)
  it.says([{ content: 'Wait. ', calls: [['buy', { id: 'a' }], ['price', { id: 'a' }]] }, { content: 'Bought.' }])
  const response = await it.post({ omni: { tools: ['shop/buy', 'shop/price'] }, stream: true })
  const id = await it.waiting()
  let text = ''
  let isDecided = false
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    // Pings come before the model's first words too, where its answer takes longer than one.
    if (isDecided || !/Wait\. [^]*: ping/.test(text)) continue
    isDecided = true
    await it.decide(id, 'approve')
  }
  t.match(it.told(), [{ bought: 'a' }, { price: 3 }])
  t.match(text, /Wait\. .*: ping[^]*Bought\.[^]*\[DONE\]\n\n$/s)
  const last = text.trim().split('\n\n').filter(block => block.startsWith('data: {')).at(-1)!
  t.match(JSON.parse(last.slice(6)), { id: 'chatcmpl-1', choices: [{ finish_reason: 'stop' }], _svc: { omni: { tools: [
    { name: 'buy', ok: true, server: 'shop', approval_id: id }, { name: 'price', ok: true, server: 'shop' }
  ] } } })
  t.equal(text.split('_svc').length, 2, 'once, at the end')
})

t.test('a call that the operator denies is told to the model, and a client that leaves leaves the call waiting', async t => {
  const it = await rig(t)
  it.says([{ calls: [['buy', { id: 'a' }]] }, { content: 'A pity.' }])
  const answer = it.ask({ omni: { servers: ['shop'] } })
  await it.decide(await it.waiting(), 'deny', { reason: 'too dear' })
  t.match(await answer, { status: 200, json: { choices: [{ message: { content: 'A pity.' } }], _svc: { omni: { tools: [{ name: 'buy', ok: false }] } } } })
  t.match(it.told(), [{ error: /approvals\.denied: an operator denied the call of buy: too dear/ }])

  it.says([{ calls: [['buy', { id: 'b' }]] }, { content: 'x' }])
  const leaving = new AbortController()
  const left = it.gateway.chat({ omni: { servers: ['shop'] } }, leaving.signal).catch(() => 'left')
  const id = await it.waiting()
  leaving.abort()
  t.equal(await left, 'left')
  const { requests } = it.gateway.gateway.inference()
  await until(() => requests.list().length === 0, 'the request is over')
  t.match(await (await it.decide(id, 'approve')).json(), { approval: { state: 'executed', result: { bought: 'b' } } })
})

t.test('what a request cannot have is refused by name, and pages that may use /v1 alone get no tools', async t => {
  const it = await rig(t, '[server]\nallowed_origins = ["http://chat.example/v1", "http://all.example"]\n')
  it.says([{ content: 'ok' }])
  for (const [omni, status, code] of [
    [{ servers: ['none'] }, 404, 'mcp.unknown_tool'],
    [{ servers: ['elsewhere'] }, 404, 'mcp.unknown_tool'],
    [{ tools: ['elsewhere/price'] }, 404, 'mcp.unknown_tool'],
    [{ tools: ['none'] }, 404, 'mcp.unknown_tool'],
    [{ tools: ['shop/none'] }, 404, 'mcp.unknown_tool'],
    [{ servers: 'shop' }, 400, 'validation.invalid'],
    [{ server: ['shop'] }, 400, 'validation.invalid']
  ] as const) t.match(await it.ask({ omni }), { status, json: { error: { code } } }, JSON.stringify(omni))
  t.match(await it.ask({ omni: { tools: ['shop/buy'] } }, { 'x-svc-agent': 'careful' }), { status: 404 })
  t.equal(it.seen.length, 0)
  const from = (origin: string) => it.ask({ omni: { servers: ['shop'] } }, { origin })
  t.match(await from('http://chat.example'), { status: 403, json: { error: { code: 'request.origin_not_allowed' } } })
  t.match(await from('http://all.example'), { status: 200 })
  t.match(await from(it.gateway.baseUrl), { status: 200 })
  t.match(await it.ask({ omni: true }, { origin: 'http://chat.example' }), { status: 200 })
  for (const omni of [true, {}, { servers: [], tools: [] }]) {
    it.says([{ content: 'ok' }])
    t.notOk('_svc' in (await it.ask({ omni })).json)
    t.strictSame(it.offered(), [], 'without names nothing changes')
  }
})
