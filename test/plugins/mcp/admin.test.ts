import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { createTestGateway, FakeEngineRuntime, createFakeProviderPlugin, type TestGateway } from '../../../kernel/testing/index.js'
import type { EngineProvider, HealthReport } from '../../../kernel/contract/index.js'
import builtins from '../../../plugins/index.js'

/** Every tool of the gateway, by what a call of it may do. */
const catalogue = {
  read: [
    'activity_list', 'approval_status', 'board_list', 'board_task', 'capability_list', 'env_report', 'gpu_target_version', 'hardware_probe', 'model_catalogue',
    'model_inspect', 'model_list',
    'model_pull_status', 'model_pulls_list', 'model_scan_preview', 'model_show', 'model_store', 'model_store_probe', 'npu_status',
    'profile_export', 'profile_list', 'profile_status', 'provider_list', 'settings_apply_plan', 'settings_get', 'settings_schema',
    'slot_capacity', 'slot_list', 'slot_metrics', 'slot_status', 'stack_list', 'stack_status', 'upstream_list', 'version_info'
  ],
  write: [
    'board_add', 'board_comment', 'board_link', 'board_update', 'model_assign', 'model_edit', 'model_pull_cancel', 'model_scan', 'model_swap', 'settings_reload', 'slot_edit', 'slot_load', 'slot_unload'
  ],
  gated: [
    'capability_set', 'config_write', 'logs_tail', 'model_add', 'model_delete', 'model_pull', 'model_register', 'model_store_migrate',
    'model_store_set', 'profile_create', 'profile_delete', 'profile_import', 'profile_update', 'provider_credential_write', 'slot_create',
    'slot_delete', 'slot_logs', 'slot_restart', 'stack_apply', 'stack_create', 'stack_delete', 'stack_export', 'stack_import',
    'stack_snapshot', 'stack_update'
  ]
}

async function start (t: Test, provider: Partial<EngineProvider> = {}): Promise<{ gateway: TestGateway }> {
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({
    builtins,
    plugins: [createFakeProviderPlugin(provider)],
    runtime,
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n',
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\nname = "Fake"\npath = "/dev/null"\n' +
        '[models.other-model]\nname = "Other"\npath = "/dev/null"\n'
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return { gateway }
}

type Options = ConstructorParameters<typeof Client>[1]

async function connect (t: Test, { baseUrl }: TestGateway, options: Options = {}): Promise<Client> {
  const client = new Client({ name: 'tester', version: '1' }, options)
  const requestInit = { headers: { 'x-svc-agent': 'tester' } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp/admin`), { requestInit }))
  t.teardown(() => client.close())
  return client
}

async function call (client: Client, name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const { content } = await client.callTool({ name, arguments: args }) as { content: Array<{ text: string }> }
  return JSON.parse(content[0]!.text) as Record<string, unknown>
}

t.test('every tool of the gateway is listed with its class, words for a model and a schema that every client takes', async t => {
  const { gateway } = await start(t)
  const { tools } = await (await connect(t, gateway)).listTools()
  const named = (names: readonly string[]): readonly string[] => [...names].sort()
  t.strictSame(tools.map(({ name }) => name), named(Object.values(catalogue).flat()))
  t.strictSame(named(tools.filter(({ annotations }) => annotations?.readOnlyHint === true).map(({ name }) => name)),
    named([...catalogue.read, 'logs_tail', 'slot_logs', 'stack_export']))
  const hinted = (hint: 'destructiveHint' | 'openWorldHint'): readonly string[] => tools.filter(({ annotations }) => annotations?.[hint] === true).map(({ name }) => name)
  t.strictSame(hinted('openWorldHint'), ['model_inspect', 'model_pull'], 'what reaches beyond this machine')
  t.strictSame(hinted('destructiveHint'), [
    'model_delete', 'model_pull_cancel', 'model_store_migrate', 'model_store_set', 'profile_delete', 'profile_update', 'slot_delete', 'slot_restart',
    'stack_apply', 'stack_delete', 'stack_update'
  ], 'what is gone afterwards')
  for (const { name, title, description = '', inputSchema, outputSchema, annotations } of tools) {
    t.match(name, /^[a-z0-9_]{1,48}$/)
    t.ok(title !== undefined && description.length > 40 && description.length < 300, `${name} is described`)
    t.notMatch(description, /\b(GET|POST|PUT|endpoint|JSON|API|HTTP)\b/, `${name}: no words of the API`)
    t.match(inputSchema, { type: 'object', properties: {} }, name)
    t.notMatch(JSON.stringify(inputSchema), /"(\$schema|\$ref|\$defs|additionalProperties|apply_class)"/, name)
    t.equal(outputSchema, undefined, name)
    if (annotations?.readOnlyHint !== true) t.equal(typeof annotations?.destructiveHint, 'boolean', `${name} says whether it destroys`)
  }
  t.ok(JSON.stringify(tools).length < 50_000, `the list is ${JSON.stringify(tools).length} characters long`)
})

t.test('the tools that need no approval are a small OpenAPI document, whose operations run', async t => {
  const { gateway } = await start(t)
  const text = await (await gateway.fetch('/api/tools/openapi.json')).text()
  const { servers, paths } = JSON.parse(text) as { servers: unknown, paths: Record<string, { post: { operationId: string } }> }
  t.ok(text.length < 30_000, `${text.length} characters`)
  t.strictSame(servers, [{ url: gateway.baseUrl }])
  t.strictSame(Object.values(paths).map(({ post }) => post.operationId), [...catalogue.read, ...catalogue.write].sort())
  const run = async (name: string, body: object = {}): Promise<unknown> => {
    const headers = { 'content-type': 'application/json', 'x-svc-agent': 'page' }
    const response = await gateway.fetch(`/api/tools/${name}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, ...await response.json() as object }
  }
  t.match(await run('slot_list'), { status: 200, count: 1, slots: [{ name: 'agent' }] })
  t.match(await run('slot_status', { name: 'none' }), { status: 404, error: { code: 'slot.not_found' } })
  t.match(await run('nothing'), { status: 404, error: { code: 'mcp.unknown_tool' } })
  t.match(await run('slot_delete', { name: 'agent' }), { status: 'pending_approval', approval_id: String })
  t.ok(gateway.slots.names().includes('agent'), 'nothing was done')
})

t.test('tools that only look answer short rows', async t => {
  const { gateway } = await start(t)
  const client = await connect(t, gateway)
  t.strictSame(await call(client, 'slot_list'), {
    slots: [{ name: 'agent', type: 'llm', state: 'offline', enabled: true, device: 'cpu', model: 'fake-model' }], count: 1
  })
  t.match(await call(client, 'model_list', { search: 'OTHER' }), { models: [{ id: 'other-model', type: 'chat' }], count: 1 })
  t.match(await call(client, 'slot_status', { name: 'agent' }), { name: 'agent', state: 'offline', context_size: Number, starts: 0 })
  t.match(await call(client, 'slot_status', { name: 'none' }), { status: 'error', http_status: 404, error: { code: 'slot.not_found' } })
  const needing = new Set(['approval_status', 'board_task', 'model_pull_status', 'model_inspect', 'model_scan_preview', 'slot_status', 'model_show', 'profile_export', 'profile_status', 'stack_status'])
  for (const name of catalogue.read.filter(one => !needing.has(one))) {
    const answer = await call(client, name)
    t.equal(answer.status === 'error', false, name)
    t.ok(JSON.stringify(answer).length < 25_000, name)
  }
  t.match(await call(client, 'settings_schema'), { settings: [/^meta\.schema_version/] })
})

t.test('a failing slot is found, swapped and checked, and every step stands in the activity under the agent\'s name', async t => {
  const { gateway } = await start(t)
  const client = await connect(t, gateway)
  t.match(await call(client, 'slot_load', { name: 'agent' }), { state: 'ready', model: 'fake-model' })
  t.match(await call(client, 'model_swap', { name: 'agent', model_id: 'other-model' }), { state: 'ready', model: 'other-model' })
  t.match(await call(client, 'model_assign', { name: 'agent', model_id: 'other-model' }), { name: 'agent' })
  t.match(await call(client, 'slot_edit', { name: 'agent', idle_timeout_s: 77 }), { name: 'agent' })
  t.match(await call(client, 'slot_unload', { name: 'agent' }), { state: 'offline' })
  const { activity } = await call(client, 'activity_list', { actor: 'mcp:tester', limit: 50 }) as { activity: Array<{ action: string, target: string }> }
  const steps = activity.map(({ action, target }) => `${action} ${target}`).reverse()
  for (const step of [
    'slot.load agent', 'mcp.tool.invoked admin/slot_load', 'slot.swap agent', 'slot.edit_defaults agent', 'slot.edit_config agent', 'slot.unload agent'
  ]) t.ok(steps.includes(step), step)
})

t.test('a gated tool waits once for what it is about, and no key that it was given is shown', async t => {
  const { gateway } = await start(t)
  const client = await connect(t, gateway)
  const waiting = async (): Promise<ReadonlyArray<Record<string, unknown>>> =>
    (await (await gateway.fetch('/api/agent/approvals')).json() as { approvals: Array<Record<string, unknown>> }).approvals
  const repo = { hf_repo: 'a/b', hf_filename: 'c.gguf' }
  const asked: ReadonlyArray<readonly [string, string, Record<string, unknown>, Record<string, unknown>]> = [
    ['model_pull', 'model_id', repo, { ...repo, hf_filename: 'd.gguf' }],
    ['model_delete', 'model_id', {}, { force_cascade: true }],
    ['slot_create', 'name', { type: 'llm' }, { type: 'embedding' }],
    ['slot_delete', 'name', {}, { force: true }],
    ['slot_restart', 'name', {}, {}],
    ['provider_credential_write', 'name', { key: 'A_KEY', value: 'k3y-of-a-provider' }, { key: 'A_KEY', value: 'k3y-of-another' }],
    ['capability_set', 'slot', { child: 'primary', enabled: true }, { child: 'primary', enabled: false }]
  ]
  for (const [tool, about, first, second] of asked) {
    const primary = about === 'slot' ? 'chat' : 'agent'
    const ids = await Promise.all([first, second].map(async more => await call(client, tool, { [about]: primary, ...more })))
    t.match(ids, [{ status: 'pending_approval', approval_id: String }, ids[0]!], tool)
    t.match((await waiting())[0], { tool, primary, hit_count: 2, client_id: 'tester' }, tool)
  }
  t.match((await waiting()).find(({ tool }) => tool === 'provider_credential_write'), { args: { value: '***' } })
  for (const path of ['/api/agent/approvals', '/api/activity?limit=1000', '/api/mcp/admin/logs']) {
    t.notMatch(await (await gateway.fetch(path)).text(), /k3y-of/, path)
  }
})

t.test('progress is told while a slot loads', async t => {
  let report: HealthReport = { verdict: 'ok' }
  const { gateway } = await start(t, { health: { path: '/health', verdict: () => report } })
  for (const mode of ['legacy', 'auto'] as const) {
    const client = await connect(t, gateway, { versionNegotiation: { mode } })
    for (const [name, args] of Object.entries({ slot_load: {}, model_swap: { model_id: mode === 'auto' ? 'other-model' : 'fake-model' } })) {
      await call(client, 'slot_unload', { name: 'agent' })
      report = { verdict: 'loading', progress: 0.425, message: 'reading tensors' }
      const told: Array<{ progress: number, message?: string | undefined, total?: number | undefined }> = []
      await client.callTool({ name, arguments: { name: 'agent', ...args } }, {
        onprogress: step => {
          told.push(step)
          if (step.message?.includes('42 %') === true) report = { verdict: 'loading', progress: 0.9, message: 'reading tensors' }
          if (step.message?.includes('90 %') === true) report = { verdict: 'ok' }
        }
      })
      t.match(told[0], { progress: 0, message: `${name} begins` })
      t.match(told.slice(-2).map(({ progress, message, total }) => [Math.floor(progress), message, total]),
        [[42, 'agent: reading tensors (42 %)', 100], [90, 'agent: reading tensors (90 %)', 100]], 'in the words of the engine')
      t.ok(told.every(({ progress }, i) => i === 0 || progress > told[i - 1]!.progress), 'strictly rising')
    }
  }
})

for (const mode of ['legacy', 'auto'] as const) {
  t.test(`resources and prompts, ${mode}`, async t => {
    const { gateway } = await start(t)
    const client = await connect(t, gateway, mode === 'auto' ? { versionNegotiation: { mode } } : {})
    const { resources } = await client.listResources()
    t.strictSame(resources.map(({ uri }) => uri), ['svc://status', 'svc://activity', 'svc://slots/agent'])
    t.match((await client.listResourceTemplates()).resourceTemplates, [{ uriTemplate: 'svc://slots/{name}' }])
    const read = async (uri: string): Promise<unknown> => {
      const { contents } = await client.readResource({ uri })
      return JSON.parse((contents[0] as { text: string }).text)
    }
    t.match(await read('svc://slots/agent'), { name: 'agent', state: 'offline' })
    t.match(await read('svc://status'), { name: 'svc' })
    t.match(await read('svc://activity'), { activity: Array })
    await t.rejects(client.readResource({ uri: 'svc://slots/none' }), /no resource/)
    t.match((await client.listPrompts()).prompts.map(({ name }) => name), ['set_up_coding_model', 'why_is_slot_failing'])
    t.match(await (await gateway.fetch('/api/mcp/svc-admin')).json(), { server: { resources: 3, prompts: 2 } }, 'its row counts them')
    t.match(await client.getPrompt({ name: 'why_is_slot_failing', arguments: { slot: 'agent' } }),
      { messages: [{ role: 'user', content: { type: 'text', text: /agent/ } }, { content: { type: 'resource', resource: { uri: 'svc://slots/agent' } } }] })
    t.match(await client.getPrompt({ name: 'set_up_coding_model', arguments: { wish: 'speed' } }), { messages: [{ content: { text: /speed/ } }] })
    await t.rejects(client.getPrompt({ name: 'why_is_slot_failing' }), /needs 'slot'/)
    const completed = async (ref: Parameters<Client['complete']>[0]['ref'], name: string, value: string): Promise<readonly string[]> =>
      (await client.complete({ ref, argument: { name, value } })).completion.values
    t.strictSame(await completed({ type: 'ref/prompt', name: 'why_is_slot_failing' }, 'slot', 'ag'), ['agent'])
    t.strictSame(await completed({ type: 'ref/resource', uri: 'svc://slots/{name}' }, 'name', ''), ['agent'])
    t.strictSame(await completed({ type: 'ref/prompt', name: 'set_up_coding_model' }, 'wish', ''), [], 'a wish is no slot')
  })
}

t.test('the tool that a package\'s route is comes with the package, and clients are told', async t => {
  const { gateway } = await start(t)
  const folder = join(gateway.home, 'var/lib/svc/plugins/node_modules/svc-plugin-weather')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'svc-plugin-weather', version: '0.1.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' } }))
  writeFileSync(join(folder, 'index.js'), `
import { definePlugin, defineRoute } from 'svc-gateway/plugin'
export default definePlugin({ name: 'weather', kind: 'routes', apiVersion: 1, register (ctx) {
  ctx.addRoute(defineRoute({
    method: 'GET', url: '/api/weather', summary: 'The weather', tool: { name: 'weather', readOnly: true }, handler: () => ({ sky: 'blue' })
  }))
  ctx.addRoute(defineRoute({
    method: 'GET', url: '/api/weather/raw', summary: 'x', produces: 'text/event-stream', tool: { name: 'weather_raw' }, handler: () => null
  }))
} })`)
  // a list that changes twice while a client is busy is told once or twice
  const heard = new Set<string>()
  const clients = await Promise.all(['legacy', 'modern'].map(async mode => {
    const client = new Client({ name: mode, version: '1' }, {
      ...(mode === 'modern' ? { versionNegotiation: { mode: 'auto' as const } } : {}),
      listChanged: { tools: { autoRefresh: true, onChanged: (_, tools) => { if (tools?.some(({ name }) => name === 'weather') === true) heard.add(mode) } } }
    })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/mcp/admin`)))
    t.teardown(() => client.close())
    return client
  }))
  await gateway.fetch('/api/settings', { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"plugins":{"allow":["svc-plugin-weather"]}}' })
  await gateway.fetch('/api/plugins/reload', { method: 'POST' })
  const end = performance.now() + 120_000
  while (heard.size < 2 && performance.now() < end) await new Promise(resolve => { setTimeout(resolve, 5) })
  t.strictSame([...heard].sort(), ['legacy', 'modern'])
  for (const client of clients) t.strictSame(await call(client, 'weather'), { sky: 'blue' })
  t.match(await (await gateway.fetch('/api/plugins/weather')).json(), {
    state: 'active', tools: ['admin/weather'], tool_problems: [{ tool: 'admin/weather_raw', message: /event-stream/ }]
  })
})
