import t, { type Test } from 'tap'
import { progressLine, progressText } from '../../cli/pull/progress-line.js'
import { pullSnapshotSchema } from '../../cli/pull/snapshot.js'
import { durationText, sizeText } from '../../cli/terminal/size-text.js'
import { textWidth } from '../../cli/terminal/text-width.js'
import { ggufFile, number } from '../kernel/models/gguf-file.js'
import { pullGateway } from '../plugins/services/pull/support.js'
import { fakeApi, FakeProcess, refuse, run, type Answer, type FakeApi } from './support.js'

async function api (t: Test, answers: Readonly<Record<string, Answer>>): Promise<FakeApi> {
  const fake = await fakeApi(answers)
  t.teardown(() => fake.close())
  return fake
}

const row = {
  id: 'qwen3-4b', name: 'Qwen3 4B', path: '/m/qwen.gguf', type: 'chat', owned_by: 'local', installed: true, size_bytes: 2_497_280_256, quant: 'Q4_K_M',
  license: 'apache-2.0', capabilities: ['chat'], backends: ['vulkan', 'cpu'], tags: ['curated'], hf_repo: 'Qwen/Qwen3-4B-GGUF', hf_filename: 'q.gguf',
  mmproj: null, defaults: { context_size: 8192, profile: 'vulkan' }, metadata: { context_length: 40_960, architecture: 'qwen3', parameter_count: 4_022_468_096 }
}
const far = { id: 'gpt-x', name: 'gpt-x', type: 'chat', upstream: 'cloud', owned_by: 'cloud', installed: false }

t.test('list prints a table within 80 columns, and show prints one model', async t => {
  const list = { models: [row, far], count: 2, filtered_aliases: 0 }
  const { url } = await api(t, { 'GET /api/models': list, 'GET /api/models/qwen3-4b': row, 'GET /api/models/org%2Fx': { ...row, id: 'org/x' } })
  const { stdout, code } = await run(['model', 'list', '--url', url])
  t.equal(code, 0)
  const lines = stdout.trimEnd().split('\n')
  t.match(lines[0], /^ID +NAME +TYPE +QUANT +UPSTREAM +SIZE$/)
  t.match(lines[1], /^qwen3-4b +Qwen3 4B +chat +Q4_K_M +local +2\.5 GB$/)
  t.match(lines[2], /^gpt-x .* cloud +-$/)
  for (const line of lines) t.ok(textWidth(line) <= 80)
  t.same(JSON.parse((await run(['model', 'list', '--json', '--url', url])).stdout), list)
  const shown = (await run(['model', 'show', 'qwen3-4b', '--url', url])).stdout
  for (const part of [/^id +qwen3-4b/m, /^size +2\.5 GB/m, /^context +40,960 tokens/m, /^default profile +vulkan/m, /^repository +Qwen/m]) t.match(shown, part)
  t.match((await run(['model', 'show', 'org/x', '--url', url])).stdout, 'org/x', 'a slash in an id')
  t.same(JSON.parse((await run(['model', 'show', 'qwen3-4b', '--json', '--url', url])).stdout), row)
  const { url: empty } = await api(t, { 'GET /api/models': { models: [] } })
  t.match((await run(['model', 'list', '--url', empty])).stdout, 'svc model catalog')
})

t.test('register, scan, assign and rm send what the command line says', async t => {
  const fake = await api(t, {
    'POST /api/models': row,
    'POST /api/models/scan': { added: ['a', 'b'], skipped: [{ path: '/m/x', reason: 'already_registered' }, { path: '/m/y', reason: 'invalid_model: broken' }], scanned_roots: ['/m'] },
    'GET /api/models/qwen3-4b': row,
    'GET /api/models/gpt-x': far,
    'PUT /api/slots/agent/config': {},
    'DELETE /api/models/qwen3-4b': { id: 'qwen3-4b', deleted: true, affected_slots: ['agent'] }
  })
  const svc = (...args: readonly string[]) => run([...args, '--url', fake.url], { cwd: '/work' })
  t.match(await svc('model', 'register', 'mine', '-p', 'sub/m.gguf', '--license', 'mit'), { code: 0, stdout: /qwen3-4b is registered: chat, Q4_K_M/ })
  t.same(fake.seen.at(-1)?.body, { id: 'mine', path: '/work/sub/m.gguf', license: 'mit' }, 'a path is taken from where one stands')
  await svc('model', 'register', 'named', '--path', '/m/n.gguf', '--name', 'My model')
  t.same(fake.seen.at(-1)?.body, { id: 'named', path: '/m/n.gguf', name: 'My model' })
  t.match(await svc('model', 'scan'), { code: 0, stdout: '2 new in /m: a, b\n', stderr: 'left out: /m/y: invalid_model: broken\n' })
  t.match(await svc('model', 'assign', 'qwen3-4b', '-s', 'agent'), { code: 0, stdout: /svc slot restart agent/ })
  t.same(fake.seen.at(-1)?.body, { model: { default: 'qwen3-4b' } })
  t.match(await svc('model', 'assign', 'gpt-x', '-s', 'agent'), { code: 1, stderr: /a model of cloud/ })
  t.match(await svc('model', 'rm', 'qwen3-4b', '-f'), { code: 0, stdout: /its file is still on disk[^]*Slots without a model now: agent/ })
  for (const key of ['n\n', '\u0004']) {
    const asking = new FakeProcess({ tty: true })
    const answer = asking.run('model', 'rm', 'qwen3-4b', '--url', fake.url)
    await asking.shows('stderr', '[y/N]')
    asking.stdin.write(key)
    t.match(await answer, { code: 1, stderr: /\nError: nothing was changed/ }, `the answer ${JSON.stringify(key)}`)
  }
  t.equal(fake.seen.filter(({ line }) => line.startsWith('DELETE')).length, 1)
})

t.test('pull against a real gateway and hub: lines for a log, a bar for people, JSON for scripts', async t => {
  const gateway = await pullGateway(t)
  const { hub, baseUrl: url } = gateway
  hub.add('org/m', { files: { 'm-Q8_0.gguf': ggufFile({ weights: 600_000, keys: { 'llama.context_length': number(4096) } }) } })
  hub.pace = { chunk: 32_768, ms: 30 }
  const first = await run(['model', 'pull', 'mine', '--repo', 'org/m', '--url', url])
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, /^mine is complete: \/\S+\/mine\/m-Q8_0\.gguf, 600 KB, sha256 [0-9a-f]{12}\n$/)
  t.match(first.stderr, /^Pulling: m-Q8_0\.gguf of org\/m, 600 KB\nmine: \d+ %, /)
  t.notMatch(first.stderr, '\u001b', 'no bar in a log')
  t.ok(first.stderr.split('\n').length < 16)
  hub.pace = { chunk: 32_768, ms: 60 }
  const process = new FakeProcess({ tty: true, columns: 80 })
  const watched = await process.run('model', 'pull', 'org/m:Q8_0', '--url', url)
  t.equal(watched.code, 0)
  t.match(watched.stderr, /\r\u001b\[2Korg\/m:Q8_0 {2}\[=*>? *\] +\d+ % /)
  for (const line of watched.stderr.split('\r\u001b[2K').slice(1)) t.ok(textWidth(line.replace(/\n[^]*/, '')) < 80, line)
  const json = JSON.parse((await run(['model', 'pull', 'mine', '--json', '--url', url])).stdout) as object
  t.match(json, { model_id: 'mine', state: 'completed' })
  t.match(await run(['model', 'pull', 'other', '--repo', 'org/m', '-d', '--url', url]), { code: 0, stdout: /svc model pull other follows it/ })
  t.match(await run(['model', 'pull', 'other', '--cancel', '--url', url]), { code: 0, stdout: /is cancelled|had already finished/ })
})

t.test('a pull that fails or is cancelled says why and how to resume it', async t => {
  const gateway = await pullGateway(t, { config: { max_tries: 1 } })
  const { hub, baseUrl: url } = gateway
  hub.add('org/m', { files: { 'm.gguf': ggufFile({ weights: 900_000 }) } })
  hub.add('org/gated', { gated: 'auto', files: { 'm.gguf': ggufFile() } })
  const pull = (...args: readonly string[]) => run(['model', 'pull', ...args, '--url', url])
  t.match(await pull('nobody'), { code: 1, stderr: /^Error: no source is known for 'nobody': name a repository with --repo and --file, or pick a model of `svc model catalog` \(model\.invalid_source/ })
  t.match(await pull('org/gated'), { code: 1, stderr: /accept its licence at .*HF_TOKEN.*hf\.gated/ })
  hub.fail('cdn', 'm.gguf', { kind: 'corrupt' })
  t.match(await pull('org/m'), { code: 1, stdout: /^$/, stderr: /the pull of 'org\/m' failed: .*pull\.checksum_mismatch\)\nThe partial download is kept for a day/ })

  hub.fail('cdn', 'm.gguf', { kind: 'stall', after: 300_000 })
  const cancelled = new FakeProcess()
  const ended = cancelled.run('model', 'pull', 'org/m', '--url', url)
  await hub.reaches('m.gguf', 1)
  await gateway.received('org/m', 300_000)
  await run(['model', 'pull', 'org/m', '--cancel', '--url', url])
  t.match(await ended, { code: 1, stderr: /was cancelled/ })
})

t.test('Ctrl-C leaves, and the gateway goes on', async t => {
  const gateway = await pullGateway(t)
  const { hub, baseUrl: url } = gateway
  hub.add('org/m', { files: { 'm.gguf': ggufFile({ weights: 900_000 }) } })
  hub.fail('cdn', 'm.gguf', { kind: 'stall', after: 300_000 })
  const process = new FakeProcess()
  const left = process.run('model', 'pull', 'org/m', '--url', url)
  await hub.reaches('m.gguf', 1)
  await gateway.received('org/m', 300_000)
  process.send('SIGINT')
  t.match(await left, { code: 130, stdout: /^$/, stderr: /The gateway continues the pull: `svc model pull org\/m` follows it, with --cancel it ends\.\n$/ })
  t.match(await gateway.over('org/m'), { state: 'completed' })
})

t.test('a gateway that is restarted meanwhile is waited for', async t => {
  let asked = 0
  const snapshot = { id: 'x', model_id: 'm', state: 'running', bytes_downloaded: 10, bytes_total: 100 }
  const fake = await api(t, {
    'POST /api/models/m/pull': snapshot,
    'GET /api/models/m/pull/status': (_request, response) => {
      asked++
      if (asked === 2) return void response.destroy()
      if (asked === 3) return refuse(response, 503, 'gateway.stopping', 'the gateway is shutting down')
      response.writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(asked < 4 ? snapshot : { ...snapshot, state: 'completed', bytes_downloaded: 100, path: '/m' }))
    }
  })
  t.match(await run(['model', 'pull', 'm', '--url', fake.url]), { code: 0, stdout: /m is complete/ })
  t.ok(asked >= 4)
})

t.test('progress is printed as text that fits the terminal', async t => {
  const snapshot = (over: object) => pullSnapshotSchema.parse({
    id: 'x', model_id: 'qwen3-4b', state: 'running', bytes_downloaded: 1_000_000_000, bytes_total: 2_500_000_000, speed_bps: 54_000_000, eta_s: 28, ...over
  })
  t.equal(progressLine(snapshot({}), 79), 'qwen3-4b  [=======>            ]   40 %  1.0 GB of 2.5 GB  54.0 MB/s  28s to go')
  t.equal(progressLine(snapshot({ state: 'queued', bytes_downloaded: 0, speed_bps: 0, eta_s: null }), 60), 'qwen3-4b    0 %  0 B of 2.5 GB  waiting for its turn')
  t.match(progressLine(snapshot({ message: 'waiting 3 s: \u001b[31mbusy' }), 79), /waiting 3 s: {2}\[31mbusy/, 'nothing steers the terminal')
  for (const width of [20, 40, 79, 200]) t.ok(textWidth(progressLine(snapshot({ model_id: 'x'.repeat(100) }), width)) <= width, `${width}`)
  t.equal(progressText(snapshot({})), 'qwen3-4b: 40 %, 1.0 GB of 2.5 GB, 54.0 MB/s, 28s to go')
  t.equal(progressText(snapshot({ bytes_total: 0, bytes_downloaded: 0, message: 'checking' })), 'qwen3-4b: 0 %, 0 B of 0 B, checking')
  t.same([0, 999, 1000, 999_949, 999_960, 2_497_280_256, 123_456_789_012, 5e15].map(sizeText), ['0 B', '999 B', '1.0 KB', '1000 KB', '1.0 MB', '2.5 GB', '123 GB', '5000 TB'])
  t.same([0, 59.6, 61, 3599, 7260].map(durationText), ['0s', '1m00s', '1m01s', '59m59s', '2h01m'])
})

t.test('catalog lists what can be pulled, with size and fit for this machine', async t => {
  const gateway = await pullGateway(t, { token: 'x' })
  const svc = (...args: readonly string[]) => run(['model', 'catalog', ...args, '--url', gateway.baseUrl])
  const { stdout, stderr, code } = await svc()
  t.equal(code, 0, stderr)
  const lines = stdout.trimEnd().split('\n')
  t.match(lines[0], /^ID +FOR +SIZE +FIT/)
  t.match(stdout, /^qwen3-0\.6b +chat +640 MB +(fits|tight|no engine|unknown)/m)
  t.notMatch(stdout, /vae/i, 'parts of a bundle are not offered')
  t.match(stderr, 'svc model search <words>')
  for (const line of lines) t.ok(textWidth(line) <= 80, line)
  const embed = (await svc('--for', 'embed')).stdout
  t.match(embed, 'nomic-embed-text')
  t.notMatch(embed, 'qwen3-4b')
  const { json } = await gateway.call('GET', '/api/models/catalogue')
  t.same(JSON.parse((await svc('--json')).stdout), json)
})

t.test('catalog judges the fit by the device that would run it', async t => {
  const entry = (id: string, status: string, more: object = {}): object =>
    ({ id, capability: 'chat', description: 'x', size_gb: 2.5, license: 'mit', installed: false, bundle_only: false, fit: { status, device: 'cpu', reasons: [] }, ...more })
  const pullable = [
    entry('a', 'fits'), entry('b', 'spills'), entry('c', 'too_large'), entry('d', 'unsupported'), entry('e', 'fits', { installed: true }), entry('f', 'fits', { bundle_only: true })
  ]
  const { url } = await api(t, { 'GET /api/models/catalogue': { pullable } })
  const { stdout, stderr } = await run(['model', 'catalog', '--url', url])
  for (const line of [/^a .* fits /m, /^b .* partly in RAM /m, /^c .* too large /m, /^d .* no engine /m, /^e .* installed /m]) t.match(stdout, line)
  t.notMatch(stdout, /^f /m)
  t.match(stderr, 'svc model pull a\n')
})

t.test('search asks the hub, files lists one repository, and a hub that is down is said to be down', async t => {
  const gateway = await pullGateway(t)
  const { hub, baseUrl: url } = gateway
  hub.add('org/good-GGUF', { files: { 'good-Q4_K_M.gguf': ggufFile({ weights: 600_000 }), 'good-Q8_0.gguf': ggufFile({ weights: 900_000 }) } })
  hub.add('org/gated-GGUF', { gated: 'auto', files: { 'g.gguf': ggufFile() } })
  const svc = (...args: readonly string[]) => run(['model', ...args, '--url', url])
  const found = await svc('search', 'org/g')
  t.equal(found.code, 0, found.stderr)
  t.match(found.stdout, /^REPOSITORY +.*ACCESS\n/)
  t.match(found.stdout, /^org\/good-GGUF .* open$/m)
  t.match(found.stdout, /^org\/gated-GGUF .* gated$/m)
  for (const line of found.stdout.split('\n')) t.ok(textWidth(line) <= 80, line)
  t.match(found.stderr, /svc model files org\/\S+\n.*svc model pull org\/\S+:Q4_K_M/)
  t.match(JSON.parse((await svc('search', 'org/g', '--json')).stdout), { results: [{}, {}], problem: null })
  t.match(await svc('search', 'no', 'such', 'thing'), { code: 0, stdout: /Nothing on the hub matches "no such thing"/ })
  const files = await svc('files', 'org/good-GGUF')
  t.match(files.stdout, /^FILE +QUANT +SIZE\ngood-Q4_K_M\.gguf +Q4_K_M +600 KB\ngood-Q8_0\.gguf +Q8_0 +900 KB\n$/)
  t.match(files.stderr, 'svc model pull org/good-GGUF:Q4_K_M')
  t.match(await svc('files', 'org/nothing'), { code: 1, stderr: /there is no org\/nothing/ })
  hub.fail('hub', '/api/models', { kind: 'status', status: 503 })
  t.match(await svc('search', 'gone'), { code: 1, stdout: /^$/, stderr: /^Error: the search failed: .*overloaded \(503\).*\n.*svc model catalog/ })
})
