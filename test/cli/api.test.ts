import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { ApiClient } from '../../cli/client/client.js'
import { textWidth } from '../../cli/terminal/text-width.js'
import { fakeApi, FakeProcess, refuse, run, slotRecord, sse, type Answer, type FakeApi } from './support.js'

async function api (t: Test, answers: Readonly<Record<string, Answer>>): Promise<FakeApi> {
  const fake = await fakeApi(answers)
  t.teardown(() => fake.close())
  return fake
}

const upstream = { name: 'cloud', kind: 'remote', state: 'serving', status: 'serving', model: 'gpt', backend: 'remote', provider: 'remote-upstream' }

const status = {
  name: 'svc', version: '1.2.3', status: 'ok', hardware: null, upstreams: [{ name: 'cloud', kind: 'remote', url: 'https://x' }],
  runtime: { driver: 'process', version: '20', endpoint: null, reason: 'no container engine answers' },
  diagnostics: [{ file: 'slots/tts.toml', path: 'device', message: 'must be one of cpu, npu' }]
}

const plugins = [
  { name: 'llm-server', kind: 'provider', state: 'active', phase: 'report', code: null, message: null, origin: 'builtin', providers: ['llm-server'] },
  {
    name: 'foo', kind: 'provider', state: 'failed', phase: 'import', code: 'plugin.import_failed', message: 'it threw', origin: 'package:svc-plugin-foo@1.0.0',
    providers: []
  }
]

t.test('status shows the gateway, its slots, and all that is wrong', async t => {
  const slots = [
    slotRecord('agent', { state: 'ready', model_id: 'qwen3-4b' }),
    slotRecord('coder', { state: 'error', metadata: { message: '', config_error: 'it crashed', failure: { code: 'slot.load_failed', message: 'it crashed', attempts: 2 } } }),
    upstream
  ]
  const { url } = await api(t, { 'GET /api/status': status, 'GET /api/slots': slots, 'GET /api/plugins': { plugins } })
  const { code, stdout } = await run(['status', '--url', url])
  t.equal(code, 0)
  for (const part of [
    `svc 1.2.3 at ${url}: ok`, 'process 20', 'no container engine answers', '2, 1 ready, 1 in error', '1 active, 1 not',
    'NAME   STATE  MODEL     PORT', 'agent  ready  qwen3-4b  8081', 'coder: it crashed (slot.load_failed)',
    'svc-plugin-foo failed: plugin.import_failed at import: it threw', 'slots/tts.toml: device must be one of cpu, npu'
  ]) t.match(stdout, part)
  t.equal(stdout.split('coder: it crashed').length, 2, 'one cause is told once')
  t.same(JSON.parse((await run(['status', '--json', '--url', url])).stdout), status, '--json is the answer of the API')
})

t.test('at a terminal of 80 columns words stay whole, and status tells slots from upstreams', async t => {
  const reason = 'no container engine answers, so engines run as child processes: the Docker socket does not exist (/var/run/docker.sock)'
  const { url } = await api(t, {
    'GET /api/status': { ...status, runtime: { driver: 'process', version: '20', endpoint: null, reason } },
    'GET /api/slots': [slotRecord('agent', { state: 'ready' }), upstream],
    'GET /api/plugins': { plugins }
  })
  const { stdout } = await run(['status', '--url', url], { tty: true, columns: 80, env: { NO_COLOR: '1' } })
  const lines = stdout.split('\n')
  t.ok(lines.every(line => textWidth(line) <= 80), stdout)
  t.match(stdout.replace(/\n +/g, ' '), reason)
  t.match(stdout, /\nNAME .*\nagent +ready.*\n\nUPSTREAM +STATE +ADDRESS\ncloud +serving +https:\/\/x\n/)
})

t.test('status goes on without a group of routes that is down', async t => {
  const { url } = await api(t, {
    'GET /api/status': { ...status, diagnostics: [] },
    'GET /api/slots': (_request, response) => refuse(response, 503, 'plugin.unavailable', 'plugin slots is not active'),
    'GET /api/plugins': { plugins }
  })
  const { code, stdout } = await run(['status', '--url', url])
  t.equal(code, 0)
  t.match(stdout, 'plugin slots is not active (plugin.unavailable)')
})

t.test('tables fit 80 columns by default, and the terminal where one is', async t => {
  const slots = [
    slotRecord('agent', { model_default: 'a-model-with-a-name-that-is-much-longer-than-anybody-would-want-to-read-Q4_K_M' }),
    slotRecord('a-name-of-thirty-two-characters-', { state: 'serving', model_id: '日本語のモデル'.repeat(6), enabled: false }), upstream
  ]
  const { url } = await api(t, { 'GET /api/slots': slots })
  const lines = (await run(['slot', 'list', '--url', url])).stdout.trimEnd().split('\n')
  t.equal(lines.length, 4)
  for (const line of lines) t.ok(textWidth(line) <= 80, `${textWidth(line)}: ${line}`)
  t.match(lines[2], 'a-name-of-thirty-two-characters-', 'names are never cut')
  const wide = await run(['slot', 'list', '--url', url], { tty: true, columns: 200 })
  t.match(wide.stdout, 'much-longer-than-anybody-would-want-to-read-Q4_K_M')
  t.match(wide.stdout, '\u001b[32mserving', 'states have colours on a terminal')
  const plain = await run(['slot', 'list', '--url', url], { tty: true, columns: 60, env: { NO_COLOR: '1' } })
  t.notMatch(plain.stdout, '\u001b')
  for (const line of plain.stdout.trimEnd().split('\n')) t.ok(textWidth(line) <= 60)
  const raw = (await run(['slot', 'list', '--json', '--url', url])).stdout
  t.equal(raw, `${JSON.stringify(slots, null, 2)}\n`)
})

t.test('refusals begin with the reason; fields, the engine\'s last words and the request stand behind it', async t => {
  const { url } = await api(t, {
    'GET /api/slots/nope': (_request, response) => refuse(response, 404, 'slot.not_found', 'no such slot: \'nope\''),
    'POST /api/slots': (_request, response) => refuse(response, 400, 'validation.invalid', 'slot x is not valid', {
      fields: [{ path: 'model.context_size', message: 'must be a whole number' }]
    }),
    'GET /api/slots/told': (_request, response) => refuse(response, 400, 'validation.invalid', 'port must be a whole number', {
      fields: [{ path: 'port', message: 'must be a whole number' }, { path: 'ctx', message: 'must be a whole number' }]
    }),
    'POST /api/slots/agent/load': (_request, response) => refuse(response, 502, 'slot.load_failed', 'it ended with code 1', { log_tail: ['out of memory'] }),
    'GET /api/slots/html': (_request, response) => { response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>\nmore') },
    'GET /api/slots/odd': (_request, response) => { response.writeHead(200).end('{"hello":1}') },
    'GET /api/slots/cut': (_request, response) => { response.writeHead(200, { 'content-length': '100' }).write('{'); response.destroy() }
  })
  const cases: ReadonlyArray<readonly [string, RegExp]> = [
    ['slot show nope', /^Error: no such slot: 'nope' \(slot\.not_found\)\n {2}GET http:\S+\/api\/slots\/nope -> HTTP 404\n$/],
    ['slot show nope --verbose', /^GET http:\S+\/api\/slots\/nope -> HTTP 404\nError: no such slot: 'nope' \(slot\.not_found\)\n$/],
    ['slot create x -m y', /^Error: slot x is not valid \(validation\.invalid\)\n {2}model\.context_size: must be a whole number\n {2}POST \S+ -> HTTP 400\n$/],
    ['slot show told', /^Error: port must be a whole number \(validation\.invalid\)\n {2}ctx: must be a whole number\n {2}GET /],
    ['slot load agent', /it ended with code 1 \(slot\.load_failed\)\nlast lines of the engine:\n {2}out of memory\n/],
    ['slot status html', /Error: <h1>Bad Gateway<\/h1>\n.*HTTP 502\n$/],
    ['slot status odd', /unexpected answer: name: [^]*--url or SVC_API_URL/],
    ['slot status cut', /the connection was lost/]
  ]
  for (const [line, expected] of cases) {
    const { code, stderr, stdout } = await run([...line.split(' '), '--url', url])
    t.equal(code, 1, line)
    t.match(stderr, expected, line)
    t.equal(stdout, '', line)
  }
})

t.test('a server that is no gateway is said to be none, instead of the first line of its page', async t => {
  const page = (status: number, body: string) => (_request: unknown, response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': 'text/html' }).end(body)
  }
  for (const [status, body] of [[404, '<!DOCTYPE HTML>\n<html>...'], [404, 'not me'], [405, ''], [501, '<html></html>']] as const) {
    const { url } = await api(t, { 'GET /api/status': page(status, body), 'POST /v1/chat/completions': page(status, 'my engine has no chat') })
    t.strictSame(await run(['status', '--url', url]), {
      code: 1, stdout: '', stderr: `Error: what answers at ${url} is not an svc gateway\nName the address of the gateway with --url or SVC_API_URL.\n` +
        `  GET ${url}/api/status -> HTTP ${status}\n`
    })
    t.match(await run(['chat', 'hi', '--url', url]), { code: 1, stderr: /^Error: my engine has no chat\n/ }, 'an engine behind a gateway has its own words')
  }
})

t.test('a gateway that does not answer in time is told, and the request is gone from the wire', async t => {
  const fake = await api(t, { 'GET /api/slots': () => {} })
  const client = new ApiClient(fake.url, new AbortController().signal)
  await t.rejects(client.raw({ path: '/api/slots', timeoutMs: 1000 }), { message: /GET .*: no answer within 1 s/, exitCode: 1 })
  await fake.seen[0]!.left
})

t.test('Ctrl-C cancels the request on the wire and exits 130', async t => {
  const fake = await api(t, { 'POST /api/slots/agent/load': () => {} })
  const process = new FakeProcess()
  const finished = process.run('slot', 'load', 'agent', '--url', fake.url)
  const request = await fake.request('POST /api/slots/agent/load')
  process.send('SIGINT')
  const { code, stderr } = await finished
  t.equal(code, 130)
  t.match(stderr, 'The gateway continues the load')
  await request.left
  process.send('SIGINT')
  t.same(process.exits, [], 'no handler stays behind')
})

t.test('create sends what was typed, a context size in any case, and leaves the device to the gateway', async t => {
  const fake = await api(t, { 'POST /api/slots': slotRecord('coder', { fit_warning: 'it may not fit', findings: [{ path: 'model', message: 'not in the registry' }] }), 'GET /api/plugins': { plugins } })
  const bodyOf = async (...args: readonly string[]): Promise<unknown> => {
    const { code, stderr } = await run(['slot', 'create', 'coder', '--url', fake.url, ...args])
    t.equal(code, 0, stderr)
    return fake.seen.at(-1)!.body
  }
  t.same(await bodyOf('-m', 'qwen3-4b'), { name: 'coder', type: 'llm', model: { default: 'qwen3-4b', context_size: 4096 }, meta: { context_for: 'qwen3-4b' } })
  t.same(await bodyOf('--model', 'm', '--hardware', 'rocm', '--port', '8090', '--ctx-size', '16384', '--provider', 'llm-server'), {
    name: 'coder', type: 'llm', provider: 'llm-server', device: 'gpu-rocm', port: 8090, model: { default: 'm', context_size: 16384 }
  })
  t.same(await bodyOf('--model', 'sd', '-t', 'image'), { name: 'coder', type: 'image', model: { default: 'sd' } })
  const { stdout, stderr } = await run(['slot', 'create', 'coder', '-m', 'x', '--url', fake.url])
  t.match(stdout, 'Slot coder is created: llm, on gpu-vulkan, by llm-server, profile vulkan, port 8081, context 4096.')
  t.match(stderr, 'Warning: model: not in the registry\nWarning: it may not fit')
  const typo = await run(['slot', 'create', 'coder', '-m', 'x', '--provider', 'lm-server', '--url', fake.url])
  t.match(typo, { code: 2, stderr: /no active plugin has a provider named 'lm-server'\nThere are: llm-server\./ })
})

t.test('create wants a model, but not for an engine that brings one', async t => {
  const fake = await api(t, {
    'POST /api/slots': slotRecord('tts'),
    'GET /api/meta/enums': {
      providers: [{ name: 'tts-cpu', needs_model: false }, { name: 'imagegen', needs_model: true }],
      default_providers: { tts: { any: 'tts-cpu' }, image: { any: 'imagegen' }, embedding: { any: 'llm-server' } }
    }
  })
  const create = (...args: readonly string[]) => run(['slot', 'create', 'tts', '--url', fake.url, ...args])
  for (const args of [['--type', 'tts', '--provider', 'tts-cpu'], ['--type', 'tts']]) {
    t.equal((await create(...args)).code, 0)
    t.match(fake.seen.at(-1)!.body, { name: 'tts', type: 'tts', model: undefined })
  }
  for (const [args, needs] of [[['--type', 'image'], 'imagegen'], [['--type', 'embedding'], 'llm-server'], [['--type', 'tts', '--provider', 'stt-engine'], 'stt-engine']] as const) {
    t.match(await create(...args), { code: 2, stderr: new RegExp(`required option '-m, --model <model>' not specified\nSlots of ${needs} need a model`) })
  }
})

t.test('create and edit set options of an engine', async t => {
  const fake = await api(t, {
    'POST /api/slots': slotRecord('tts'), 'PUT /api/slots/tts/config': slotRecord('tts'), 'GET /api/slots/tts/config': {},
    'GET /api/meta/enums': { providers: [{ name: 'tts-cpu', needs_model: false }], default_providers: { tts: { any: 'tts-cpu' } } }
  })
  const svc = (...args: readonly string[]) => run(['slot', ...args, '--url', fake.url])
  const created = await svc('create', 'tts', '--type', 'tts', '--option', 'speed=1.5', '--option', 'warm=true', '--option', 'voices=["a","b"]', '--option', 'lang=en')
  t.equal(created.code, 0, created.stderr)
  t.match(fake.seen.find(({ line }) => line === 'POST /api/slots')!.body, { options: { speed: 1.5, warm: true, voices: ['a', 'b'], lang: 'en' } })
  t.equal((await svc('edit', 'tts', '--option', 'speed=2', '--option', 'lang')).code, 0)
  t.match(fake.seen.at(-1)!.body, { options: { speed: 2, lang: null } })
  t.match(await svc('edit', 'tts', '--option', '=2'), { code: 2, stderr: /It must be key=value/ })
})

t.test('edit sends only what changes and keeps variables that it does not name', async t => {
  const fake = await api(t, {
    'GET /api/slots/agent/config': { env: { OLD: '1', GONE: '2' }, server: { extra_args: '--x' } },
    'PUT /api/slots/agent/config': slotRecord('agent', { state: 'ready', config_drift: true })
  })
  const { stdout } = await run(['slot', 'edit', 'agent', '--url', fake.url, '--ctx-size', '8192', '--env', 'NEW=a=b', '--env', 'GONE',
    '--profile', 'none', '--image', 'ghcr.io/a/b:c', '--idle-timeout', '0', '--disable', '--extra-args', '', '--hardware', 'cpu'])
  t.same(fake.seen.at(-1)!.body, {
    device: 'cpu', profile: null, idle_timeout_s: 0, image: 'ghcr.io/a/b:c', enabled: false,
    model: { context_size: 8192 }, server: { extra_args: null, env: { OLD: '1', NEW: 'a=b' } }
  })
  t.match(stdout, 'svc slot restart agent')
  await run(['slot', 'edit', 'agent', '--url', fake.url, '--port', 'auto'])
  t.same(fake.seen.at(-1)!.body, { port: null }, 'the port is taken out of the file')
  t.match(await run(['slot', 'edit', 'agent', '--url', fake.url, '--port', 'any']), { code: 2, stderr: /It must be a number/ })
  await run(['slot', 'edit', 'agent', '--url', fake.url, '-m', 'other'])
  t.same(fake.seen.at(-1)!.body, { model: { default: 'other' } })
})

t.test('load tells what came of it; a slot that ends offline is a failure', async t => {
  const fake = await api(t, {
    'GET /api/slots/told': (_request, response) => refuse(response, 400, 'validation.invalid', 'port must be a whole number', {
      fields: [{ path: 'port', message: 'must be a whole number' }, { path: 'ctx', message: 'must be a whole number' }]
    }),
    'POST /api/slots/agent/load': slotRecord('agent', { state: 'ready', model_id: 'qwen3-4b' }),
    'POST /api/slots/empty/load': slotRecord('empty', { state: 'offline', metadata: { message: 'pick a model' } }),
    'POST /api/slots/agent/unload': slotRecord('agent'),
    'POST /api/slots/broken/load': slotRecord('broken', { state: 'error', metadata: { message: 'its file cannot be read' } }),
    'GET /api/slots/broken': slotRecord('broken', { state: 'error', metadata: { message: 'its file cannot be read' } })
  })
  t.match(await run(['slot', 'load', 'agent', '-m', 'x', '--url', fake.url]), { code: 0, stdout: 'Slot agent is ready: qwen3-4b on port 8081.\n' })
  t.same(fake.seen.find(({ line }) => line.startsWith('POST'))?.body, { model_id: 'x' })
  t.match(await run(['slot', 'load', 'empty', '--url', fake.url]), { code: 1, stderr: /slot 'empty' is offline: pick a model/ })
  t.match(await run(['slot', 'load', 'broken', '--url', fake.url]), { code: 1, stderr: /slot 'broken' is in error: its file cannot be read/ })
  t.match(await run(['slot', 'status', 'broken', '--url', fake.url]), { code: 0, stdout: /^broken is in error: its file cannot be read\n/ })
  t.match(await run(['slot', 'unload', 'agent', '--url', fake.url]), { code: 0, stdout: 'Slot agent is offline.\n' })
})

t.test('whoever watches sees what a slot goes through', async t => {
  let load: () => void = () => {}
  const fake = await api(t, {
    'POST /api/slots/agent/restart': (_request, response) => { load = () => { response.end(JSON.stringify(slotRecord('agent', { state: 'ready' }))) } },
    'GET /api/slots/agent/state/stream': (_request, response) => {
      sse(response).write('event: state\ndata: {"name":"agent","state":"warming","message":"loading the model"}\n\n')
    }
  })
  const process = new FakeProcess({ tty: true, columns: 80 })
  const finished = process.run('slot', 'restart', 'agent', '--url', fake.url)
  await process.shows('stderr', 'agent: warming, loading the model')
  load()
  t.match(await finished, { code: 0, stdout: /Slot agent is .*ready/ })
  t.ok(process.stderr.text.endsWith('\r\u001b[2K'), 'the line is gone in the end')
  await fake.seen.find(({ line }) => line.includes('stream'))!.left
})

t.test('swap keeps the model: by the installer\'s route, else by the configuration', async t => {
  const swapped = slotRecord('agent', { state: 'ready', model_id: 'new' })
  const old = await api(t, { 'POST /api/slots/agent/swap': swapped, 'PUT /api/slots/agent/config': swapped })
  t.equal((await run(['slot', 'swap', 'agent', '-m', 'new', '--url', old.url])).code, 0)
  t.same(old.seen.map(({ line, body }) => [line, body]), [
    ['POST /api/slots/agent/swap', { model_id: 'new' }],
    ['PUT /api/install/slots/agent/model', { model_id: 'new' }],
    ['PUT /api/slots/agent/config', { model: { default: 'new' } }]
  ])
  await run(['slot', 'swap', 'agent', '-m', 'new', '--no-persist', '--url', old.url])
  t.equal(old.seen.length, 4)
  const whole = await api(t, {
    'POST /api/slots/agent/swap': swapped,
    'PUT /api/install/slots/agent/model': (_request, response) => refuse(response, 404, 'install.slot_toml_not_found', 'no file')
  })
  t.match(await run(['slot', 'swap', 'agent', '-m', 'new', '--url', whole.url]), { code: 1, stderr: /no file/ })
})

t.test('delete asks whoever can answer', async t => {
  const fake = await api(t, { 'DELETE /api/slots/agent': { name: 'agent', deleted: true, forced: false } })
  const ask = async (answer: string): Promise<number> => {
    const process = new FakeProcess({ tty: true })
    const finished = process.run('slot', 'delete', 'agent', '--url', fake.url)
    await process.shows('stderr', 'Delete slot agent')
    process.stdin.write(answer)
    return (await finished).code
  }
  t.equal(await ask('n\n'), 1)
  t.equal(await ask('\u0003'), 130)
  t.equal(fake.seen.length, 0)
  t.equal(await ask('y\n'), 0)
  t.equal((await run(['slot', 'delete', 'agent', '--url', fake.url])).code, 0, 'a script has answered already')
  t.equal((await run(['slot', 'delete', 'agent', '-f', '--url', fake.url], { tty: true })).code, 0)
  t.same(fake.seen.map(({ line }) => line), ['DELETE /api/slots/agent', 'DELETE /api/slots/agent', 'DELETE /api/slots/agent?force=true'])
})

t.test('logs prints the tail, and follows until the stream ends', async t => {
  const { url } = await api(t, {
    'GET /api/slots/agent/logs?lines=5': { name: 'agent', logs: ['one', 'two\u001b[2J'] },
    'GET /api/slots/cold/logs?lines=200': { name: 'cold', logs: [], hint: 'slot cold is offline' },
    'GET /api/slots/agent/logs/stream?backfill=200': (_request, response) => {
      sse(response).end(': hi\n\ndata: "one"\n\nevent: degraded\ndata: {"message":"no journal"}\n\ndata: "größe"\n\n')
    }
  })
  t.match(await run(['slot', 'logs', 'agent', '-n', '5', '--url', url]), { code: 0, stdout: 'one\ntwo[2J\n' })
  t.match(await run(['slot', 'logs', 'cold', '--url', url]), { code: 0, stdout: /^$/, stderr: 'slot cold is offline\n' })
  t.match(await run(['slot', 'logs', 'agent', '--follow', '--url', url]), { code: 0, stdout: 'one\ngröße\n', stderr: 'no journal\n' })
})

t.test('ps shows what runs and what waits, and cancel ends one', async t => {
  const request = {
    id: 'req-hT3k9QaLm2b0-1f', model: 'openrouter/a-vendor/a-model-with-a-long-name-that-goes-on', surface: 'chat', slot: null, upstream: 'openrouter',
    phase: 'streaming', reason: null, started_at: '2026-01-01T00:00:00.000Z', age_ms: 425_000, bytes_in: 20_500_000, bytes_out: 3_500, tokens: 12
  }
  const waiting = { ...request, id: 'req-2', model: 'agent', agent: 'pi', slot: 'agent', upstream: null, phase: 'loading', reason: 'slot \'agent\' is warming\u001b[2J', age_ms: 400, bytes_in: 99, tokens: 0 }
  const fake = await api(t, { 'GET /api/requests': { requests: [request, waiting] }, 'POST /api/requests/req-2/cancel': { id: 'req-2', cancelled: 1 } })
  const wide = (await run(['ps', '--url', fake.url], { tty: true, columns: 160, env: { NO_COLOR: '1' } })).stdout
  t.match(wide, /^ID +MODEL +AGENT +WHERE +PHASE +AGE +IN +OUT +TOKENS\n/)
  t.match(wide, /req-hT3k9QaLm2b0-1f +openrouter\/a-vendor\/a-model-with-a-long-name-that-goes-on +- +openrouter +streaming +7m05s +20M +3\.4K +12\n/)
  t.match(wide, /req-2 +agent +pi +agent +loading +0\.4s +99B +3\.4K +0\nreq-2: slot 'agent' is warming\[2J\n$/)
  const narrow = (await run(['ps', '--url', fake.url])).stdout.trimEnd().split('\n')
  for (const line of narrow) t.ok(textWidth(line) <= 80, line)
  t.match(narrow[1], /^req-hT3k9QaLm2b0-1f .*streaming/, 'an id is never cut')
  t.match((await run(['cancel', 'req-2', '--url', fake.url])).stdout, 'Request req-2 is cancelled.')
  const gone = await run(['cancel', 'req-3', '--url', fake.url])
  t.equal(gone.code, 1)
  const idle = await api(t, { 'GET /api/requests': { requests: [] } })
  t.equal((await run(['ps', '--url', idle.url])).stdout, 'No requests are in flight.\n')
  t.same(JSON.parse((await run(['ps', '--json', '--url', idle.url])).stdout), { requests: [] })
})

const machine = {
  hostname: 'halo', distro: 'Fedora Linux 43', kernel: '6.17.8', platform_label: 'AMD Strix Halo', cpu_name: 'AMD RYZEN AI MAX+ 395',
  cpu_cores: 16, cpu_threads: 32, ram_total_mb: 128_000, ram_available_mb: 64_000, is_uma: true,
  unified_memory_mb: 112_640, cgroup_max_mb: null, disk_free_mb: 1024,
  npu_name: 'RyzenAI-npu5',
  gpus: [{
    name: 'Radeon 8060S', vendor: 'amd', vram_mb: 512, driver: 'amdgpu', pci_id: '0000:c1:00.0', compute_capable: true, vulkan_capable: true
  }]
}

t.test('probe shows what the machine is', async t => {
  const { url, seen } = await api(t, { 'POST /api/hardware/probe': machine })
  const { code, stdout } = await run(['probe', '--url', url])
  t.equal(code, 0)
  for (const part of [
    'halo, Fedora Linux 43, 6.17.8', 'AMD Strix Halo', '16 cores, 32 threads', '125.0 GiB, 62.5 GiB available', '110.0 GiB', 'RyzenAI-npu5',
    'Radeon 8060S  0.5 GiB  rocm, vulkan  amdgpu  0000:c1:00.0'
  ]) t.match(stdout, part)
  t.notMatch(stdout, 'limited to')
  t.match((await run(['probe', '--url', (await api(t, { 'POST /api/hardware/probe': {} })).url])).stdout, /npu +none\ngpu +none\n/)
  t.same(JSON.parse((await run(['probe', '--json', '--url', url])).stdout), machine)
  t.equal(seen.length, 2)
})
