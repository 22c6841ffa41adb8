import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool, type ToolCatalogue } from '../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'

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
  onListChanged: (listener: () => void) => Promise<void>
}

const headers = { 'X-svc-Agent': 'tester' }

const clients: Readonly<Record<string, (url: string) => Promise<Client>>> = {
  'SDK v1': async url => {
    const client = new ClientV1({ name: 'Client One', version: '1' })
    await client.connect(new TransportV1(new URL(url), { requestInit: { headers } }) as never)
    return {
      listTools: () => client.listTools(),
      callTool: (params, options) => client.callTool(params, undefined, options) as Promise<Record<string, unknown>>,
      close: () => client.close(),
      onListChanged: async listener => {
        const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js')
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => listener())
      }
    }
  },
  ...Object.fromEntries((['legacy', 'auto'] as const).map(mode => [`client v2, ${mode}`, async (url: string) => {
    const client = new ClientV2({ name: 'Client Two', version: '1' }, mode === 'legacy' ? {} : { versionNegotiation: { mode } })
    await client.connect(new TransportV2(new URL(url), { requestInit: { headers } }))
    return {
      listTools: () => client.listTools(),
      callTool: (params, options) => client.callTool(params, options as never) as Promise<Record<string, unknown>>,
      close: () => client.close(),
      onListChanged: async (listener: () => void) => {
        client.setNotificationHandler('notifications/tools/list_changed', () => listener())
        if (mode === 'auto') await (client as unknown as { subscribe?: (filter: object) => Promise<unknown> }).subscribe?.({ toolsListChanged: true })
      }
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

const start = async (t: Test, options: { port?: number } = {}): Promise<TestGateway> => {
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

  t.test(`${name}: a restart of the gateway in between goes unnoticed`, async t => {
    const gateway = await start(t)
    const client = await connect(`${gateway.baseUrl}/mcp/bench`)
    await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })
    const port = Number(new URL(gateway.baseUrl).port)
    await gateway.close()
    await start(t, { port })
    t.equal(textOf(await client.callTool({ name: 'add', arguments: { a: 2, b: 2 } })), '{"sum":4}')
    t.equal((await client.listTools()).tools.length, 5)
    await client.close()
  })
}
