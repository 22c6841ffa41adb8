import t from 'tap'
import { z } from 'zod'
import {
  core, definePlugin, defineRoute, defineTool, svcError, type ApprovalRequest, type ToolCaller, type ToolCatalogue,
  type ToolSource
} from '../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'

let tools: ToolCatalogue
const stuck = new Promise<never>(() => {})
const seen: unknown[] = []
const item = z.strictObject({ id: z.string().meta({ description: 'Which' }) })

const shop = definePlugin({
  name: 'shop',
  kind: ['mcp', 'routes', 'service'],
  apiVersion: 1,
  requires: { tools: core.tools },
  register: ctx => {
    tools = ctx.services.tools
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/api/shop/:id/buy',
      summary: 'Buy',
      schema: {
        params: item,
        querystring: z.strictObject({ dry: z.stringbool().default(false), limit: z.coerce.number().int().max(9).optional() }),
        body: z.strictObject({ amount: z.int().min(1), note: z.string().optional(), api_key: z.string().optional() })
      },
      tool: { name: 'item_buy', server: 'shop', rename: { id: 'item_id' }, primary: 'item_id', secrets: ['note'] },
      handler: ({ params, query, body, actor, reply }) => {
        void reply.code(201).header('x-a', '1')
        if (params.id === 'none') throw svcError('model.not_found', 'no such item')
        return { ...params, ...query, ...body, actor }
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET', url: '/api/shop', summary: 'What there is', tool: { name: 'item_list', server: 'shop', readOnly: true, narrow: 'narrow it with `search`' },
      handler: () => Array.from({ length: 5000 }, (_, i) => ({ id: `item-${i}`, words: 'x'.repeat(20) }))
    }))
    ctx.addRoute(defineRoute({
      method: 'GET', url: '/api/shop/raw', summary: 'Raw', tool: { name: 'raw', server: 'shop' }, handler: ({ reply }) => { reply.raw.end('x') }
    }))
    ctx.addTool(defineTool({ server: 'shop', name: 'hang', description: 'Never ends', input: z.object({}), handler: () => stuck }))
    ctx.addTool(defineTool({ server: 'shop', name: 'sell', description: 'Sell', input: item, gated: true, primary: 'id', handler: async ({ input }) => ({ sold: input.id }) }))
    ctx.addTool(defineTool({ server: 'shop', name: 'dated', description: 'x', input: z.object({ at: z.date() }), handler: async () => 1 }))
    ctx.addTool(defineTool({
      server: 'shop', name: 'either', description: 'x', input: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]) as never, handler: async () => 1
    }))
    ctx.addTool(defineTool({ server: 'shop', name: 'Bad.Name', description: 'x', input: z.object({}), handler: async () => 1 }))
  }
})

const caller = (more: Partial<ToolCaller> = {}): ToolCaller => ({ actor: 'mcp:bob', agent: 'bob', signal: new AbortController().signal, ...more })
let gateway: TestGateway

t.before(async () => { gateway = await createTestGateway({ builtins: builtins.filter(({ name }) => !name.endsWith('approvals')), plugins: [shop] }) })
t.teardown(() => gateway.close())

t.test('a route is a tool: its inputs side by side, its own validation, errors and actor', async t => {
  const entry = tools.find('shop', 'item_buy')!
  t.strictSame(Object.keys(entry.inputSchema.properties as object), ['item_id', 'dry', 'limit', 'amount', 'note', 'api_key'])
  t.strictSame(entry.inputSchema.required, ['item_id', 'amount'])
  t.match(entry.inputSchema.properties, { dry: { type: 'boolean' }, item_id: { description: 'Which' } })
  t.notMatch(JSON.stringify(tools.list('shop', { agent: null })), /\$schema|additionalProperties|\$ref|9007199254740991/)
  const bought = await tools.call('shop', 'item_buy', { item_id: 'a', amount: 2, dry: true, limit: 3 }, caller())
  t.strictSame(bought, { kind: 'done', value: { id: 'a', dry: true, limit: 3, amount: 2, actor: 'mcp:bob' } })
  t.match(await tools.call('shop', 'item_buy', { args: { item_id: 'a', amount: 1 } }, caller()), { kind: 'done' }, 'wrapped as some texts say')
  for (const [args, code] of [
    [{ item_id: 'a', amount: 0 }, 'validation.invalid'], [{ item_id: 'a', amount: 1, limit: 10 }, 'validation.invalid'],
    [{ item_id: 'a', amount: 1, colour: 'red' }, 'validation.unknown_keys'], [{ item_id: 'none', amount: 1 }, 'model.not_found']
  ] as const) {
    t.match(await tools.call('shop', 'item_buy', args, caller()), { kind: 'failed', error: { code } }, JSON.stringify(args))
  }
  t.match(await tools.call('shop', 'nothing', {}, caller()), { kind: 'failed', error: { code: 'mcp.unknown_tool', message: /list them again/ } })
  t.match(await tools.call('shop', 'raw', {}, caller()), { kind: 'failed', error: { code: 'mcp.tool_unfit' } })
})

t.test('a long answer is an object of bounded length that says how to ask for less', async t => {
  const outcome = await tools.call('shop', 'item_list', {}, caller())
  if (outcome.kind !== 'done') return t.fail(outcome.kind)
  const { items, count, more } = outcome.value as { items: unknown[], count: number, more: string }
  t.equal(count, 5000)
  t.equal(more, `${5000 - items.length} more, narrow it with \`search\``)
  t.ok(JSON.stringify(outcome.value).length < 25_000 && items.length > 100)
})

t.test('each call is an event and an audit row, without secrets', async t => {
  await tools.call('shop', 'item_buy', { item_id: 'a', amount: 1, note: 'for my eyes', api_key: 'sk-1' }, caller())
  const { records } = await (await gateway.fetch('/api/activity?action=mcp.tool.invoked&limit=1')).json() as { records: unknown[] }
  t.match(records, [{
    actor: 'mcp:bob', target: 'shop/item_buy', outcome: 'ok', category: 'mcp', before: { item_id: 'a', amount: 1, note: '***', api_key: '***' }
  }])
  // what is refused is written down as well: a secret in the wrong place is one all the same
  for (const misplaced of [{ remark: 'for my eyes' }, { item_id: 'a', amount: 1, args: { note: 'for my eyes' } }, JSON.parse('{"__proto__": {"note": "for my eyes"}}') as object]) {
    t.match(await tools.call('shop', 'item_buy', { ...misplaced }, caller()), { kind: 'failed' })
  }
  const refused = await (await gateway.fetch('/api/activity?action=mcp.tool.invoked&limit=4')).text()
  t.match(refused, /"remark":"\*\*\*"/)
  t.notMatch(refused, /for my eyes/)
  await tools.call('shop', 'item_buy', { item_id: 'a', amount: 1 }, caller())
  const { events } = await (await gateway.fetch('/api/events?type=mcp.*')).json() as { events: unknown[] }
  t.match(events.at(-1), { type: 'mcp.tool.invoked', source: 'mcp:shop', data: { server: 'shop', tool: 'item_buy', client: 'bob', gated: false, outcome: 'ok' } })
  t.notMatch(JSON.stringify([records, events]), /for my eyes|sk-1/)
  const { records: all } = await (await gateway.fetch('/api/activity?limit=50')).json() as { records: Array<{ kind: string, action: string }> }
  t.equal(all.filter(({ kind, action }) => kind === 'event' && action === 'mcp.tool.invoked').length, 0, 'one row for a call')
})

t.test('what is written down of a call is short, however much it brings', async t => {
  const texts = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`text_${i}`, 'y'.repeat(1000)]))
  for (const [amount, shown] of [
    [Array.from({ length: 90_000 }, (_, i) => ({ i })), { truncated: true }], [texts, { truncated: true }], ['z'.repeat(1_000_000), { amount: `${'z'.repeat(200)}…` }]
  ] as const) {
    t.match(await tools.call('shop', 'item_list', { amount }, caller()), { kind: 'done' })
    const { records } = await (await gateway.fetch('/api/activity?action=mcp.tool.invoked&limit=1')).json() as { records: unknown[] }
    const event = ((await (await gateway.fetch('/api/events?type=mcp.tool.invoked')).json()) as { events: Array<{ data: { args: unknown } }> }).events.at(-1)!
    t.match([records, event], [[{ before: shown }], { data: { args: shown } }])
    t.ok(JSON.stringify([records, event]).length < 3_000, 'in the row and in the event')
  }
})

t.test('a tool whose name or schema does not fit is left out alone, and named', async t => {
  const plugin = await (await gateway.fetch('/api/plugins/shop')).json() as { state: string, tools: string[], tool_problems: Array<{ tool: string, message: string }> }
  t.equal(plugin.state, 'active')
  t.strictSame(plugin.tools.sort(), ['shop/hang', 'shop/item_buy', 'shop/item_list', 'shop/raw', 'shop/sell'])
  t.match(plugin.tool_problems, [{ tool: 'shop/dated', message: /[Dd]ate/ }, { tool: 'shop/either', message: /union/ }, { tool: 'shop/Bad.Name', message: /a to z/ }])
  t.strictSame(tools.list('shop', { agent: null }).map(({ name }) => name), ['hang', 'item_buy', 'item_list', 'raw', 'sell'], 'in a stable order')
  const all = await (await gateway.fetch('/api/plugins')).json() as { plugins: typeof plugin[] }
  t.strictSame(all.plugins.flatMap(({ tool_problems: odd }) => odd).filter(({ tool }) => !tool.startsWith('shop/')), [], 'none of the gateway\'s own')
})

t.test('a client that leaves ends the wait for a tool that hangs', async t => {
  const client = new AbortController()
  const hanging = tools.call('shop', 'hang', {}, caller({ signal: client.signal }))
  t.match(await tools.call('shop', 'item_buy', { item_id: 'a', amount: 1 }, caller()), { kind: 'done' }, 'others go on')
  client.abort()
  t.match(await hanging, { kind: 'failed', error: { code: 'mcp.cancelled' } })
})

t.test('a gated tool asks the gate with valid arguments; without a gate it is refused', async t => {
  t.match(await tools.call('shop', 'sell', { id: 'a' }, caller()), { kind: 'failed', error: { code: 'approvals.unavailable', status: 503 } })
  const asked: ApprovalRequest[] = []
  const off = tools.useGate({
    ask: async request => {
      asked.push(request)
      return request.primary === 'now' ? { kind: 'go' } : { kind: 'pending', id: 'f00', state: 'pending' }
    },
    settled: async id => ({ kind: 'done', value: id })
  })
  t.strictSame(await tools.call('shop', 'sell', { id: 'a' }, caller()), { kind: 'pending', approvalId: 'f00', state: 'pending' })
  t.strictSame(await tools.settled('f00', new AbortController().signal), { kind: 'done', value: 'f00' })
  t.match(await tools.call('shop', 'sell', {}, caller()), { kind: 'failed', error: { code: 'validation.invalid' } })
  t.match(await tools.call('shop', 'sell', { id: 'now' }, caller()), { kind: 'done', value: { sold: 'now' } })
  t.match(asked, [{ server: 'shop', tool: 'sell', primary: 'a', args: { id: 'a' }, actor: 'mcp:bob', agent: 'bob' }, { primary: 'now' }])
  t.match(await tools.run('shop', 'sell', { id: 'a' }, { ...caller(), approvedBy: 'cli' }), { kind: 'done', value: { sold: 'a' } })
  off()
  t.match(await tools.call('shop', 'sell', { id: 'now' }, caller()), { kind: 'failed', error: { code: 'approvals.unavailable' } })
})

t.test('an agent with a file sees and calls what the file allows', async t => {
  const before = tools.list('shop', { agent: 'bob' })
  t.equal(tools.list('shop', { agent: 'bob' }), before, 'made once')
  let told = 0
  const listen = tools.onChange(() => { told++ })
  const off = tools.useAgents({
    classify: (agent, _, tool) => agent !== 'bob' ? null : tool === 'hang' ? 'blocked' : tool === 'item_buy' ? 'allow' : tool === 'item_list' ? 'gated' : 'unknown_tool',
    onChange: () => () => {}
  })
  t.equal(told, 1)
  t.strictSame(tools.list('shop', { agent: 'bob' }).map(({ name, gated }) => [name, gated]), [['item_buy', false], ['item_list', true]])
  t.strictSame(tools.list('shop', { agent: 'eve' }).length, 5)
  t.match(await tools.call('shop', 'sell', { id: 'a' }, caller()), { kind: 'failed', error: { code: 'mcp.tool_not_allowed', message: /does not list/ } })
  t.match(await tools.call('shop', 'hang', {}, caller()), { kind: 'failed', error: { code: 'mcp.tool_not_allowed', message: /is blocked/ } })
  t.match(await tools.call('shop', 'item_list', {}, caller()), { kind: 'failed', error: { code: 'approvals.unavailable' } })
  off()
  listen()
  t.equal(tools.list('shop', { agent: 'bob' }).length, 5)
})

t.test('a source comes and goes; its calls are handed on as they are', async t => {
  let names = ['one']
  let changed = (): void => {}
  const source: ToolSource = {
    id: 'remote',
    title: 'Remote',
    description: 'Elsewhere',
    tools: () => names.map(name => ({
      name, title: null, description: name, inputSchema: { type: 'object', properties: {} }, outputSchema: null, gated: name === 'two', primary: null, secrets: [], annotations: {}
    })),
    call: async (name, args) => {
      seen.push([name, args])
      return { content: [{ type: 'text', text: name }], isError: name === 'bad' }
    },
    onChange: listener => {
      changed = listener
      return () => {}
    }
  }
  const off = tools.addServer(source)
  t.throws(() => tools.addServer(source), { code: 'plugin.conflict' })
  t.throws(() => tools.addServer({ ...source, id: 'shop' }), { code: 'plugin.conflict' })
  t.match(tools.server('remote'), { id: 'remote', title: 'Remote', source })
  t.strictSame(await tools.call('remote', 'one', { x: 1 }, caller()), { kind: 'content', content: { content: [{ type: 'text', text: 'one' }], isError: false } })
  t.strictSame(seen, [['one', { x: 1 }]])
  names = ['one', 'two']
  t.equal(tools.find('remote', 'two'), null, 'until it tells')
  changed()
  t.match(tools.list('remote', { agent: null }), [{ name: 'one', owner: 'remote', server: 'remote' }, { name: 'two', gated: true }])
  t.match(await tools.call('remote', 'two', {}, caller()), { kind: 'failed', error: { code: 'approvals.unavailable' } })
  off()
  t.equal(tools.server('remote'), null)
  t.notOk(tools.servers().some(({ id }) => id === 'remote'))
})

t.test('two plugins that bring the same tool: the second falls', async t => {
  const again = definePlugin({
    name: 'again', kind: 'mcp', apiVersion: 1, register: ctx => ctx.addTool(defineTool({
      server: 'admin', name: 'slot_list', description: 'x', input: z.object({}), handler: async () => 1
    }))
  })
  const other = await createTestGateway({ builtins, plugins: [again] })
  t.teardown(() => other.close())
  t.match(await (await other.fetch('/api/plugins/again')).json(), { state: 'failed', code: 'plugin.conflict', message: /'slot_list' of admin/ })
})
