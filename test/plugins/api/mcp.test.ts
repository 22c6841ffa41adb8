import { readFile, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import approvalRoutes from '../../../plugins/api/approvals/index.js'
import api from '../../../plugins/api/mcp/index.js'
import all from '../../../plugins/mcp/all/index.js'
import mount from '../../../plugins/mcp/servers/index.js'
import approvals from '../../../plugins/services/approvals/index.js'
import { createPublicAgent } from '../../../plugins/services/tool-servers/public-agent.js'
import { isPublicAddress } from '../../../plugins/services/tool-servers/resolve/public-address.js'
import { fetchManifest } from '../../../plugins/services/tool-servers/resolve/manifest-fetch.js'
import { hosted, oddServer, record, type Hosted } from '../services/tool-servers/hosted.js'

interface Row { readonly id: string, readonly state: string, readonly [key: string]: unknown }
interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> & { readonly server?: Row }
}

const asker = (gateway: Hosted) => async (method: string, path: string, body?: unknown): Promise<Answer> => {
  const response = await gateway.fetch(`/api/mcp${path}`, {
    method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  })
  return { status: response.status, body: await response.json() as Answer['body'] }
}

async function webServer (t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => {
    server.closeAllConnections()
    server.close(resolve)
  }))
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('a tool server is installed, looked at, changed and uninstalled', async t => {
  const gateway = await hosted(t, {}, { plugins: [api] })
  const ask = asker(gateway)
  const manifest = {
    id: 'odd', name: 'Odd', command: 'node', args: [oddServer], env: { API_TOKEN: 'plain', MODE: 'x' }, tools: 3, env_required: ['API_TOKEN', 'MISSING']
  }
  const installed = await ask('POST', '/install', { manifest })
  t.match(installed, {
    status: 201,
    body: { installed: { id: 'odd', bundled: false, enabled: true, env: { API_TOKEN: '••••••••', MODE: 'x' } }, env_missing: ['MISSING'] }
  })
  t.equal((await stat(join(gateway.home, 'etc/svc/mcp-servers/odd.toml'))).mode & 0o777, 0o600)
  t.match(await ask('POST', '/install', { manifest }), { status: 409, body: { error: { code: 'mcp.already_installed' } } })
  await gateway.reaches('odd', 'running')
  const list = await ask('GET', '/servers')
  t.match(list.body, { count: 1 })
  const { server } = (await ask('GET', '/odd')).body
  t.match(server, { state: 'running', name: 'Odd', connect_url: /\/mcp\/odd$/, version: '0.9', protocol: '2025-06-18', resources: 1, prompts: 1 })
  t.match((server!.tool_details as { name: string }[]).find(({ name }) => name === 'echo'),
    { description: 'Says it again', args: 'text?', read_only: true, destructive: false, gated: false })

  const choice = { allow: ['echo', 'slow', 'hang'], gated: ['slow'], blocked: ['hang'] }
  t.match(await ask('PATCH', '/odd/tools', choice), { status: 200, body: { server: { tools: 2 } } })
  t.match(failureOf(await gateway.call('odd', 'slow')), 'approvals.unavailable')
  t.equal(await gateway.text('odd', 'echo', { text: 'x' }), 'x')
  t.match((await ask('GET', '/odd')).body.server, { activity: { rpm: 2 }, connected: ['tester'] })
  t.match((await ask('GET', '/clients')).body, { count: 1, clients: [{ id: 'tester', role: 'App', connected_to: ['odd'] }] })
  const roles = {
    'claude-code': 'CLI', 'codex': 'CLI', 'opencode': 'CLI', 'gemini-cli': 'CLI', 'hermes': 'CLI',
    'cline': 'IDE', 'continue': 'IDE', 'cursor': 'IDE', 'vscode': 'IDE', 'visual-studio-code': 'IDE', 'claude-desktop': 'App', 'my-client': 'App'
  }
  for (const agent of Object.keys(roles)) {
    await gateway.catalogue.call('odd', 'slow', {}, { agent, actor: `mcp:${agent}`, signal: new AbortController().signal })
  }
  const { clients } = (await ask('GET', '/clients')).body as { clients: Array<{ id: string, role: string }> }
  t.match(Object.fromEntries(clients.map(({ id, role }) => [id, role])), roles)
  const logs = await ask('GET', '/odd/logs?limit=50')
  t.match((logs.body.events as { kind: string, message: string }[]).map(({ kind, message }) => `${kind} ${message}`),
    [/^state starting/, /^state ready, 13 tools/, /^call mcp:tester called odd\/slow/, /^call mcp:tester called odd\/echo/])

  t.match(await ask('POST', '/odd/stop'), { status: 200, body: { server: { state: 'stopped', pid: null, tools: 2 } } })
  t.match(await ask('POST', '/odd/test'), { status: 200, body: { ok: true, tools: 2, error: null } })
  const { pid } = (await ask('GET', '/odd')).body.server!
  t.match(await ask('POST', '/odd/restart'), { status: 200, body: { server: { state: 'running' } } })
  t.not((await ask('GET', '/odd')).body.server!.pid, pid)
  t.match(await ask('PATCH', '/odd/config', { enabled: false }), { status: 200, body: { server: { enabled: false, state: 'disabled' } } })
  t.match(await ask('POST', '/odd/restart'), { status: 409, body: { error: { code: 'mcp.server_disabled' } } })
  t.match(await ask('DELETE', '/odd'), { status: 200, body: { uninstalled: 'odd' } })
  t.match(await ask('GET', '/odd'), { status: 404, body: { error: { code: 'mcp.not_found' } } })
  const actions = gateway.gateway.kernel().activity.list({ category: 'mcp', kind: 'action' }).map(({ action }) => action)
  for (const action of ['mcp.install', 'mcp.tools', 'mcp.stop', 'mcp.restart', 'mcp.config', 'mcp.uninstall']) t.ok(actions.includes(action), action)
})

t.test('what cannot be is refused, each with its code', async t => {
  const gateway = await hosted(t, { odd: record([], 'enabled = false\n') }, { plugins: [api] })
  const ask = asker(gateway)
  const refusals: ReadonlyArray<readonly [string, string, unknown, number, string]> = [
    ['POST', '/install', {}, 400, 'mcp.url_required'],
    ['POST', '/install', { speed: 1 }, 400, 'mcp.body_invalid'],
    ['POST', '/install', { spec: 'npm:x', manifest: {} }, 400, 'mcp.body_invalid'],
    ['POST', '/install', { manifest: 'npm' }, 400, 'mcp.manifest_invalid'],
    ['POST', '/install', { manifest: { id: 'x', command: 'node', url: 'https://a.example/mcp' } }, 400, 'mcp.manifest_invalid'],
    ['POST', '/install', { manifest: { id: 'x', command: 'node', env: { LD_PRELOAD: '/x' } } }, 400, 'mcp.manifest_invalid'],
    ['POST', '/install', { manifest: { id: 'admin', command: 'node' } }, 409, 'mcp.id_reserved'],
    ['POST', '/install', { manifest: { id: 'all', command: 'node' } }, 409, 'mcp.id_reserved'],
    ['POST', '/install', { spec: 'gopher:x' }, 400, 'mcp.spec_unsupported'],
    ['POST', '/install', { spec: 'npm:--eval' }, 400, 'mcp.spec_unsupported'],
    ['GET', '/resolve', undefined, 400, 'mcp.url_required'],
    ['GET', `/resolve?url=${'x'.repeat(2_100)}`, undefined, 400, 'mcp.url_too_long'],
    ['GET', '/resolve?url=http%3A%2F%2F%5B', undefined, 400, 'mcp.url_invalid'],
    ['GET', '/resolve?url=https%3A%2F%2Fa%3Ab%40example.com', undefined, 400, 'mcp.url_invalid'],
    ['GET', '/resolve?url=http%3A%2F%2Flocalhost%3A1', undefined, 400, 'mcp.ssrf_blocked'],
    ['GET', '/resolve?url=http%3A%2F%2F169.254.169.254%2Flatest', undefined, 400, 'mcp.ssrf_blocked'],
    ['GET', '/resolve?url=http%3A%2F%2F0x7f000001%2F', undefined, 400, 'mcp.ssrf_blocked'],
    ['GET', '/resolve?url=http%3A%2F%2F%5B%3A%3Affff%3A10.0.0.1%5D%2F', undefined, 400, 'mcp.ssrf_blocked'],
    ['PATCH', '/odd/config', { env: { 'a-b': 'x' } }, 400, 'mcp.env_invalid'],
    ['PATCH', '/odd/config', { enabled: 'yes' }, 400, 'mcp.enabled_invalid'],
    ['PATCH', '/none/config', { enabled: true }, 404, 'mcp.not_found'],
    ['DELETE', '/none', undefined, 404, 'mcp.not_found']
  ]
  for (const [method, path, body, status, code] of refusals) {
    t.match(await ask(method, path, body), { status, body: { error: { code } } }, `${method} ${path.slice(0, 60)} ${JSON.stringify(body) ?? ''}`)
  }
  t.strictSame(gateway.desk.list().map(({ server }) => server.id), ['odd'], 'and nothing was installed')
})

t.test('an address is resolved at public places only, once, without redirects and within bounds', async t => {
  let hits = 0
  const host = await webServer(t, (request, response) => {
    hits++
    if (request.url === '/moved') return response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
    if (request.url === '/large') return response.end(JSON.stringify({ spec: 'npm:x', pad: 'x'.repeat(300 * 1024) }))
    if (request.url === '/mcp') return response.writeHead(405).end()
    if (request.url === '/html') return response.end('<html>')
    const named = new URLSearchParams(request.url!.split('?')[1]).get('spec')
    if (named !== null) return response.end(JSON.stringify({ id: 'named', spec: named }))
    if (request.url === '/server.json') {
      return response.end(JSON.stringify({
        name: 'io.github.acme/notes-server', title: 'Notes', description: 'Notes of a team', version: '1.2.0',
        packages: [{
          registryType: 'npm', identifier: '@acme/notes', version: '1.2.0', transport: { type: 'stdio' },
          packageArguments: [{ type: 'named', name: '--mode', value: 'ro' }],
          environmentVariables: [{ name: 'NOTES_TOKEN', isRequired: true, isSecret: true }, { name: 'LANG' }]
        }]
      }))
    }
    response.end(JSON.stringify({ id: 'My Notes!', name: 'My notes', spec: 'uvx:acme-notes==2.0', tools: '4', resources: [1, 2] }))
  })
  const gateway = await hosted(t, {}, { plugins: [api], pluginConfig: { 'tool-servers': { manifest_hosts: [host] } } })
  const ask = asker(gateway)
  const resolve = (path: string): Promise<Answer> => ask('GET', `/resolve?url=${encodeURIComponent(`http://${host}${path}`)}`)
  t.match(await resolve('/plain.json'), {
    status: 200,
    body: {
      id: 'my-notes', name: 'My notes', spec: 'uvx:acme-notes==2.0', transport: 'stdio', tools: 4, resources: 2, source_kind: 'manifest',
      author: 'user', verified: false
    }
  })
  t.match(await resolve('/server.json'), {
    status: 200, body: { id: 'notes-server', name: 'Notes', spec: 'npm:@acme/notes@1.2.0', args: ['--mode', 'ro'], env_required: ['NOTES_TOKEN'] }
  })
  t.match(await resolve('/mcp'), { status: 200, body: { source_kind: 'http', transport: 'streamable-http', spec: `http://${host}/mcp` } })
  const failures = [['/moved', /HTTP 302, a redirect, which is not followed/], ['/large', /larger than 256 KiB/], ['/html', /not a manifest/]] as const
  for (const [path, message] of failures) {
    t.match(await resolve(path), { status: 400, body: { error: { code: 'mcp.manifest_fetch_failed', message } } })
  }
  const naming = (spec: string): Promise<Answer> => resolve(`/named?spec=${encodeURIComponent(spec)}`)
  t.match(await naming('https://mcp.example/mcp'), { status: 200, body: { network: 'public' } }, 'a server is looked for at public addresses from then on')
  for (const inner of ['http://10.0.0.1/mcp', 'https://printer.local/mcp', 'http://[::1]:9/mcp']) {
    t.match(await naming(inner), { status: 400, body: { error: { code: 'mcp.ssrf_blocked' } } }, `a manifest names ${inner}`)
  }
  const repository = 'git+https://github.com/acme/notes'
  for (const answer of [await naming(repository), await ask('GET', `/resolve?url=${encodeURIComponent(repository)}`)]) {
    t.match(answer, { status: 400, body: { error: { code: 'mcp.spec_unsupported', message: /is a repository, which the gateway does not build; give its package/ } } })
  }
  t.match((await ask('GET', '/resolve?url=oci%3A%2F%2Fghcr.io%2Facme%2Fnotes%3A2')).body,
    { id: 'notes', spec: 'oci://ghcr.io/acme/notes:2', source_kind: 'oci' })
  t.match((await ask('GET', '/resolve?url=npx%3A%40acme%2Fnotes%402')).body,
    { id: 'notes', spec: 'npm:@acme/notes@2', source_kind: 'npm', transport: 'stdio' })

  const [clock, { signal }] = [createSystemClock(), new AbortController()]
  const port = Number(host.split(':')[1])
  const before = hits
  let asked = 0
  const address = (...all: string[]) => () => {
    asked++
    return Promise.resolve(all.map(each => ({ address: each, family: 4 })))
  }
  const target = new URL(`http://rebind.example:${port}/`)
  await t.rejects(fetchManifest(target, { clock, trusted: [], addressesOf: address('1.1.1.1', '127.0.0.1') }, signal),
    { code: 'mcp.ssrf_blocked' }, 'one private address among several is enough')
  const found = await fetchManifest(target, { clock, trusted: [target.host], addressesOf: address('127.0.0.1') }, signal)
  t.equal(found.status, 200, 'the connection goes to the address that was found: no other resolver knows this name')
  t.equal(asked, 2, 'and the name is asked for once')
  t.equal(hits, before + 1)
})

t.test('a server is offered where its exposure says, and goes on running', async t => {
  const gateway = await hosted(t, { odd: record() }, { plugins: [api, mount, all] })
  const ask = asker(gateway)
  await gateway.reaches('odd', 'running')
  const { pid } = gateway.desk.get('odd').status
  const listed = async (server: string): Promise<readonly [number, boolean]> => {
    const response = await gateway.fetch(`/mcp/${server}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    })
    return [response.status, /"(odd_)?echo"/.test(await response.text())]
  }
  t.match((await ask('GET', '/odd')).body.server, { exposure: { direct: true, all: true, chats: true } })
  t.strictSame([await listed('odd'), await listed('all')], [[200, true], [200, true]])
  t.match(await ask('PATCH', '/odd/exposure', { direct: false }), { status: 200, body: { server: { exposure: { direct: false, all: true }, connect_url: null } } })
  t.strictSame([await listed('odd'), await listed('all')], [[404, false], [200, true]])
  t.match(await ask('PATCH', '/odd/exposure', { direct: true, all: false }), { status: 200, body: { server: { connect_url: /odd$/ } } })
  t.strictSame([await listed('odd'), await listed('all')], [[200, true], [200, false]])
  t.match(await readFile(join(gateway.home, 'etc/svc/mcp-servers/odd.toml'), 'utf8'), /\[exposure\]\ndirect = true\nall = false/)
  t.equal(gateway.desk.get('odd').status.pid, pid)
  for (const body of [{ all: 'no' }, { everywhere: true }]) {
    t.match(await ask('PATCH', '/odd/exposure', body), { status: 400, body: { error: { code: 'mcp.body_invalid' } } })
  }
  t.match(await ask('PATCH', '/none/exposure', {}), { status: 404, body: { error: { code: 'mcp.not_found' } } })
  t.match(gateway.gateway.kernel().activity.list({ kind: 'action' }).find(({ action, outcome }) => action === 'mcp.exposure' && outcome === 'ok'),
    { before: { all: true }, after: { all: false } })
})

t.test('a server that a third party named is reached at public addresses only, at each connection', async t => {
  let hits = 0
  const host = await webServer(t, (_request, response) => {
    hits++
    response.writeHead(405).end()
  })
  const gateway = await hosted(t, {}, { plugins: [api] })
  const ask = asker(gateway)
  const manifest = { id: 'far', url: `http://${host}/mcp`, transport: 'streamable-http', network: 'public' }
  t.match(await ask('POST', '/install', { manifest }), { status: 201, body: { installed: { network: 'public' } } })
  await gateway.reaches('far', 'unreachable')
  t.match((await ask('GET', '/far')).body.server, { error: /cannot be reached: 127\.0\.0\.1 is not on the public internet; PATCH .+ network "any"/ })
  t.equal(hits, 0)
  await ask('PATCH', '/far/config', { network: 'any' })
  await ask('POST', '/far/test')
  t.ok(hits > 0, 'an operator may have it anywhere')

  const before = hits
  const port = Number(host.split(':')[1])
  let asked = 0
  for (const addresses of [['127.0.0.1'], ['1.1.1.1', '127.0.0.1'], []]) {
    const agent = createPublicAgent(() => {
      asked++
      return Promise.resolve(addresses.map(address => ({ address, family: 4 })))
    })
    t.teardown(() => agent.destroy())
    for (const name of ['rebind.example', '[::ffff:127.0.0.1]', 'localhost']) await t.rejects(request(`http://${name}:${port}/`, { dispatcher: agent }))
  }
  t.equal(asked, 3, 'a name is looked up, an address is not, and some names need no look')
  t.equal(hits, before)
})

t.test('addresses that are not of the public internet', async t => {
  const others = [
    '127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '169.254.1.1', '100.64.0.1', '0.0.0.0', '224.0.0.1', '255.255.255.255',
    '198.18.0.1', '::1', '::', 'fe80::1', 'fd00::1', '::ffff:8.8.8.8', '64:ff9b::808:808', '2002:7f00:1::', '2001:db8::1', 'ff02::1',
    'localhost', ''
  ]
  for (const address of others) {
    t.notOk(isPublicAddress(address), address)
  }
  for (const address of ['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '2a00:1450::1']) {
    t.ok(isPublicAddress(address), address)
  }
})

t.test('the catalogue ships with the release, and a registry renews it', async t => {
  const official = (facts: object): object => ({ 'io.modelcontextprotocol.registry/official': facts })
  const npm = (identifier: string): object => ({ registryType: 'npm', identifier, version: '1.0.0', transport: { type: 'stdio' } })
  const notes = { name: 'io.github.acme/notes', description: 'Notes', websiteUrl: 'https://acme.example', packages: [npm('@acme/notes')] }
  const remote = { name: 'com.example/remote', description: 'Far away', remotes: [{ type: 'streamable-http', url: 'https://mcp.example/mcp' }] }
  const pages: Record<string, object> = {
    '': {
      servers: [
        { server: notes, _meta: official({ status: 'active', isLatest: true }) },
        { server: { name: 'io.github.acme/old', packages: [npm('old')] }, _meta: official({ status: 'deleted' }) },
        'nonsense'
      ],
      metadata: { count: 2, nextCursor: 'two' }
    },
    'two': { servers: [remote, { name: 'com.example/windows', packages: [{ registryType: 'nuget', identifier: 'x' }] }], metadata: { count: 2 } }
  }
  const asked: string[] = []
  let broken = false
  const host = await webServer(t, (request, response) => {
    asked.push(request.url!)
    const cursor = new URL(request.url!, 'http://x').searchParams.get('cursor') ?? ''
    response.writeHead(broken ? 503 : 200).end(JSON.stringify(pages[cursor]))
  })
  const home = t.testdir()
  const pluginConfig = { 'tool-servers': { registry: `http://${host}/` } }
  const open = (): Promise<Hosted> => hosted(t, {}, { home, plugins: [api], pluginConfig })
  let gateway = await open()
  let ask = asker(gateway)
  const shipped = await ask('GET', '/catalog')
  t.ok((shipped.body.items as unknown[]).length >= 5)
  t.match(await ask('POST', '/catalog/refresh'), { status: 200, body: { items: 2 } })
  t.strictSame(asked, ['/v0/servers?limit=100&version=latest', '/v0/servers?limit=100&version=latest&cursor=two'])
  t.match((await ask('GET', '/catalog?search=acme')).body.items,
    [{ id: 'io.github.acme/notes', spec: 'npm:@acme/notes@1.0.0', author: 'io.github.acme', homepage: 'https://acme.example' }])
  t.match((await ask('GET', '/catalog?category=remote')).body.items, [{ id: 'com.example/remote', spec: 'https://mcp.example/mcp' }])
  broken = true
  t.match(await ask('POST', '/catalog/refresh'),
    { status: 502, body: { error: { code: 'mcp.catalog_failed', message: /HTTP 503; the previous entries stay/ } } })
  await gateway.close()
  gateway = await open()
  ask = asker(gateway)
  t.match(await ask('GET', '/catalog?category=remote'), { body: { items: [{ id: 'com.example/remote' }] } }, 'also in the next run')
  t.match(JSON.parse(await readFile(join(home, 'var/lib/svc/plugin-state/tool-servers/catalog.json'), 'utf8')), [{}, {}])
})

t.test('the stream begins with the last minute and goes on', async t => {
  const gateway = await hosted(t, { odd: record([], '[tools]\ngated = ["slow"]\n') }, { plugins: [api, approvals, approvalRoutes] })
  await gateway.reaches('odd', 'running')
  await gateway.text('odd', 'echo', { text: 'before' })
  const leaving = new AbortController()
  const response = await gateway.fetch('/api/mcp/stream', { signal: leaving.signal })
  t.match(response.headers.get('content-type'), /^text\/event-stream/)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const until = async (count: number): Promise<void> => {
    while ((text.match(/^data: /gm) ?? []).length < count) text += (await reader.read()).value ?? ''
  }
  await until(1)
  const waiting = await gateway.call('odd', 'slow')
  if (waiting.kind !== 'pending') throw new Error(`it is ${waiting.kind}`)
  await gateway.fetch(`/api/agent/approvals/${waiting.approvalId}/deny`, { method: 'POST' })
  await until(4)
  leaving.abort()
  const frames = [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data]) => [event, JSON.parse(data!) as { client: string }] as const)
  t.match(frames, [
    ['mcp.tool.invoked', { server: 'odd', tool: 'echo', client: 'tester', gated: false, ts: /Z$/ }],
    ['enqueued', { server: 'odd', tool: 'slow', client: 'tester', gated: true, outcome: 'pending' }],
    ['mcp.tool.invoked', { server: 'odd', tool: 'slow', client: 'tester', gated: true, outcome: 'pending_approval' }],
    ['denied', { server: 'odd', tool: 'slow', client: 'tester', gated: true, outcome: 'denied' }]
  ])
  t.strictSame(frames.map(([, { client }]) => client), Array(4).fill('tester'), 'the same name in each')
})

function failureOf (outcome: Awaited<ReturnType<Hosted['call']>>): string {
  return outcome.kind === 'failed' ? outcome.error.code : outcome.kind
}
