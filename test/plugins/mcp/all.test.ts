import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool, type ToolCatalogue, type ToolEntry, type ToolSource } from '../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { jointNames } from '../../../plugins/mcp/all/joint-names.js'

let tools: ToolCatalogue

const shop = definePlugin({
  name: 'shop',
  kind: 'mcp',
  apiVersion: 1,
  requires: { tools: core.tools },
  register: ctx => {
    tools = ctx.services.tools
    ctx.addTool(defineTool({
      server: 'shop', name: 'price', description: 'Tells what fruit costs', readOnly: true, input: z.object({ item: z.string() }), output: z.looseObject({ price: z.number() }),
      handler: async ({ input: { item } }) => ({ price: item.length })
    }))
    ctx.addTool(defineTool({
      server: 'shop', name: 'buy', description: 'Buys fruit', gated: true, primary: 'item', input: z.object({ item: z.string() }), handler: async () => ({ bought: true })
    }))
  }
})

/** A server that comes and goes, with tools that say who they are. */
function source (id: string, names: readonly string[]): ToolSource {
  return {
    id,
    title: id,
    description: id,
    tools: () => names.map(name => ({
      name, title: null, description: `Tool ${name} of ${id}`, inputSchema: { type: 'object', properties: {} }, outputSchema: null,
      gated: false, primary: null, secrets: [], annotations: {}
    })),
    call: async (name, args) => ({ content: [{ type: 'text', text: JSON.stringify({ name, args }) }] })
  }
}

const many = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `part_${i}`)

async function start (t: Test, files: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const gateway = await createTestGateway({ builtins, plugins: [shop], files })
  t.teardown(() => gateway.close())
  return gateway
}

const eras = { older: {}, newest: { versionNegotiation: { mode: 'auto' } } } as const
const bothEras = ['older', 'newest'] as const

async function connect (t: Test, { baseUrl }: TestGateway, era: keyof typeof eras = 'newest', agent = 'tester'): Promise<Client> {
  const client = new Client({ name: 'tester', version: '1' }, eras[era])
  const requestInit = { headers: { 'x-svc-agent': agent } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp/all`), { requestInit }))
  t.teardown(() => client.close())
  return client
}

const namesOf = async (client: Client): Promise<readonly string[]> => (await client.listTools()).tools.map(({ name }) => name)

async function call (client: Client, name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const { content } = await client.callTool({ name, arguments: args }) as { content: Array<{ text: string }> }
  return JSON.parse(content[0]!.text) as Record<string, unknown>
}

const found = async (client: Client, query: string): Promise<readonly string[]> =>
  ((await call(client, 'tool_search', { query })).tools as Array<{ name: string }>).map(({ name }) => name)

async function calls (gateway: TestGateway): Promise<readonly string[]> {
  const { records } = await (await gateway.fetch('/api/activity?action=mcp.tool.invoked')).json() as { records: Array<{ target: string, outcome: string, actor: string }> }
  return records.map(({ target, outcome, actor }) => `${actor} ${target} ${outcome}`)
}

/** The client of an older revision opens its stream of changes after it was greeted. */
async function isListening (gateway: TestGateway): Promise<void> {
  for (;;) {
    const { health } = await (await gateway.fetch('/api/plugins/mcp-servers')).json() as { health: { streams: number } }
    if (health.streams > 0) return
  }
}

t.test('the tools of every server are at one address, and are called and written down as what they are', async t => {
  const gateway = await start(t, { 'etc/svc/mcp-servers/all.toml': 'command = "node"\n' })
  const { server } = await (await gateway.fetch('/api/mcp/all')).json() as { server: object }
  t.match(server, { id: 'svc-all', bundled: true, connect_url: `${gateway.baseUrl}/mcp/all`, state: 'running' }, 'no installed server replaces it')
  for (const era of bothEras) {
    const client = await connect(t, gateway, era, era)
    const names = await namesOf(client)
    for (const name of ['admin_slot_list', 'shop_buy', 'shop_price']) t.ok(names.includes(name), name)
    t.strictSame(names.filter(name => !/^(admin|shop)_[a-z0-9_]{1,42}$/.test(name)), [])
    t.match(await client.callTool({ name: 'shop_price', arguments: { item: 'fig' } }), { structuredContent: { price: 3 } })
    await t.rejects(client.callTool({ name: 'price', arguments: {} }), /list them again/)
    t.match(await call(client, 'shop_price', {}), { status: 'error', error: { code: 'validation.invalid' } })
    const { status, approval_id: id } = await call(client, 'shop_buy', { item: era })
    t.equal(status, 'pending_approval')
    const { approvals } = await (await gateway.fetch('/api/agent/approvals')).json() as { approvals: Array<{ id: string }> }
    t.match(approvals.find(approval => approval.id === id), { server: 'shop', tool: 'buy', primary: era, client_id: era }, 'it waits in the one inbox')
    t.strictSame((await calls(gateway)).slice(0, 3), ['shop/buy pending', 'shop/price error', 'shop/price ok'].map(row => `mcp:${era} ${row}`))
  }
})

t.test('where there are more tools than are listed, all of them are found and called', async t => {
  const gateway = await start(t, { 'etc/svc/svc.toml': '[mcp]\nall_tools = 10\n' })
  t.teardown(tools.addServer(source('yard', many(300))))
  for (const era of bothEras) {
    const client = await connect(t, gateway, era, era)
    t.strictSame(await namesOf(client), ['tool_search', 'tool_call', 'shop_buy', 'shop_price'], 'servers that fit whole are listed')
    t.strictSame((await found(client, 'what does fruit cost?'))[0], 'shop_price')
    t.match(await call(client, 'tool_search', { query: 'part 299 of yard', limit: 1 }), {
      tools: [{ name: 'yard_part_299', description: 'Tool part_299 of yard', input_schema: { type: 'object', properties: {} } }], more: /^\d+ more/
    })
    t.match(await call(client, 'tool_search', { query: 'buys', limit: 1 }), { tools: [{ name: 'shop_buy', needs_approval: true }] })
    t.strictSame(await found(client, 'zyzzyva'), [])
    t.strictSame(await call(client, 'tool_call', { name: 'yard_part_299', arguments: { a: 1 } }), { name: 'part_299', args: { a: 1 } })
    t.strictSame(await call(client, 'yard_part_7'), { name: 'part_7', args: {} }, 'by its own name as well')
    t.match(await call(client, 'tool_call', { name: 'shop_buy', arguments: { item: 'fig' } }), { status: 'pending_approval' })
    t.match(await call(client, 'tool_call', { name: 'tool_call', arguments: { name: 'shop_price' } }), { status: 'error', error: { code: 'validation.invalid' } })
    t.match(await call(client, 'tool_call', { name: 'yard_part_300' }), { error: { message: /tool_search/ } })
    const written = await calls(gateway)
    for (const row of ['yard/part_299 ok', 'shop/buy pending', 'all/tool_search ok', 'all/tool_call error']) t.ok(written.includes(`mcp:${era} ${row}`), row)
  }
})

t.test('an agent lists, finds and calls what its file allows, and nothing else', async t => {
  const gateway = await start(t, {
    'etc/svc/svc.toml': '[mcp]\nall_tools = 2\n',
    'etc/svc/agents/careful.toml': '[agent]\nname = "careful"\n' +
      '[mcp.servers.shop]\nbuiltin = true\n[mcp.servers.shop.tools]\ngated = ["price"]\nblocked = ["buy"]\n' +
      '[mcp.servers.yard]\nurl = "http://127.0.0.1:8080/mcp/yard"\n[mcp.servers.yard.tools]\nallow = ["part_1", "part_2"]\n'
  })
  t.teardown(tools.addServer(source('yard', many(5))))
  for (const era of bothEras) {
    const client = await connect(t, gateway, era, 'careful')
    t.strictSame(await namesOf(client), ['tool_search', 'tool_call'])
    t.strictSame(await found(client, ''), ['shop_price', 'yard_part_1', 'yard_part_2'])
    t.strictSame(await found(client, 'buy'), [])
    for (const name of ['shop_buy', 'yard_part_3', 'admin_slot_list']) {
      t.match(await call(client, name), { error: { code: 'mcp.tool_not_allowed' } }, name)
      t.match(await call(client, 'tool_call', { name }), { error: { code: 'mcp.tool_not_allowed' } }, name)
    }
    t.match(await call(client, 'tool_call', { name: 'shop_price', arguments: { item: 'fig' } }), { status: 'pending_approval' })
    t.strictSame(await call(client, 'yard_part_1'), { name: 'part_1', args: {} })
  }
})

t.test('clients hear that a server came and went', async t => {
  const gateway = await start(t)
  for (const era of bothEras) {
    let heard = (): void => {}
    const next = (): Promise<void> => new Promise(resolve => { heard = resolve })
    const client = new Client({ name: 'tester', version: '1' }, {
      ...eras[era], listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => heard() } }
    })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/mcp/all`)))
    t.teardown(() => client.close())
    if (era === 'older') await isListening(gateway)
    const came = next()
    const leave = tools.addServer(source('yard', many(3)))
    await came
    t.ok((await namesOf(client)).includes('yard_part_2'))
    t.strictSame(await call(client, 'yard_part_2'), { name: 'part_2', args: {} })
    const went = next()
    leave()
    await went
    t.notOk((await namesOf(client)).some(name => name.startsWith('yard_')))
    await t.rejects(client.callTool({ name: 'yard_part_2', arguments: {} }), /list them again/)
  }
})

t.test('names: the server\'s before the tool\'s, and a hash for those that are too long or would mean two', t => {
  const tool = (server: string, name: string): Pick<ToolEntry, 'server' | 'name'> => ({ server, name })
  const named = (list: ReturnType<typeof tool>[]): Readonly<Record<string, string>> =>
    Object.fromEntries([...jointNames(list, ['tool_call'])].map(([name, of]) => [`${of.server}/${of.name}`, name]))
  const long = tool('files', 'x'.repeat(60))
  const all = [tool('a', 'b_c'), tool('a_b', 'c'), tool('tool', 'call'), tool('a', 'd'), tool('a', 'with.dot'), long]
  const names = named(all)
  t.strictSame(named(all.toReversed()), names, 'the order in which servers came means nothing')
  t.match(names, { 'a/d': 'a_d', 'a/with.dot': 'a_with_dot', 'a/b_c': /^a_b_c_[0-9a-f]{8}$/, 'a_b/c': /^a_b_c_[0-9a-f]{8}$/, 'tool/call': /^tool_call_[0-9a-f]{8}$/ })
  t.match(names[`files/${long.name}`], /^files_x{33}_[0-9a-f]{8}$/)
  t.equal(new Set(Object.values(names)).size, all.length)
  t.ok(Object.values(names).every(name => /^[a-zA-Z0-9_-]{1,48}$/.test(name)))
  const imitated = tool('a', `b_c_${names['a/b_c']!.slice(-8)}`)
  t.equal(named([...all, imitated])['a/b_c'], names['a/b_c'], 'one that is called like another\'s hash takes no name away')
  t.equal(Object.keys(named([...all, imitated])).length, all.length + 1)
  t.end()
})
