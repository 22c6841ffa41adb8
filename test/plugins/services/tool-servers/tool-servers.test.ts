import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import t from 'tap'
import { Agent } from 'undici'
import { z } from 'zod'
import type { Program, ToolOutcome } from '../../../../kernel/contract/index.js'
import { createSystemClock } from '../../../../kernel/state/system-clock.js'
import approvalRoutes from '../../../../plugins/api/approvals/index.js'
import mount from '../../../../plugins/mcp/servers/index.js'
import approvals from '../../../../plugins/services/approvals/index.js'
import { connect } from '../../../../plugins/services/tool-servers/connection.js'
import { ServerLog } from '../../../../plugins/services/tool-servers/server-log.js'
import { spawnSvc } from '../../../cli/support.js'
import { testEngine } from '../../../kernel/runtime/engines.js'
import { until } from '../../api/support.js'
import { hosted, oddServer, record } from './hosted.js'
import { npmRegistry, wheelFolder } from './packages.js'

const failure = (outcome: ToolOutcome): { code: string, message: string, details: Readonly<Record<string, unknown>> } => {
  if (outcome.kind !== 'failed') throw new Error(`${outcome.kind} instead of a failure: ${JSON.stringify(outcome).slice(0, 300)}`)
  return outcome.error
}

t.test('an installed server runs as a child of the gateway, and its tools are tools of the gateway', async t => {
  const gateway = await hosted(t, {
    odd: record(['--prints'], 'name = "Odd"\n[env]\nMODE = "test"\n[secrets]\nODD_TOKEN = "ODD_KEY"\n[tools]\ngated = ["slow"]\nblocked = ["hang"]\n')
  }, { files: { 'etc/svc/api.env': 'ODD_KEY="s3cret-value"\nOTHER="x"\n' } })
  await gateway.reaches('odd', 'running')
  const tools = new Map(gateway.catalogue.list('odd', { agent: null }).map(tool => [tool.name, tool]))
  t.match(tools.get('echo'), { title: 'Echo', annotations: { readOnly: true }, gated: false })
  t.strictSame(tools.get('echo')!.inputSchema, { type: 'object', properties: { text: { type: 'string' } } })
  t.ok(tools.has('dotted_name'), 'a name that clients refuse is another one here')
  t.equal(tools.get('slow')!.gated, true, 'as its record says')
  t.notOk(tools.has('hang'))
  t.equal(failure(await gateway.call('odd', 'hang')).code, 'mcp.unknown_tool')
  t.equal(failure(await gateway.call('odd', 'slow')).code, 'approvals.unavailable', 'a gated tool waits for an operator, or is refused where none can be asked')
  t.equal(await gateway.text('odd', 'echo', { text: 'hello' }), 'hello')
  t.equal(await gateway.text('odd', 'dotted_name'), 'dotted')
  const { argv, env } = JSON.parse(await gateway.text('odd', 'surroundings')) as { argv: string[], env: Record<string, string> }
  t.strictSame(argv, ['--prints'])
  t.match(env, { MODE: 'test', ODD_TOKEN: 's3cret-value', PATH: process.env.PATH })
  t.notOk('SECRET_OF_THE_GATEWAY' in env || 'OTHER' in env, 'nothing else of the gateway comes along')
  t.match(gateway.desk.get('odd').status, { state: 'running', protocol: '2025-06-18', version: '0.9', resources: 1, prompts: 1, dropped: { length: 0 } })
  t.match(gateway.desk.get('odd').status.log(100), [{ kind: 'state', message: 'starting' }, { kind: 'stdout', message: 'Welcome to the odd server!' }])
  t.match(gateway.catalogue.server('odd'), { title: 'Odd', instructions: 'Be careful.', parts: { resources: true, prompts: true } })
  const passage = gateway.catalogue.server('odd')!.source!.request!
  const caller = { actor: 'mcp:x', agent: null, signal: new AbortController().signal }
  t.match(await passage('resources/read', { uri: 'odd://one' }, caller), { contents: [{ text: 'the first' }] })
  t.match(await passage('prompts/get', { name: 'greet' }, caller), { messages: [{ role: 'user' }] })
})

t.test('a server that crashes in a call fails that call with its last words, and is paced like a slot when it does so again', async t => {
  const real = createSystemClock()
  let ahead = 0
  const clock = { now: () => real.now() + ahead, monotonic: () => real.monotonic() + ahead, setTimer: real.setTimer.bind(real) }
  const gateway = await hosted(t, { odd: record() }, { clock })
  await gateway.reaches('odd', 'running')
  t.match(failure(await gateway.call('odd', 'crash')), { code: 'mcp.server_ended', message: /exit code 7 during tool crash; it last wrote: cannot allocate a flux capacitor/ })
  await gateway.reaches('odd', 'failed')
  t.equal(await gateway.text('odd', 'echo', { text: 'again' }), 'again', 'the first failure costs no wait')
  await gateway.call('odd', 'crash')
  await gateway.reaches('odd', 'failed')
  const refused = failure(await gateway.call('odd', 'echo'))
  t.match(refused, { code: 'mcp.server_failed', message: /failed 2 times; the next attempt is in [1-5] s, or at once with POST \/api\/mcp\/odd\/restart\. The last failure/ })
  t.ok((refused.details.retry_after_s as number) > 0)
  ahead += 5_000
  t.equal(await gateway.text('odd', 'echo', { text: 'later' }), 'later')
  ahead += 60_000
  await gateway.call('odd', 'crash')
  await gateway.reaches('odd', 'failed')
  t.equal(await gateway.text('odd', 'echo', { text: 'sound' }), 'sound', 'after a minute without a crash it is the first again')
  await gateway.call('odd', 'crash')
  await gateway.reaches('odd', 'failed')
  await gateway.desk.restart('odd', new AbortController().signal)
  t.equal(await gateway.text('odd', 'echo', { text: 'restarted' }), 'restarted', 'an operator need not wait')
})

t.test('what a server should not write harms nobody else', async t => {
  const servers = { odd: record(['--batch']), flood: record(), blank: record(['--blank']) }
  const gateway = await hosted(t, servers, { plugins: [mount] })
  await Promise.all([gateway.reaches('odd', 'running'), gateway.reaches('flood', 'running')])
  const { pid } = gateway.desk.get('odd').status

  await t.test('an answer of 50 MB fails its own call alone', async t => {
    const [big, echo] = await Promise.all([gateway.call('odd', 'big', { mib: 50 }), gateway.call('odd', 'echo', { text: 'beside it' })])
    t.match(failure(big), { code: 'mcp.answer_too_large', message: /the answer has 51 MiB; at most 16 are taken/ })
    t.match(echo, { kind: 'content', content: { content: [{ text: 'beside it' }] } })
    t.equal((await gateway.text('odd', 'big', { mib: 2 })).length, 2 * 1024 * 1024, 'one of 2 MiB is fine')
    t.equal(gateway.desk.get('odd').status.pid, pid, 'and the server lives on')
  })

  await t.test('an answer that is nested too deeply fails its own call, for clients of either revision', async t => {
    t.match(failure(await gateway.call('odd', 'nest')), { code: 'mcp.answer_too_large', message: /nested deeper than 64 levels/ })
    for (const versionNegotiation of [{ mode: 'auto' }, { mode: 'legacy' }] as const) {
      const client = new Client({ name: 'x', version: '1' }, { versionNegotiation })
      await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/mcp/odd`)))
      t.match(await client.callTool({ name: 'nest', arguments: {} }), { isError: true, content: [{ text: /mcp\.answer_too_large/ }] })
      await client.close()
    }
    t.equal(gateway.desk.get('odd').status.pid, pid)
  })

  await t.test('a refusal of 8 MiB is cut', async t => {
    const { code, message } = failure(await gateway.call('odd', 'complain', { mib: 8 }))
    t.equal(code, 'mcp.tool_failed')
    t.ok(message.length < 5_000, `${message.length} characters`)
  })

  await t.test('a flood of blank lines ends the server that sends them, and a batch of messages counts once', async t => {
    await gateway.reaches('blank', 'failed')
    t.match(gateway.desk.get('blank').status.error, /writes more than 8 MiB a minute/)
    t.equal(gateway.desk.get('odd').status.pid, pid)
  })

  await t.test('a flood of messages ends the server that sends them', async t => {
    const before = process.memoryUsage().rss
    t.match(failure(await gateway.call('flood', 'flood')), { code: 'mcp.server_ended', message: /writes more than 8 MiB a minute/ })
    await gateway.reaches('flood', 'failed')
    t.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024)
    t.equal(await gateway.text('odd', 'echo', { text: 'dry' }), 'dry')
  })
})

t.test('a call that hangs ends with its client, or at its limit, and the server is told', async t => {
  const gateway = await hosted(t, { odd: record(), hasty: record([], 'call_timeout_s = 1\n') })
  await Promise.all([gateway.reaches('odd', 'running'), gateway.reaches('hasty', 'running')])
  t.match(failure(await gateway.call('hasty', 'hang')), { code: 'mcp.call_timeout' })
  await gateway.gateway.kernel().config.change(draft => draft.toolServers.patch('hasty', { call_timeout_s: 300 }))
  t.equal(await gateway.text('hasty', 'cancelled'), '1')
  const leaving = new AbortController()
  const left = gateway.call('odd', 'hang', {}, leaving.signal)
  t.equal(await gateway.text('odd', 'echo', { text: 'alive' }), 'alive')
  leaving.abort(new Error('the client has left'))
  t.equal((await left).kind, 'failed')
  t.equal(await gateway.text('odd', 'cancelled'), '1')
})

t.test('what one of several servers does otherwise is its own affair', async t => {
  const modern = fileURLToPath(new URL('modern-server.js', import.meta.url))
  const key = '[secrets]\nODD_TOKEN = "ODD_KEY"\n'
  const gateway = await hosted(t, {
    odd: record([], key),
    modern: `command = "node"\nargs = [${JSON.stringify(modern)}]\n`,
    bad: record(['--bad-schemas']),
    complains: record(['--complains'], key),
    silent: record(['--silent'], 'start_timeout_s = 20\n')
  }, { files: { 'etc/svc/api.env': 'ODD_KEY="s3cret-value"\n' } })

  await t.test('tools that change while the server runs are listed anew', async t => {
    await gateway.reaches('odd', 'running')
    const isThere = (): boolean => gateway.catalogue.find('odd', 'extra') !== null
    t.notOk(isThere())
    // the tools of the others come meanwhile
    const changed = new Promise<void>(resolve => { gateway.catalogue.onChange(() => { if (isThere()) resolve() }) })
    t.equal(await gateway.text('odd', 'change'), 'changed')
    await changed
    t.ok(isThere())
  })

  await t.test('a server that asks for input is told that nobody answers, in either era', async t => {
    await gateway.reaches('odd', 'running')
    t.match(JSON.parse(await gateway.text('odd', 'elicit')), { error: { code: -32601 } })
    await gateway.reaches('modern', 'running')
    t.match(gateway.desk.get('modern').status, { protocol: '2026-07-28', version: '2.0' })
    t.equal(await gateway.text('modern', 'greet', { name: 'Ada' }), 'Hello Ada')
    t.match(failure(await gateway.call('modern', 'ask')), { code: 'mcp.input_required' })
    t.match(await gateway.call('modern', 'greet', { name: 5 }), { kind: 'content', content: { isError: true } }, 'it validates by itself')
  })

  await t.test('a bad schema costs its own tool alone', async t => {
    await gateway.reaches('bad', 'running')
    t.strictSame(gateway.desk.get('bad').status.dropped.map(({ name }) => name), ['no_schema', 'text_schema', 'union', '(no name)', 'deep'])
    t.ok(gateway.catalogue.find('bad', 'echo'))
  })

  await t.test('a server that repeats its secret in a refusal tells it to nobody', async t => {
    await Promise.all([gateway.reaches('odd', 'running'), gateway.reaches('complains', 'failed')])
    const { message } = failure(await gateway.call('odd', 'complain'))
    const { error } = gateway.desk.get('complains').status
    for (const text of [message, error]) {
      t.match(text, /the key .+ is wrong/)
      t.notMatch(text, /s3cret-value/)
    }
  })

  await t.test('a server that never answers what it does not know is greeted as an older one', async t => {
    await gateway.reaches('silent', 'running')
    t.equal(await gateway.text('silent', 'echo', { text: 'at last' }), 'at last')
  })
})

t.test('a server is started once for all who wait, stopped when it is idle, and listed all the same', async t => {
  const starts = join(t.testdir(), 'starts')
  const real = createSystemClock()
  // the idle timer alone ends when the test says so
  let endIdle: (() => void) | null = null
  const setTimer: typeof real.setTimer = (ms, fire) => {
    if (ms !== 777_000) return real.setTimer(ms, fire)
    endIdle = fire
    return { cancel: () => { endIdle = null } }
  }
  const clock = { now: () => real.now(), monotonic: () => real.monotonic(), setTimer }
  const gateway = await hosted(t, { odd: record([], `idle_stop_s = 777\n[env]\nSTARTS = "${starts}"\n`) }, { clock })
  const count = (): number => readFileSync(starts, 'utf8').trim().split('\n').length
  await gateway.reaches('odd', 'running')
  await until(() => endIdle !== null, 'it is idle')
  endIdle!()
  await gateway.reaches('odd', 'stopped')
  t.equal(count(), 1)
  t.ok(gateway.catalogue.find('odd', 'echo'))
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => gateway.text('odd', 'echo', { text: String(n) })))
  t.strictSame(answers, Array.from({ length: 10 }, (_, n) => String(n)))
  t.equal(count(), 2)
})

t.test('a server that cannot be run says why', async t => {
  const gateway = await hosted(t, {
    dies: record(['--dies']), absent: 'command = "no-such-program-here"\n', keyless: record([], '[secrets]\nA = "NOT_SET"\n'),
    option: 'spec = "npm:--eval"\n', off: record([], 'enabled = false\n')
  })
  await Promise.all(['dies', 'absent', 'keyless', 'option'].map(id => gateway.reaches(id, 'failed')))
  t.match(gateway.desk.get('dies').status.error, /ended with exit code 3; it last wrote: no licence file$/)
  t.match(gateway.desk.get('absent').status.error, /no-such-program-here is not installed/)
  t.match(gateway.desk.get('keyless').status.error, /needs NOT_SET, which api.env does not have/)
  t.match(gateway.desk.list().find(({ server }) => server.id === 'option')?.status, { state: 'failed', error: /has the spec 'npm:--eval', which is not npm:/ })
  t.equal(gateway.desk.get('off').status.state, 'disabled')
  await gateway.gateway.kernel().config.setSecret('NOT_SET', 'value')
  await gateway.desk.start('keyless', new AbortController().signal)
  t.match(JSON.parse(await gateway.text('keyless', 'surroundings')), { env: { A: 'value' } })
})

t.test('a program that has ended before anything is written to it is told by its exit code, not by the pipe', async t => {
  const gateway = await hosted(t, { dies: record([], 'enabled = false\n') })
  const { clock, config } = gateway.gateway.kernel()
  const stdin = new Writable({ write: (_chunk, _encoding, done) => { done(new Error('write EPIPE')) } }).on('error', () => {})
  // the pipe has broken; its exit is still on the way, and the end of its output as well
  const ended = new Promise<number>(resolve => { stdin.once('close', () => { clock.setTimer(30, () => { resolve(3) }) }) })
  const pipes = { stdin, stdout: new PassThrough(), stderr: new PassThrough().end('no licence file\n') }
  const program: Program = { pipes, address: null, pid: 1, ended, stop: () => Promise.resolve() }
  await t.rejects(connect(config.snapshot.toolServers.get('dies')!, {
    clock, config, programs: { run: () => Promise.resolve(program) }, dispatcher: () => new Agent(),
    log: new ServerLog(clock, text => text), version: '1'
  }, () => {}, new AbortController().signal), { message: /ended with exit code 3; it last wrote: no licence file$/ })
})

t.test('records come, change and go while the gateway runs', async t => {
  const gateway = await hosted(t, {})
  const { config } = gateway.gateway.kernel()
  const { args } = JSON.parse(`{${record().split('\n')[1]!.replace('args =', '"args":')}}`) as { args: string[] }
  await config.change(draft => draft.toolServers.create('late', { command: 'node', args }))
  await gateway.reaches('late', 'running')
  const { pid } = gateway.desk.get('late').status
  await config.change(draft => draft.toolServers.patch('late', { tools: { allow: ['echo'] } }))
  t.strictSame(gateway.catalogue.list('late', { agent: null }).map(({ name }) => name), ['echo'])
  t.equal(gateway.desk.get('late').status.pid, pid, 'what is offered is no reason to start it anew')
  await config.change(draft => draft.toolServers.patch('late', { env: { A: 'b' } }))
  await gateway.reaches('late', 'running')
  t.not(gateway.desk.get('late').status.pid, pid)
  await config.change(draft => draft.toolServers.delete('late'))
  t.equal(gateway.catalogue.server('late'), null)
})

t.test('a package of npm runs through npx, with its arguments, and nothing of it is left after a stop', async t => {
  const starts = join(t.testdir(), 'starts')
  const env = { ...await npmRegistry(t), STARTS: starts }
  const gateway = await hosted(t, { pack: `spec = "npm:@acme/odd@1.2.0"\nargs = ["--mode", "a b"]\n${envTable(env)}` })
  await gateway.reaches('pack', 'running')
  t.match(JSON.parse(await gateway.text('pack', 'surroundings')), { argv: ['--mode', 'a b'] })
  const pid = Number(readFileSync(starts, 'utf8'))
  t.not(gateway.desk.get('pack').status.pid, pid, 'npx is its parent')
  t.ok(lives(pid))
  await gateway.desk.stop('pack')
  t.notOk(lives(pid))
})

t.test('a package of Python runs through uvx, with its arguments', async t => {
  const env = await wheelFolder(t)
  if (env === null) return void t.comment('SKIPPED: no uvx or no Python here')
  const gateway = await hosted(t, { snake: `spec = "uvx:acme-snake==2.0"\nargs = ["--mode", "a b"]\n${envTable(env)}` })
  await gateway.reaches('snake', 'running')
  t.match(gateway.desk.get('snake').status, { version: '2.0', protocol: '2025-06-18' })
  t.equal(await gateway.text('snake', 'where'), '--mode a b')
})

t.test('the gateway ends after the servers that it was about to end, removed ones too', async t => {
  const slow = record(['--ends-slowly'])
  const gateway = await hosted(t, { removed: slow, stopped: slow })
  const pids = await Promise.all(['removed', 'stopped'].map(async id => {
    await gateway.reaches(id, 'running')
    return gateway.desk.get(id).status.pid!
  }))
  const stopping = gateway.desk.stop('stopped')
  await gateway.gateway.kernel().config.change(draft => draft.toolServers.delete('removed'))
  await gateway.close()
  t.strictSame(pids.filter(lives), [])
  await stopping
})

t.test('nothing is left of a server whose gateway was killed, also when it does not end by itself', async t => {
  const home = t.testdir({
    etc: {
      svc: {
        'svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n',
        'mcp-servers': { 'odd.toml': record(['--stubborn'], `[env]\nSTARTS = "${join(t.testdirName, 'starts')}"\n`) }
      }
    }
  })
  const doomed = spawnSvc(['serve', '--home', home, '--port', '0', '--ready-json'])
  t.teardown(() => doomed.child.kill('SIGKILL'))
  const { url } = JSON.parse(await doomed.firstLine) as { readonly url: string }
  t.equal((await fetch(`${url}/api/mcp/odd/start`, { method: 'POST' })).status, 200, 'it runs')
  const pids = readFileSync(join(home, 'starts'), 'utf8').trim().split('\n').map(Number)
  t.equal(pids.length, 2, 'the server and a child of its own')
  doomed.child.kill('SIGKILL')
  await once(doomed.child, 'exit')
  t.ok(pids.every(lives), 'both ignore that their gateway is gone')
  writeFileSync(join(home, 'etc/svc/mcp-servers/odd.toml'), record([], 'enabled = false\n'))
  await hosted(t, {}, { home })
  t.strictSame(pids.filter(lives), [])
})

t.test('a server with a url is reached over HTTP, with its token, in the revision that it speaks', async t => {
  let token = 'Bearer right-token'
  const seen: string[] = []
  const hosts: string[] = []
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'far', version: '3.1' })
    server.registerTool('add', { description: 'Adds', inputSchema: z.object({ a: z.number(), b: z.number() }) },
      ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }))
    server.registerTool('huge', { description: 'Too much' }, () => ({ content: [{ type: 'text', text: 'x'.repeat(20 * 1024 * 1024) }] }))
    return server
  })
  const web = createServer((request, response) => {
    seen.push(request.headers.authorization ?? '')
    hosts.push(request.headers.host ?? '')
    if (request.url === '/moved') return response.writeHead(307, { location: `http://localhost:${request.socket.localPort}/mcp` }).end()
    if (request.headers.authorization !== token) return response.writeHead(401).end()
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }
      const headers = request.headers as Record<string, string>
      const answer = await handler.fetch(new Request(`http://x${request.url}`, { method: request.method!, headers, ...body }))
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk)
      response.end()
    })()
  })
  await new Promise<void>(resolve => web.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => {
    web.closeAllConnections()
    web.close(resolve)
  }))
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
  const far = (path: string): string => `url = "${url}${path}"\ntransport = "streamable-http"\n[secrets]\nAuthorization = "FAR_TOKEN"\n`
  const gateway = await hosted(t, { far: far('/mcp'), moved: far('/moved') }, { files: { 'etc/svc/api.env': 'FAR_TOKEN="right-token"\n' } })
  await Promise.all([gateway.reaches('far', 'reachable'), gateway.reaches('moved', 'unreachable')])
  t.match(gateway.desk.get('far').status, { protocol: '2026-07-28', version: '3.1', pid: null })
  t.equal(await gateway.text('far', 'add', { a: 2, b: 3 }), '5')
  t.equal(failure(await gateway.call('far', 'huge')).code, 'mcp.server_ended')
  t.equal(await gateway.text('far', 'add', { a: 1, b: 1 }), '2', 'and goes on')
  token = 'Bearer another'
  t.match(failure(await gateway.call('far', 'add', { a: 1, b: 1 })), { code: 'mcp.server_refused', message: /bind its token with secrets\.Authorization/ })
  t.equal(gateway.desk.get('far').status.state, 'unreachable')
  t.notOk(hosts.some(host => host.startsWith('localhost')), 'a redirect to another origin is not followed, for the token would go along')
  t.ok(seen.every(header => header === 'Bearer right-token'))
})

t.test('a server of an older revision with a url may answer in any way that the transport has', async t => {
  const seen: Array<Readonly<Record<string, unknown>>> = []
  const open: ServerResponse[] = []
  let session = 'first'
  const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })
  interface Message {
    readonly id?: number
    readonly method: string
    readonly params?: { readonly name?: string, readonly _meta?: { readonly progressToken?: number } }
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method, params = {} } = JSON.parse(Buffer.concat(chunks).toString()) as Message
    const json = (result: object, headers = {}): unknown => {
      return response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', ...headers }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
    const event = (message: object): boolean => response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
    if (method === 'server/discover') return response.writeHead(400).end()
    if (method === 'initialize') return json({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }, { 'mcp-session-id': session })
    const { 'mcp-session-id': given, 'mcp-protocol-version': version } = request.headers
    seen.push({ method, given, version })
    if (given !== session) return response.writeHead(404).end()
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'tools/list') return json({ tools: ['json', 'list', 'event', 'progress', 'odd', 'html'].map(tool) })
    const result = { content: [{ type: 'text', text: params.name }] }
    if (params.name === 'json') return json(result)
    const bare = (text: string): unknown => response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    if (params.name === 'list') return bare(JSON.stringify([{ jsonrpc: '2.0', id, result }]))
    if (params.name === 'odd') return bare('{"status":"ok"}')
    if (params.name === 'html') return response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (params.name === 'progress') {
      event({ method: 'notifications/progress', params: { progressToken: params._meta!.progressToken, progress: 1, total: 2, message: 'half' } })
      return setImmediate(() => {
        event({ id, result })
        response.end()
      })
    }
    event({ id, result })
    return open.push(response)
  }
  const web = createServer((request, response) => void answer(request, response))
  await new Promise<void>(resolve => web.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => {
    web.closeAllConnections()
    web.close(resolve)
  }))
  const gateway = await hosted(t, { old: `url = "http://127.0.0.1:${(web.address() as AddressInfo).port}/mcp"\ntransport = "streamable-http"\ncall_timeout_s = 5\n` })
  await gateway.reaches('old', 'reachable')
  for (const name of ['json', 'list', 'event', 'progress']) t.equal(await gateway.text('old', name), name)
  const told: unknown[] = []
  const progress = (...of: unknown[]): void => { told.push(of) }
  const caller = { actor: 'mcp:x', agent: null, signal: new AbortController().signal, progress }
  t.match(await gateway.catalogue.call('old', 'progress', {}, caller), { kind: 'content' })
  t.strictSame(told, [['half', 1, 2]])
  t.match(failure(await gateway.call('old', 'html')), { message: /Unexpected content type: text\/html/ })
  t.equal(await gateway.text('old', 'json'), 'json', 'and goes on')
  t.equal(open.length, 1, 'a stream that its server leaves open after the answer')
  session = 'second'
  t.equal(await gateway.text('old', 'json'), 'json', 'a session that the server has lost is begun anew')
  t.strictSame(seen.at(-1), { method: 'tools/call', given: 'second', version: '2025-06-18' })
  t.not(failure(await gateway.call('old', 'odd')).code, 'mcp.call_timeout', 'what is no message is not waited for')
})

t.test('clients of either revision use an installed server at its address, and its gated calls wait in the inbox', async t => {
  const gateway = await hosted(t, { odd: record([], '[tools]\ngated = ["slow"]\n') }, { plugins: [mount, approvals, approvalRoutes] })
  await gateway.reaches('odd', 'running')
  for (const versionNegotiation of [{ mode: 'legacy' }, { mode: 'auto' }] as const) {
    const client = new Client({ name: 'tester', version: '1' }, { versionNegotiation })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/mcp/odd`)))
    const { tools } = await client.listTools()
    t.ok(tools.some(({ name }) => name === 'dotted_name'))
    t.match(await client.callTool({ name: 'echo', arguments: { text: 'front door' } }), { content: [{ type: 'text', text: 'front door' }] })
    t.match(await client.readResource({ uri: 'odd://one' }), { contents: [{ text: 'the first' }] })
    t.match(await client.getPrompt({ name: 'greet' }), { messages: [{ content: { text: 'Hello' } }] })
    t.match(await client.callTool({ name: 'crash' }), { isError: true, content: [{ text: /mcp\.server_ended/ }] })
    await gateway.desk.restart('odd', new AbortController().signal)
    t.match(JSON.stringify(await client.callTool({ name: 'slow' })), /pending_approval/)
    await client.close()
  }
  const { approvals: [waiting] } = await (await gateway.fetch('/api/agent/approvals')).json() as { approvals: { id: string, tool: string }[] }
  t.equal(waiting!.tool, 'slow')
  const approved = await gateway.fetch(`/api/agent/approvals/${waiting!.id}/approve`, { method: 'POST' })
  t.match(await approved.json(), { approval: { state: 'executed' } })
})

t.test('an agent with a file reads the resources and prompts of a server that its file lists, and of no other', async t => {
  const file = (name: string, server: string): string => `[agent]\nname = "${name}"\n[mcp.servers.${server}]\nbuiltin = true\n`
  const gateway = await hosted(t, { odd: record() }, {
    plugins: [mount], files: { 'etc/svc/agents/reader.toml': file('reader', 'odd'), 'etc/svc/agents/stranger.toml': file('stranger', 'admin') }
  })
  await gateway.reaches('odd', 'running')
  for (const mode of ['legacy', 'auto'] as const) {
    const [reader, stranger, anybody] = await Promise.all(['reader', 'Stranger', 'anybody'].map(async agent => {
      const client = new Client({ name: 'tester', version: '1' }, { versionNegotiation: { mode } })
      const requestInit = { headers: { 'x-svc-agent': agent } }
      await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/mcp/odd`), { requestInit }))
      t.teardown(() => client.close())
      return client
    })) as [Client, Client, Client]
    for (const client of [reader, anybody]) {
      t.match(await client.readResource({ uri: 'odd://one' }), { contents: [{ text: 'the first' }] })
      t.match(await client.getPrompt({ name: 'greet' }), { messages: [{ content: { text: 'Hello' } }] })
    }
    t.strictSame((await reader.listTools()).tools, [], 'its tools are listed one by one')
    t.strictSame((await stranger.listTools()).tools, [])
    const asks: ReadonlyArray<() => Promise<unknown>> = [
      () => stranger.listResources(), () => stranger.readResource({ uri: 'odd://one' }), () => stranger.listPrompts(), () => stranger.getPrompt({ name: 'greet' })
    ]
    for (const refused of asks) await t.rejects(refused(), /agent 'Stranger' may not use odd: agents\/stranger\.toml does not list it/)
  }
})

t.test('images run in the container engine, over their standard streams and over HTTP', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const script = readFileSync(oddServer, 'utf8').replace('process.argv.slice(2)', '[]')
  const web = `require('http').createServer((request, response) => {
    let body = ''
    request.on('data', chunk => { body += chunk }).on('end', () => {
      const message = request.method === 'POST' ? JSON.parse(body) : null
      if (message === null || message.id === undefined) return response.writeHead(message === null ? 405 : 202).end()
      const answers = {
        initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'web', version: '1' } },
        'tools/list': { tools: [{ name: 'where', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [{ type: 'text', text: 'in a container' }] }
      }
      const result = answers[message.method]
      const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer }))
    })
  }).listen(9000, '0.0.0.0')`
  const image = (transport: string, args: readonly string[], more: string): string =>
    `spec = "oci://${engine.nodeImage}"\ntransport = "${transport}"\nargs = ${JSON.stringify(args)}\n${more}`
  const gateway = await hosted(t, {
    box: image('stdio', ['node', '--input-type=module', '-e', script], '[secrets]\nTOKEN = "KEY"\n'),
    web: image('streamable-http', ['node', '-e', web], 'port = 9000\n')
  }, {
    env: { PATH: process.env.PATH, DOCKER_HOST: engine.host },
    files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n', 'etc/svc/api.env': 'KEY="s3cret"\n' }
  })
  await Promise.all([gateway.reaches('box', 'running'), gateway.reaches('web', 'running')])
  t.equal(await gateway.text('web', 'where'), 'in a container')
  t.equal(await gateway.text('box', 'echo', { text: 'boxed' }), 'boxed')
  t.match(JSON.parse(await gateway.text('box', 'surroundings')), { env: { TOKEN: 's3cret' } })
  t.match(failure(await gateway.call('box', 'crash')), { code: 'mcp.server_ended', message: /exit code 7[^]*flux capacitor/ })
  t.equal(await gateway.text('box', 'echo', { text: 'again' }), 'again')
})

function envTable (env: Readonly<Record<string, string>>): string {
  return `[env]\n${Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join('')}`
}

function lives (pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
}
