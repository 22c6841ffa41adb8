import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool, type ToolCatalogue } from '../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { freePort } from '../../ports.js'

interface CallOptions {
  signal?: AbortSignal
  onprogress?: (told: unknown) => void
}

interface CallParams {
  name: string
  arguments?: Record<string, unknown>
}

interface Client {
  listTools: () => Promise<{ tools: Array<{ name: string }> }>
  callTool: (params: CallParams, options?: CallOptions) => Promise<Record<string, unknown>>
  close: () => Promise<void>
}

const headers = { 'X-svc-Agent': 'tester' }

const clients: Readonly<Record<string, (url: string, onListChanged?: () => void) => Promise<Client>>> = {
  'SDK v1': async (url, onListChanged = () => {}) => {
    const client = new ClientV1({ name: 'Client One', version: '1' })
    client.setNotificationHandler(ToolListChangedNotificationSchema, onListChanged)
    await client.connect(new TransportV1(new URL(url), { requestInit: { headers } }) as never)
    return {
      listTools: () => client.listTools(),
      callTool: (params, options) => client.callTool(params, undefined, options) as Promise<Record<string, unknown>>,
      close: () => client.close()
    }
  },
  ...Object.fromEntries((['legacy', 'auto'] as const).map(mode => [`client v2, ${mode}`, async (url: string, onListChanged = () => {}) => {
    const client = new ClientV2({ name: 'Client Two', version: '1' }, {
      ...mode === 'legacy' ? {} : { versionNegotiation: { mode } },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: onListChanged } }
    })
    await client.connect(new TransportV2(new URL(url), { requestInit: { headers } }))
    return {
      listTools: () => client.listTools(),
      callTool: (params, options) => client.callTool(params, options as never) as Promise<Record<string, unknown>>,
      close: () => client.close()
    } satisfies Client
  }]))
}

let tools: ToolCatalogue
let begun: (aborted: Promise<void>) => void = () => {}

const bench = definePlugin({
  name: 'bench',
  kind: 'mcp',
  apiVersion: 1,
  requires: { tools: core.tools },
  register: ctx => {
    tools = ctx.services.tools
    ctx.addTool(defineTool({
      server: 'bench', name: 'add', title: 'Add', description: 'Adds', readOnly: true, input: z.object({ a: z.number(), b: z.number() }), output: z.looseObject({ sum: z.number() }),
      handler: async ({ input: { a, b } }) => ({ sum: a + b })
    }))
    ctx.addTool(defineTool({ server: 'bench', name: 'fail', description: 'Fails', input: z.object({}), output: z.looseObject({ sum: z.number() }), handler: async () => { throw new Error('boom') } }))
    ctx.addTool(defineTool({ server: 'bench', name: 'guarded', description: 'Waits', input: z.object({}), output: z.looseObject({ sum: z.number() }), gated: true, handler: async () => ({ sum: 1 }) }))
    ctx.addTool(defineTool({
      server: 'bench', name: 'hang', description: 'Hangs', input: z.object({}),
      handler: ({ signal }) => new Promise(() => begun(new Promise(resolve => { signal.addEventListener('abort', () => resolve()) })))
    }))
    ctx.addTool(defineTool({
      server: 'bench', name: 'steps', description: 'Tells steps', input: z.object({}),
      handler: async ({ progress }) => {
        progress('one', 1, 2)
        progress('one again', 1, 2)
        progress('two', 2, 2)
        return 'done'
      }
    }))
  }
})

const start = async (t: Test, options: { port?: number, home?: string } = {}): Promise<TestGateway> => {
  const gateway = await createTestGateway({ builtins, plugins: [bench], ...options })
  t.teardown(() => gateway.close())
  return gateway
}

const textOf = (result: Record<string, unknown>): string => (result.content as Array<{ text: string }>)[0]!.text

for (const [name, connect] of Object.entries(clients)) {
  t.test(`${name}: lists, calls, hears of errors, approvals and progress, cancels`, async t => {
    const gateway = await start(t)
    const off = tools.useGate({
      ask: async () => ({ kind: 'pending', id: 'abc', state: 'pending' }),
      settled: async () => ({ kind: 'done', value: null })
    })
    t.teardown(off)
    for (const path of ['/mcp/bench', '/mcp/bench/mcp']) {
      const client = await connect(`${gateway.baseUrl}${path}`)
      t.strictSame((await client.listTools()).tools.map(tool => tool.name), ['add', 'fail', 'guarded', 'hang', 'steps'])
      const added = await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })
      t.match(added, { structuredContent: { sum: 3 } })
      t.equal(textOf(added), '{"sum":3}')
      const failed = await client.callTool({ name: 'fail' })
      t.match([failed.isError, failed.structuredContent], [true, undefined])
      t.match(JSON.parse(textOf(failed)), { status: 'error', http_status: 500, error: { code: 'system.internal' } })
      const wrong = await client.callTool({ name: 'add', arguments: { a: 'x' } })
      t.match([wrong.isError, JSON.parse(textOf(wrong))], [true, { http_status: 400, error: { code: 'validation.invalid' } }])
      await t.rejects(client.callTool({ name: 'gone' }), /list them again/)
      t.strictSame(JSON.parse(textOf(await client.callTool({ name: 'guarded' }))), { status: 'pending_approval', approval_id: 'abc' })
      const told: Array<{ progress: number, message: string }> = []
      await client.callTool({ name: 'steps' }, { onprogress: step => { told.push(step as never) } })
      t.match(told.map(({ message }) => message), ['steps begins', 'one', 'one again', 'two'])
      t.ok(told.every(({ progress }, i) => i === 0 || progress > told[i - 1]!.progress), 'strictly rising')
      const cancel = new AbortController()
      const seen = new Promise<void>(resolve => {
        begun = inner => {
          void inner.then(resolve)
          cancel.abort()
        }
      })
      await t.rejects(client.callTool({ name: 'hang' }, { signal: cancel.signal }))
      await seen
      t.pass('the tool was told to stop')
      await client.close()
    }
    const { records } = await (await gateway.fetch('/api/activity?action=mcp.tool.invoked&limit=1')).json() as { records: unknown[] }
    t.match(records, [{ actor: 'mcp:tester' }])
  })

  t.test(`${name}: hears that tools came and went`, async t => {
    const gateway = await start(t)
    let heard = (): void => {}
    const next = (): Promise<void> => new Promise(resolve => { heard = resolve })
    const client = await connect(`${gateway.baseUrl}/mcp/bench`, () => heard())
    // a client of an older revision opens its stream after it was greeted
    const listens = async (): Promise<boolean> =>
      (await (await gateway.fetch('/api/plugins/mcp-servers')).json() as { health: { streams: number } }).health.streams > 0
    while (!name.endsWith('auto') && !await listens());
    const came = next()
    const leave = tools.addServer({ id: 'late', title: 'Late', description: 'x', tools: () => [] })
    await came
    const went = next()
    leave()
    await went
    t.pass('both times')
    await client.close()
  })

  t.test(`${name}: a restart of the gateway in between goes unnoticed`, async t => {
    const port = await freePort()
    const gateway = await start(t, { port })
    const client = await connect(`${gateway.baseUrl}/mcp/bench`)
    await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })
    await gateway.close()
    await start(t, { port })
    t.equal(textOf(await client.callTool({ name: 'add', arguments: { a: 2, b: 2 } })), '{"sum":4}')
    t.equal((await client.listTools()).tools.length, 5)
    await client.close()
  })
}

t.test('a client that can send its user to an address is sent to the approval page, and gets what became of the call', async t => {
  const home = t.testdir()
  let gateway = await start(t, { home })
  let visit: (url: string) => Promise<'accept' | 'decline'> = async () => 'decline'
  const connect = async (mode: 'legacy' | 'auto'): Promise<ClientV2> => {
    const capabilities = { elicitation: { url: {} } }
    const client = new ClientV2({ name: 'Client Two', version: '1' }, { capabilities, versionNegotiation: { mode } })
    client.setRequestHandler('elicitation/create', async ({ params }) => ({ action: await visit((params as { url: string }).url) }))
    await client.connect(new TransportV2(new URL(`${gateway.baseUrl}/mcp/bench`), { requestInit: { headers } }))
    return client
  }
  const decides = (decision: string) => async (url: string): Promise<'accept'> => {
    t.match(url, new RegExp(`^${gateway.baseUrl}/api/agent/approvals/[0-9a-f]{32}/page$`))
    t.match(await (await fetch(url)).text(), /An agent asks to run guarded[^]*It is waiting for your decision/)
    const answer = await fetch(url, { method: 'POST', body: new URLSearchParams({ decision, reason: decision === 'deny' ? 'not today' : '' }) })
    t.equal(answer.status, 200)
    return 'accept'
  }
  const call = async (client: ClientV2): Promise<Record<string, unknown>> => await client.callTool({ name: 'guarded' }) as Record<string, unknown>
  const client = await connect('auto')
  t.match(textOf(await call(client)), /"pending_approval"/, 'whose user declines')
  visit = decides('deny')
  t.match(await call(client), { isError: true, content: [{ text: /approvals\.denied.*not today/ }] })
  visit = decides('approve')
  t.strictSame(textOf(await call(client)), '{"sum":1}')
  await client.close()

  const old = await connect('legacy')
  visit = () => Promise.reject(new Error('nobody asks a client of an older revision'))
  t.match(textOf(await call(old)), /"pending_approval"/)
  await old.close()

  interface Answer { readonly result?: Record<string, unknown>, readonly error?: { readonly code: number } }
  const modern = async (agent: string, name: string, more: object = {}): Promise<Answer> => {
    const answer = await gateway.fetch('/mcp/bench', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'accept': 'application/json',
        'X-svc-Agent': agent,
        'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name,
          arguments: {},
          ...more,
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } }
          }
        }
      })
    })
    return await answer.json() as Answer
  }
  const { result } = await modern('tester', 'guarded')
  t.match(result, { resultType: 'input_required', inputRequests: { approve: { method: 'elicitation/create', params: { mode: 'url' } } } })
  interface Asked { readonly requestState: string, readonly inputRequests: { approve: { params: { url: string } } } }
  const { requestState, inputRequests } = result as unknown as Asked
  const back = { requestState, inputResponses: { approve: { action: 'accept' } } }
  const madeUp = { ...back, requestState: requestState.replace(/.$/, last => last === '0' ? '1' : '0') }
  for (const [agent, name, state, why] of [
    ['other', 'guarded', back, 'of another agent'], ['tester', 'add', back, 'of another tool'], ['tester', 'guarded', madeUp, 'that was made up']
  ] as const) t.match(await modern(agent, name, state), { error: { code: -32602 } }, `a state ${why}`)
  const { port } = new URL(gateway.baseUrl)
  await gateway.gateway.stop()
  gateway = await start(t, { home, port: Number(port) })
  const waits = modern('tester', 'guarded', back)
  await decides('approve')(inputRequests.approve.params.url)
  t.match((await waits).result, { content: [{ text: '{"sum":1}' }] }, 'one that comes back after a restart waits for the decision')
})
