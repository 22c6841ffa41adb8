import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readableLogLine } from '../../cli/serve/log-line.js'
import { fakeApi, FakeProcess, run, spawnSvc, sse, type SpawnedSvc } from './support.js'

/** A gateway on a home of its own; gone when the test is over, whatever happened. */
async function serve (t: Test, home: string, args: readonly string[] = []): Promise<SpawnedSvc & { readonly url: string }> {
  const svc = spawnSvc(['serve', '--home', home, '--port', '0', '--ready-json', ...args])
  t.teardown(async () => {
    svc.child.kill('SIGKILL')
    await svc.finished
  })
  const ready = JSON.parse(await svc.firstLine) as { url: string, pid: number }
  t.equal(ready.pid, svc.child.pid)
  return { ...svc, url: ready.url }
}

t.test('a gateway from its start to its end, worked by the command line', async t => {
  const home = t.testdir({ foo: {
    'package.json': JSON.stringify({ name: 'svc-plugin-foo', version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' } }),
    'index.js': `
      import { definePlugin, defineRoute } from 'svc-gateway/plugin'
      const route = defineRoute({ method: 'GET', url: '/api/foo', summary: 'foo', handler: () => ({ foo: true }) })
      export default definePlugin({ name: 'foo', kind: 'routes', apiVersion: 1, register: ctx => ctx.addRoute(route) })`
  } })
  const { url, child, finished } = await serve(t, home)
  const svc = (...args: readonly string[]) => run([...args, '--url', url])
  const file = join(home, 'etc/svc/slots/coder.toml')
  t.match(await svc('status'), { code: 0, stdout: /^svc \d+\.\d+\.\d+ at http:\S+: ok\nruntime +\w+/ })
  t.match(await svc('slot', 'list'), { code: 0, stdout: /There are no slots/ })
  t.match(await svc('slot', 'create', 'coder', '-m', '/no/such/model.gguf', '--hardware', 'cpu'), {
    code: 0, stdout: /^Slot coder is created: llm, on cpu, by llm-server, .*context 4096\.\n/
  })
  t.match(readFileSync(file, 'utf8'), /context_size = 4096/, 'the default is written down')
  t.match(await svc('slot', 'create', 'coder', '-m', 'x'), { code: 1, stderr: /^Error: slot coder already exists.*\(slot\.already_exists\)\n {2}POST \S+ -> HTTP 409\n/ })
  t.match(await svc('slot', 'list'), { stdout: /^NAME +TYPE +STATE +DEVICE +PROVIDER +MODEL +PORT\ncoder +llm +offline +cpu / })
  t.match(await svc('slot', 'edit', 'coder', '--ctx-size', '2048', '--env', 'A=1', '--idle-timeout', '60'), { code: 0 })
  t.match(await svc('slot', 'edit', 'coder', '--env', 'B=2', '--extra-args', '--top-k 20'), { code: 0 })
  t.match(JSON.parse((await svc('slot', 'show', 'coder', '--json')).stdout), { name: 'coder', ctx_max: 2048, idle_timeout_s: 60, llamacpp_args: '--top-k 20' })
  t.match(readFileSync(file, 'utf8'), /A = "1"\n *B = "2"|A = "1", B = "2"/)
  t.match(await svc('slot', 'edit', 'coder', '--runtime', 'kubernetes', '--runtime-option', 'restricted=true'), { code: 0 })
  t.match(readFileSync(file, 'utf8'), /runtime_options.*restricted = true/s)
  t.match(await svc('slot', 'edit', 'coder', '--runtime', 'process'), { code: 1, stderr: /slot edit coder --runtime-option none/ })
  t.match(await svc('slot', 'edit', 'coder', '--runtime', 'process', '--runtime-option', 'none'), { code: 0 })
  t.notMatch(readFileSync(file, 'utf8'), /runtime_options|restricted/)
  t.match(await svc('slot', 'logs', 'coder'), { code: 0, stdout: /^$/, stderr: /offline/ })
  t.match(await svc('slot', 'load', 'coder'), { code: 1, stderr: /Error: .*coder/ })
  t.match(await svc('plugin', 'list', '--all'), { code: 0, stdout: /api-slots +active +routes +builtin/ })
  t.match(await svc('slot', 'delete', 'coder', '--force'), { code: 0, stdout: 'Slot coder is deleted.\n' })
  t.notOk(existsSync(file))
  t.match(await svc('slot', 'status', 'coder'), { code: 1, stderr: /\(slot\.not_found\)\n.*HTTP 404/ })

  await t.test('a plugin is added to it and removed from it', async t => {
    const plugin = (...args: readonly string[]) => run(['plugin', ...args, '--home', home], { env: process.env as Record<string, string> })
    t.match(await plugin('add', join(home, 'foo')), { code: 0, stderr: /^$/, stdout: /Plugin foo is active\.\n$/ })
    t.same(await (await fetch(`${url}/api/foo`)).json(), { foo: true })
    t.match(await plugin('list'), { code: 0, stdout: /\nfoo +active +routes +package:svc-plugin-foo@1\.0\.0/ })
    t.match(await plugin('remove', 'svc-plugin-foo'), { code: 0, stdout: /The gateway has unloaded it/ })
    t.equal((await fetch(`${url}/api/foo`)).status, 404)
  })

  const second = await run(['serve', '--home', home, '--port', '0'])
  t.match(second, { code: 1, stdout: /^$/, stderr: new RegExp(`another gateway \\(process ${child.pid}\\) at ${url}`) })
  child.kill('SIGTERM')
  const { code, stdout, stderr } = await finished
  t.equal(code, 0)
  t.equal(stdout.trim().split('\n').length, 1, '--ready-json prints one line')
  for (const line of stderr.trim().split('\n').filter(text => text !== '')) t.match(JSON.parse(line), { level: /^(debug|info|warn|error)$/ }, 'logs are JSON where no terminal is, with the names of their levels')
})

t.test('one in standby takes over from a gateway that is killed, tells an approved call that was cut off as such, and never runs it again', async t => {
  const home = t.testdir({ shop: {
    'package.json': JSON.stringify({ name: 'svc-plugin-shop', version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' } }),
    'index.js': `
      import { appendFileSync } from 'node:fs'
      import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
      const ran = ${JSON.stringify(join(t.testdirName, 'ran'))}
      export default definePlugin({ name: 'shop', kind: 'routes', apiVersion: 1, requires: { tools: core.tools }, register (ctx) {
        ctx.addRoute(defineRoute({ method: 'POST', url: '/api/shop/buy', summary: 'Buy', tool: { name: 'buy', server: 'shop', gated: true }, handler: () => {
          appendFileSync(ran, 'once ')
          return new Promise(() => {})
        } }))
        ctx.addRoute(defineRoute({ method: 'POST', url: '/api/shop/ask', summary: 'Ask', handler: ({ signal }) =>
          ctx.services.tools.call('shop', 'buy', {}, { actor: 'mcp:hermes', agent: 'hermes', signal }) }))
      } })`
  }, etc: { svc: { 'svc.toml': '[plugins]\nallow = ["svc-plugin-shop"]\n' } }, var: { lib: { svc: { plugins: { node_modules: {
    'svc-plugin-shop': t.fixture('symlink', join(t.testdirName, 'shop'))
  } } } } } })
  const first = await serve(t, home)
  const on = (url: string) => (...args: readonly string[]) => run(['agent', 'approvals', ...args, '--url', url])
  const ask = async (url: string): Promise<string> =>
    (await (await fetch(`${url}/api/shop/ask`, { method: 'POST' })).json() as { approvalId: string }).approvalId
  for (const probe of ['live', 'ready']) {
    const answer = await fetch(`${first.url}/health/${probe}`)
    t.match([answer.status, await answer.json()], [200, { status: 'ok' }], probe)
  }
  const next = spawnSvc(['serve', '--home', home, '--port', '0', '--ready-json', '--standby'])
  t.teardown(async () => {
    next.child.kill('SIGKILL')
    await next.finished
  })
  t.match(await next.says('waiting to take over'), `process ${first.child.pid}) on this home is running`)
  t.match(await run(['serve', '--home', home, '--port', '0']), { code: 1, stderr: /another gateway .* runs on/ }, 'without the flag it is refused as ever')
  const id = await ask(first.url)
  t.match(await on(first.url)('list'), { code: 0, stdout: new RegExp(`^ID +TOOL +AGENT .*\\n${id.slice(0, 8)} +shop/buy +hermes `) })
  const approving = on(first.url)('approve', id.slice(0, 8))
  // it is there a moment before anything is in it
  while (!statSync(join(home, 'ran'), { throwIfNoEntry: false })?.size) await new Promise(setImmediate)
  first.child.kill('SIGKILL')
  t.match(await approving, { code: 1 })
  await first.finished

  const { url } = JSON.parse(await next.firstLine) as { url: string }
  t.equal((await fetch(`${url}/health/ready`)).status, 200)
  const svc = on(url)
  t.match(await svc('list', '--state', 'all'), { code: 0, stdout: new RegExp(` failed\\n${id.slice(0, 8)}: the gateway stopped after it was approved: it may have run`) })
  t.match(await svc('approve', id), { code: 1, stderr: /is already failed; nothing was changed \(approvals\.already_resolved\)/ })
  t.equal(readFileSync(join(home, 'ran'), 'utf8'), 'once ')

  const watching = new FakeProcess()
  const watch = watching.run('agent', 'approvals', 'watch', '--url', url)
  const second = await ask(url)
  await watching.shows('stdout', `${second.slice(0, 8)} buy for hermes:`)
  t.match(watching.stderr.text, 'stop with Ctrl-C')
  t.match(await svc('approve', 'ffffffff'), { code: 1, stderr: /no pending call has an id that starts with ffffffff/ })
  t.match(await svc('list', '--state', 'some'), { code: 2 })
  t.match(await svc('deny', second.slice(0, 6), '--reason', 'not today'), { code: 0, stdout: 'buy for hermes is denied.\n' })
  await watching.shows('stdout', 'denied (not today)')
  watching.send('SIGINT')
  t.equal((await watch).code, 130)
  t.match(await svc('list'), { code: 0, stdout: 'No call is waiting for approval.\n' })
  t.match(JSON.parse((await svc('list', '--state', 'denied', '--json')).stdout), { approvals: [{ id: second, reason: 'not today', decided_by: 'cli' }] })
  next.child.kill('SIGINT')
  t.equal((await next.finished).code, 0)
})

t.test('serve: the ready block, --reload, and the end of standard input', async t => {
  const home = t.testdir()
  const svc = spawnSvc(['serve', '--home', home, '--port', '0', '--reload', '--stop-on-stdin-end'], { SVC_LOG_LEVEL: 'info' })
  t.teardown(() => svc.child.kill('SIGKILL'))
  t.match(await svc.firstLine, /^svc \d+\.\d+\.\d+ is ready at http:\/\/127\.0\.0\.1:\d+$/)
  mkdirSync(join(home, 'etc/svc/slots'), { recursive: true })
  writeFileSync(join(home, 'etc/svc/slots/late.toml'), 'device = "cpu"\n[model]\ndefault = "x"\n')
  await svc.says('the configuration was reloaded')
  svc.child.stdin!.end()
  const { code, stdout } = await svc.finished
  t.equal(code, 0)
  for (const part of ['engines ', join(home, 'etc/svc/svc.toml'), '/api/docs', 'There is no chat slot yet. Create one with `npx svc setup` or', 'Stopping', 'Stopped']) t.match(stdout, part)
})

t.test('serve: where the chat slot waits for its model, the ready block says how to download it', async t => {
  const home = t.testdir({ etc: { svc: { slots: {
    'agent.toml': 'device = "cpu"\nenabled = false\n[meta]\npending_model = "qwen3-8b"\npull_wanted = false\n'
  } } } })
  const svc = spawnSvc(['serve', '--home', home, '--port', '0', '--stop-on-stdin-end'])
  t.teardown(() => svc.child.kill('SIGKILL'))
  const [url] = /http:\S+/.exec(await svc.firstLine)!
  const status = (await run(['status', '--url', url])).stdout
  t.match(status, /agent +offline \(waits for its model\) +qwen3-8b/)
  t.match(await run(['slot', 'load', 'agent', '--url', url]), {
    code: 1, stderr: 'Error: slot \'agent\' waits for its model; download it with `svc model pull qwen3-8b`'
  })
  t.match(await run(['chat', 'hi', '--url', url]), { code: 1, stderr: 'slot \'agent\' waits for its model; download it with `svc model pull qwen3-8b` (model.not_loaded)' })
  svc.child.stdin!.end()
  const { stdout } = await svc.finished
  t.match(stdout, `Slot 'agent' waits for its model. Download it with \`npx svc model pull qwen3-8b --url ${url}\`.`)
  t.notMatch(stdout, 'There is no chat slot yet')
})

t.test('serve: what keeps it from starting exits 1', async t => {
  const home = t.testdir({ etc: { svc: { 'svc.toml': '[server]\nport = "x"\nhots = 1\n' } } })
  const broken = await spawnSvc(['serve', '--home', home]).finished
  t.match(broken, { code: 1, stdout: /^$/, stderr: /svc\.toml: server\.port [^]*svc\.toml: server\.hots / })
  t.equal(broken.stderr.split('server.port').length, 2, 'each problem once')
  // Node's recursive mkdir never comes back from there
  if (process.platform === 'linux') t.match(await run(['serve', '--home', '/proc/svc-none']), { code: 1, stderr: /\/proc\/svc-none\/[^]*cannot be written: a folder on its path is not there and cannot be made/ })
  const taken = await fakeApi({})
  t.teardown(() => taken.close())
  const { port } = new URL(taken.url)
  t.match(await run(['serve', '--home', t.testdir(), '--port', port]), { code: 1, stderr: new RegExp(`127\\.0\\.0\\.1:${port} is in use`) })
})

t.test('the first signal lets running answers go on, the second does not', async t => {
  let say: (text: string) => void = () => {}
  const upstream = await fakeApi({
    'GET /v1/models': { object: 'list', data: [{ id: 'endless', object: 'model' }] },
    'POST /v1/chat/completions': (_request, response) => {
      say = text => response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: `${text}\n` }, finish_reason: null }] })}\n\n`)
      sse(response)
      say('before')
    }
  })
  t.teardown(() => upstream.close())
  const { url, child, finished } = await serve(t, t.testdir({ etc: { svc: {
    'svc.toml': '[server]\nshutdown_grace_s = 600\n',
    'upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.url}/v1"\nauth_style = "none"\n`
  } } }))
  const chat = new FakeProcess()
  const chatting = chat.run('chat', 'hi', '--model', 'endless', '--url', url)
  await chat.shows('stdout', 'before')
  child.kill('SIGTERM')
  // refused connections show that the signal has arrived
  while (await fetch(`${url}/api/status`).then(({ ok }) => ok, () => false));
  say('after')
  await chat.shows('stdout', 'after')
  child.kill('SIGINT')
  t.match(await chatting, { code: 1, stdout: 'before\nafter\n', stderr: /\(gateway\.stopping\)/ })
  t.equal((await finished).code, 0)
})

t.test('demo streams one answer and leaves nothing behind', async t => {
  const home = t.testdir()
  const demo = spawnSvc(['demo', '--home', home])
  t.teardown(() => demo.child.kill('SIGKILL'))
  const { code, stdout, stderr } = await demo.finished
  t.equal(code, 0, stderr)
  t.match(stdout, /^Hello! I am the demo model of svc, .*\n$/)
  t.match(stderr, /tokens\/s[^]*Done\./)
  t.notOk(existsSync(join(home, 'var/lib/svc/gateway.lock')), 'the gateway has left its home')
})

t.test('a demo that cannot start says why', async t => {
  const home = t.testdir({ etc: { svc: { 'svc.toml': 'what?' } } })
  const { code, stderr, stdout } = await spawnSvc(['demo', '--home', home]).finished
  t.match({ code, stdout }, { code: 1, stdout: /^$/ })
  t.match(stderr, /Error: the gateway did not start \(exit code 1\)\nLast lines of the gateway:\n[^]*svc\.toml/)
})

t.test('log lines are formatted for people, with fields and stack traces', async t => {
  const line = JSON.stringify({ level: 'warn', time: '2026-01-02T03:04:05.000Z', msg: 'hm\u001b', slot: 'agent', n: 1, err: { stack: 'Error: x\n  at y' } })
  t.match(readableLogLine(line, { coloured: false }), /^\d\d:04:05 warn {2}hm {2}slot=agent n=1\nError: x\n {2}at y$/)
  t.match(readableLogLine(line, { coloured: true }), '\u001b[33mwarn')
  const state = { slot: 'agent', from: 'warming', to: 'ready', model_id: 'svc-demo', took_s: 3.1 }
  const told = JSON.stringify({ level: 'info', time: 0, msg: 'agent ready in 3.1 s (svc-demo)', ...state })
  t.match(readableLogLine(told, { coloured: false }), / info {2}agent ready in 3\.1 s \(svc-demo\)$/, 'a state is told once')
  t.equal(readableLogLine('plain text\n', { coloured: false }), 'plain text')
  const long = JSON.stringify({ level: 'warn', time: 0, msg: `slots/coder.toml: ${'words '.repeat(11).trim()}`, code: 'model.not_found', line: 7 })
  const folded = readableLogLine(long, { coloured: false, width: 80 }).split('\n')
  t.ok(folded.length === 2 && folded.every(text => text.length <= 80), folded.join('|'))
  t.match(folded[1], /^ {15}words.* {2}code=model\.not_found line=7$/, 'below the message, and the fields beside it')
})
