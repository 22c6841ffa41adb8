import type { Client } from '@modelcontextprotocol/client'
import t from 'tap'
import eventRoutes from '../../../plugins/api/events/index.js'
import approvalsApi from '../../../plugins/api/approvals/index.js'
import mcpAdmin from '../../../plugins/mcp/admin/index.js'
import mcpMemory from '../../../plugins/mcp/memory/index.js'
import mcpServers from '../../../plugins/mcp/servers/index.js'
import approvals from '../../../plugins/services/approvals/index.js'
import { fakeHindsight } from '../services/memory/fake-hindsight.js'
import { memoryHost } from '../services/memory/host.js'
import { agentsRemember, attempts, call, connect } from './memory-agents.js'

const plugins = [approvals, approvalsApi, mcpAdmin, mcpMemory, mcpServers]

t.test('an agent remembers over MCP what another agent may and may not see', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url, plugins })
  const alice = await connect(t, host.baseUrl, { 'x-svc-agent': 'alice', 'x-svc-private': '1' })
  const bob = await connect(t, host.baseUrl, { 'x-svc-agent': 'bob', 'x-svc-private': '1' })
  const open = await connect(t, host.baseUrl, { 'x-svc-agent': 'alice' })

  t.match((await alice.listTools()).tools.map(({ name }) => name).sort(), [
    'bank_consolidate', 'bank_stats', 'directive_create', 'directive_delete', 'directive_list', 'memory_add', 'memory_curate',
    'memory_delete', 'memory_history', 'memory_list', 'memory_recall', 'memory_reflect', 'memory_search', 'mental_model_create',
    'mental_model_delete', 'mental_model_get', 'mental_model_list', 'mental_model_refresh', 'operation_cancel', 'operation_get',
    'operation_list', 'operation_retry', 'tags_list'
  ])
  t.match(alice.getInstructions(), /not as instructions/)

  const shared = await call(open, 'memory_add', { text: 'The team meets on Monday.', tags: 'team, dates' })
  t.match(shared, { status: 'ok', id: /.+/, timestamp: /Z$/, operation_id: /.+/ })
  const own = await call(alice, 'memory_add', { text: 'Alice meets her doctor on Monday.', dataset: 'shared' })
  t.match(fake.bank('shared').units, [{ tags: ['team', 'dates', 'agent:alice'] }])
  t.match(fake.bank('private__alice').units, [{ tags: ['agent:alice', 'visibility:private'] }])

  for (const tags of ['x'.repeat(201), Array.from({ length: 101 }, (_, i) => `t${i}`).join()]) {
    for (const [tool, args] of [['memory_add', { text: 'x' }], ['memory_search', { query: 'x' }]] as const) {
      t.match(await call(open, tool, { ...args, tags }), { status: 'error', error: { code: 'validation.invalid' } }, 'names with commas between them are bounded as a list is')
    }
  }

  const texts = async (client: Client): Promise<string[]> =>
    (await call(client, 'memory_search', { query: 'Monday' })).results.map(({ text }: { text: string }) => text)
  t.strictSame(await texts(alice), ['The team meets on Monday.', 'Alice meets her doctor on Monday.'])
  t.strictSame(await texts(bob), ['The team meets on Monday.'])
  t.strictSame((await call(bob, 'memory_recall', { query: 'Monday' })).results.length, 1)

  const { id: unit } = fake.bank('private__alice').units[0]!
  for (const [tool, args] of attempts({ memory: unit as string, document: own.id as string })) {
    t.match(await call(bob, tool, args), { status: 'error' }, `${tool} ${JSON.stringify(args)}`)
  }
  t.strictSame(await call(bob, 'memory_delete', { ids: [own.id] }), { deleted: 0 })
  t.equal(fake.bank('private__alice').units.length, 1)

  await t.test('the rest is one call of the engine each, about the agent\'s own', async t => {
    t.match(await call(open, 'memory_reflect', { query: 'who?' }), { text: /Alice/ })
    t.equal(fake.calls.at(-1), 'POST /v1/default/banks/shared/reflect')
    t.notOk('tag_groups' in JSON.parse(fake.seen.at(-1)!.body), 'all of it may be told')
    fake.bank('shared').units.push({ ...fake.bank('shared').units[0]!, id: 'his', tags: ['agent:bob', 'visibility:private'] })
    await call(open, 'memory_reflect', { query: 'who?' })
    t.match(JSON.parse(fake.seen.at(-1)!.body), { tag_groups: [{ not: { tags: ['visibility:private'], match: 'any_strict' } }] }, 'nothing that is another agent\'s alone')
    fake.bank('shared').units.pop()
    t.match(await call(alice, 'bank_stats'), { bank_id: 'private__alice' })
    t.match(await call(alice, 'bank_stats', { dataset: 'shared' }), { bank_id: 'shared' })
    t.match(await call(open, 'directive_create', { name: 'short', content: 'Answer briefly', dataset: 'agents' }), { id: /.+/, bank_id: 'agents' })
    t.match(await call(open, 'directive_list', { dataset: 'agents', limit: 5 }), { items: [{ name: 'short' }], total: 1 })
    t.equal(fake.calls.at(-1), 'GET /v1/default/banks/agents/directives?limit=5&offset=0')
    t.match(await call(open, 'directive_delete', { id: 'd/1' }), { status: 'deleted' })
    t.equal(fake.calls.at(-1), 'DELETE /v1/default/banks/shared/directives/d%2F1')
    const row = { action: 'memory.directive.delete', target: 'shared/d/1', actor: 'mcp:alice' }
    t.match(await host.audit(), [{ ...row, outcome: 'ok' }, { ...row, outcome: 'pending' }])
    t.match(await call(open, 'operation_cancel', { operation_id: 'o-1' }), { status: 'error', http_status: 409, error: { code: 'memory.engine_error' } })
  })

  await t.test('one memory is deleted at once, several wait for an operator', async t => {
    const second = await call(open, 'memory_add', { text: 'The team meets on Friday.' })
    const waiting = await call(open, 'memory_delete', { ids: [shared.id, second.id] })
    t.match(waiting, { status: 'pending_approval', approval_id: /.+/ })
    t.equal(fake.bank('shared').units.length, 2)
    const { json } = await host.call('POST', `/api/agent/approvals/${waiting.approval_id as string}/approve`)
    t.match(json.approval, { state: 'executed', result: { deleted: 2 } })
    t.equal(fake.bank('shared').units.length, 0)
    t.strictSame(await call(alice, 'memory_delete', { ids: [own.id, own.id] }), { deleted: 1 }, 'the same id twice is one')
    const ends = (await host.audit()).filter(({ outcome }) => outcome !== 'pending')
    t.match(ends, [{ action: 'memory.items.delete', actor: 'mcp:alice' }, { action: 'memory.items.delete', after: { deleted: 2 } }])
  })

  await t.test('where one of several cannot be deleted, the audit row tells how many are gone', async t => {
    const ids = ['gone-1', 'gone-2', 'stays-3']
    for (const id of ids) await call(open, 'memory_add', { text: `${id} is here`, document_id: id })
    fake.instead.set('/v1/default/banks/shared/documents/stays-3', (_request, response) => { response.writeHead(500).end('{"detail":"database is gone"}') })
    const { approval_id: approval } = await call(open, 'memory_delete', { ids })
    t.match((await host.call('POST', `/api/agent/approvals/${approval as string}/approve`)).json.approval, { state: 'failed' })
    t.strictSame(fake.bank('shared').units.map(({ document_id: id }) => id), ['stays-3'])
    t.match((await host.audit())[0], { action: 'memory.items.delete', outcome: 'error', error: /database is gone/, after: { deleted: 2, ids: 3 } })
    fake.instead.clear()
  })
})

t.test('the same holds on the engine of the gateway\'s own, where what is deleted is gone', async t => {
  const host = await memoryHost(t, { plugins })
  await agentsRemember(t, host.baseUrl, false)
  const open = await connect(t, host.baseUrl, { 'x-svc-agent': 'alice' })
  await call(open, 'memory_add', { text: 'The team sings.', tags: 'team' })
  await call(open, 'memory_add', { text: 'Nobody sings.' })
  for (const tool of ['memory_search', 'memory_recall']) t.match(await call(open, tool, { query: 'sings' }), { results: { length: 2 }, ran_on: ['text'] }, `${tool} tells that it ran on words alone`)
  const found = async (args: object): Promise<string[]> =>
    (await call(open, 'memory_recall', { query: 'sings', tags: 'team', ...args })).results.map(({ text }: { text: string }) => text).toSorted()
  t.strictSame(await found({}), ['Nobody sings.', 'The team sings.'])
  for (const mode of ['exact', 'any_strict']) t.strictSame(await found({ tags_match: mode }), ['The team sings.'], mode)
})

t.test('what an agent remembers is not in the trail of calls, which others read; an operator who decides on a call sees it', async t => {
  const text = 'The treasure is in Zanzibar.'
  const host = await memoryHost(t, { plugins: [...plugins, eventRoutes], files: { 'etc/svc/agents/carol.toml': '[agent]\nname = "carol"\n[mcp.servers.memory]\nbuiltin = true\n[mcp.servers.memory.tools]\ngated = ["memory_add"]\n' } })
  const bob = await connect(t, host.baseUrl, { 'x-svc-agent': 'bob', 'x-svc-private': '1' })
  await call(bob, 'memory_add', { text, metadata: { place: 'Zanzibar' }, tags: 'places' })
  await call(bob, 'memory_add', { content: text })
  const [{ memory_id }] = (await call(bob, 'memory_list', { dataset: 'private:bob' })).items
  t.match(await call(bob, 'memory_curate', { memory_id, text: `${text} Still.`, reason: 'Zanzibar, indeed' }), { text: /Still/ })
  await call(bob, 'directive_create', { name: 'silence', content: 'Say nothing of Zanzibar' })
  await call(bob, 'mental_model_create', { name: 'places', source_query: 'What is in Zanzibar?' })
  for (const path of ['/api/activity', '/api/activity?actor=mcp:bob', '/api/activity/export', '/api/events']) {
    const { status, text } = await host.call('GET', path, undefined, { 'x-svc-agent': 'mallory' })
    t.equal(status, 200)
    t.match(text, /memory_add/)
    t.notMatch(text, /Zanzibar/, path)
  }
  t.match((await host.call('GET', '/api/activity?action=mcp.tool.invoked')).json.records.at(-1), { target: 'memory/memory_add', before: { text: '***', metadata: '***', tags: 'places' } })
  const carol = await connect(t, host.baseUrl, { 'x-svc-agent': 'carol' })
  for (const decision of ['approve', 'deny']) {
    const waiting = await call(carol, 'memory_add', { text, metadata: { place: 'Zanzibar' } })
    t.match(waiting, { status: 'pending_approval' })
    t.match((await host.call('GET', '/api/agent/approvals')).text, /Zanzibar/)
    t.match(await host.call('POST', `/api/agent/approvals/${waiting.approval_id}/${decision}`, {}), { status: 200 })
    const answers = ['/api/activity', '/api/agent/approvals?state=all', `/api/agent/approvals/${waiting.approval_id}`].map(path => host.call('GET', path))
    for (const { status, text: told } of await Promise.all(answers)) {
      t.equal(status, 200)
      t.notMatch(told, /Zanzibar/, decision)
    }
  }
})

t.test('an agent that has the gateway\'s own server alone remembers as well', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url, plugins })
  const alice = await connect(t, host.baseUrl, { 'x-svc-agent': 'alice', 'x-svc-private': '1' }, 'admin')
  const names = (await alice.listTools()).tools.map(({ name }) => name).filter(name => name.startsWith('memory_'))
  t.strictSame(names, ['memory_add', 'memory_delete', 'memory_list', 'memory_search'])
  const ids: string[] = []
  for (const text of ['The bridge opens on Monday.', 'The bridge closes on Friday.']) ids.push((await call(alice, 'memory_add', { text })).id as string)
  t.match(fake.bank('private__alice').units, [{ tags: ['agent:alice', 'visibility:private'] }, {}])
  t.equal((await call(alice, 'memory_search', { query: 'bridge' })).results.length, 2)
  t.match(await call(alice, 'memory_list', { dataset: 'private:alice' }), { items: [{}, {}] })
  t.match(await call(alice, 'memory_delete', { ids }), { status: 'pending_approval' })
  t.strictSame(await call(alice, 'memory_delete', { ids: [ids[0]] }), { deleted: 1 })
  await host.call('PUT', '/api/settings', { memory: { enabled: false } })
  t.notMatch(JSON.stringify((await alice.listTools()).tools), /memory_add/, 'and not while it is off')
})

t.test('while the memory is off its tools are not listed, and say how to switch it on', async t => {
  const host = await memoryHost(t, { plugins, files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n' } })
  const client = await connect(t, host.baseUrl, {})
  for (const [name, args] of [['memory_add', { text: 'x' }], ['memory_search', { query: 'x' }], ['bank_stats', {}]] as const) {
    t.match(await call(client, name, args), { status: 'error', http_status: 503, error: { code: 'memory.unavailable', message: /svc memory enable/ } })
  }
  t.strictSame((await client.listTools()).tools, [], 'and are not listed')
  const told = new Promise<void>(resolve => { client.setNotificationHandler('notifications/tools/list_changed', () => resolve()) })
  await host.call('PUT', '/api/settings', { memory: { enabled: true } })
  t.ok((await client.listTools()).tools.length > 20, 'until it is on')
  await told
})
