import { svcSchema } from '../../../cli/offline/svc-schema.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseToml } from '../../../kernel/config/toml/toml-file.js'
import { acquireLock } from '../../../kernel/state/file-lock.js'
import { Cli } from '../../../cli/cli.js'
import { editorOf } from '../../../cli/offline/config/editor.js'
import { migrateSvcToml } from '../../../cli/offline/config/migrate.js'
import { configTemplate } from '../../../cli/offline/config/template.js'
import { fakeApi, FakeProcess, refuse, run, spawnSvc } from '../support.js'

const SVC = `# of the house
[server]
port = 9000 # not 8080

[plugins.config.cloud]
api_key = "sk-0123456789abcdef0123"
url = "https://me:pass@example.org/v1"
# old_token = "swordfish"
`

const home = (t: Test, files: Readonly<Record<string, string>> = {}): string => {
  const svc = Object.fromEntries(Object.entries(files).filter(([name]) => !name.startsWith('slots/')))
  const slots = Object.fromEntries(Object.entries(files).flatMap(([name, text]) => name.startsWith('slots/') ? [[name.slice(6), text]] : []))
  return t.testdir({ etc: { svc: { ...svc, slots } }, tmp: {} })
}

t.test('show prints the file with its comments and without its secrets', async t => {
  const { code, stdout } = await run(['config', 'show', '--home', home(t, { 'svc.toml': SVC })])
  t.equal(code, 0)
  t.match(stdout, /^# of the house\n\[server\]\nport = 9000 # not 8080\n/)
  t.match(stdout, 'api_key = "***"')
  t.match(stdout, '# old_token = "***"')
  for (const secret of ['sk-0123', 'swordfish', 'me:pass']) t.notMatch(stdout, secret)
  const json = await run(['config', 'show', '--json', '--home', home(t, { 'svc.toml': SVC })])
  t.match(JSON.parse(json.stdout), { server: { port: 9000 }, plugins: { config: { cloud: { api_key: '***' } } } })
})

t.test('show of a file that is not there is no failure, of one that is broken it is', async t => {
  const empty = t.testdir({})
  t.match(await run(['config', 'show', '--home', empty]), { code: 0, stdout: /^$/, stderr: /There is no .*svc\.toml/ })
  t.match(await run(['config', 'show', '--json', '--home', empty]), { code: 0, stdout: '{}\n' })
  t.same(readdirSync(empty), [], 'looking makes nothing')
  const broken = await run(['config', 'show', '--home', home(t, { 'svc.toml': 'api_key = "sk-abc\n' })])
  t.match(broken, { code: 1, stdout: /^$/, stderr: /is not valid TOML.*line 1/ })
  t.notMatch(broken.stderr, 'sk-abc')
})

t.test('validate tells all that is wrong in all files, one line for each', async t => {
  const good = home(t, { 'svc.toml': SVC, 'slots/agent.toml': 'device = "cpu"\n' })
  const fine = await run(['config', 'validate', '--home', good])
  t.equal(fine.code, 0, fine.stderr)
  t.match(fine.stdout, /^! svc\.toml\n {4}warning: plugins\.config\.cloud: no such plugin.*\[plugin\.not_found\]\n- providers\.toml: absent\n- upstreams\.toml: absent\n/)
  t.match(fine.stdout, '✓ slots/agent.toml')
  const bad = home(t, {
    'svc.toml': '[slots]\nport_range_end = 70000\nidle_timeout = 3\n',
    'upstreams.toml': '[[upstream]]\nname = "x"\n',
    'profiles.toml': 'nonsense',
    'manifest.json': '{',
    'slots/agent.toml': 'device = "toaster"\nworkers = 0\n',
    'slots/Bad Name.toml': ''
  })
  const { code, stdout, stderr } = await run(['config', 'validate', '--home', bad])
  t.equal(code, 1)
  for (const line of [
    /✗ svc\.toml\n {4}slots\.port_range_end .*\(line 2\)/, /slots\.idle_timeout .*did you mean idle_timeout_s\? \(line 3\)/,
    /✗ upstreams\.toml\n {4}upstream\.0\.url is required/, /✗ profiles\.toml\n {4}is not valid TOML/, /✗ manifest\.json\n {4}is not valid JSON/,
    /✗ slots\/agent\.toml\n {4}device must be one of/, / {4}workers /, /✗ slots\/Bad Name\.toml\n/
  ]) t.match(stdout, line)
  t.match(stderr, '6 files are not valid in ')
  const json = await run(['config', 'validate', '--json', '--home', bad])
  t.equal(json.code, 1)
  t.match(JSON.parse(json.stdout), { ok: false, files: [{ file: 'svc.toml', status: 'broken', problems: [{ path: 'slots.port_range_end', line: 2 }, {}] }, { status: 'absent' }] })
})

t.test('the first file has every key of the schema with its default, in comments', async t => {
  const text = configTemplate({ about: 'Settings.', schema: svcSchema, table: null, meaning: false })
  t.same(svcSchema.parse(parseToml(text)), svcSchema.parse({}), 'it says nothing')
  const all = text.replace(/^# (\w+ = )/gm, '$1')
  t.same(svcSchema.parse(parseToml(all)), svcSchema.parse({}), 'and the defaults are the defaults')
  t.match(all, /\[slots\]\n[^[]*\nport_range_end = 8099\n/)
  t.ok(text.split('\n').every(line => line.length <= 130))
})

t.test('the editor: EDITOR, then VISUAL, then vi', t => {
  t.equal(editorOf({ EDITOR: 'nano', VISUAL: 'code --wait' }), 'nano')
  t.equal(editorOf({ EDITOR: ' ', VISUAL: 'code --wait' }), 'code --wait')
  t.equal(editorOf({}), 'vi')
  t.end()
})

/** An editor that writes what it is told; `$0` is the file. */
const editor = (script: string): string => `sh -c '${script}'`

t.test('edit replaces the file when the copy is valid', async t => {
  const folder = home(t, { 'svc.toml': SVC })
  const file = join(folder, 'etc/svc/svc.toml')
  const env = { TMPDIR: join(folder, 'tmp'), EDITOR: editor('sed -i s/9000/9001/ "$0"') }
  const { code, stdout, stderr } = await run(['config', 'edit', '--home', folder], { env })
  t.equal(code, 0, stderr)
  t.match(stdout, /svc\.toml is saved\./)
  t.equal(readFileSync(file, 'utf8'), SVC.replace('9000', '9001'))
  t.same(readdirSync(join(folder, 'tmp')), [], 'no copy stays')
  t.match(await run(['config', 'edit', '--home', folder], { env: { ...env, EDITOR: 'true' } }), { code: 0, stdout: 'Nothing was changed.\n' })
  t.same(readdirSync(join(folder, 'etc/svc')).sort(), ['slots', 'svc.toml'], 'no lock and no temporary file stays')
})

t.test('edit begins with all settings in comments where there is no file', async t => {
  const folder = t.testdir({ tmp: {} })
  const env = { TMPDIR: join(folder, 'tmp'), EDITOR: editor('sed -i "s/^# port = 8080/port = 8090/" "$0"') }
  t.equal((await run(['config', 'edit', '--home', folder], { env })).code, 0)
  t.equal(svcSchema.parse(parseToml(readFileSync(join(folder, 'etc/svc/svc.toml'), 'utf8'))).server.port, 8090)
})

t.test('edit keeps a copy that is not valid, and the file as it was', async t => {
  const folder = home(t, { 'svc.toml': SVC })
  const env = { TMPDIR: join(folder, 'tmp'), EDITOR: editor('echo "[serve]" > "$0"') }
  const { code, stderr } = await run(['config', 'edit', '--home', folder], { env })
  t.equal(code, 1)
  t.match(stderr, /svc\.toml is not valid:\n {2}serve is not a known key; did you mean server\? \(line 1\)\n/)
  const copy = /Your edit is in (\S+)/.exec(stderr)![1]!
  t.equal(readFileSync(copy, 'utf8'), '[serve]\n')
  t.equal(statSync(copy).mode & 0o777, 0o600, 'it may hold secrets')
  t.equal(readFileSync(join(folder, 'etc/svc/svc.toml'), 'utf8'), SVC)
})

t.test('edit asks again while somebody can answer', async t => {
  const folder = home(t, { 'svc.toml': SVC })
  const script = 'if grep -q serve] "$0"; then echo "[server]" > "$0"; else echo "[serve]" > "$0"; fi'
  const process = new FakeProcess({ tty: true, columns: 80, env: { TMPDIR: join(folder, 'tmp'), EDITOR: editor(script) } })
  const finished = process.run('config', 'edit', '--home', folder)
  await process.shows('stderr', 'Edit it again?')
  process.stdin.write('y\n')
  t.equal((await finished).code, 0, process.stderr.text)
  t.equal(readFileSync(join(folder, 'etc/svc/svc.toml'), 'utf8'), '[server]\n')
})

t.test('edit loses nothing to a file that changed meanwhile, a lock, or an editor that fails', async t => {
  const folder = home(t, { 'svc.toml': SVC })
  const file = join(folder, 'etc/svc/svc.toml')
  const edit = (script: string) => run(['config', 'edit', '--home', folder], { env: { TMPDIR: join(folder, 'tmp'), EDITOR: script } })
  const other = await edit(editor(`echo "[server]" > "$0"; echo "# theirs" > "${file}"`))
  t.match(other, { code: 1, stderr: /Your edit is in [^]*was changed in the meantime/ })
  t.equal(readFileSync(file, 'utf8'), '# theirs\n')
  t.match(await edit('no-such-editor'), { code: 1, stderr: /the editor failed \(no-such-editor: exit code 127\)/ })
  const kept = await edit(editor('echo "[server]" > "$0"; exit 3'))
  t.match(kept, { code: 1, stderr: /Your edit is in [^]*exit code 3/ })
  const lock = await acquireLock(join(folder, 'etc/svc/.config.lock'), { text: 'a gateway' })
  t.teardown(() => lock.release())
  const locked = await edit(editor('echo "[server]" > "$0"'))
  t.match(locked, { code: 1, stderr: /Your edit is in [^]*\.config\.lock is held by process \d+ \(a gateway\).*config\.locked/ })
  t.equal(readFileSync(file, 'utf8'), '# theirs\n')
})

t.test('SIGTERM ends the editor and keeps what was written', async t => {
  const folder = home(t, { 'svc.toml': SVC })
  const script = 'echo "[server]" > "$0"; touch "$0.open"; exec sleep 60'
  const { child, finished } = spawnSvc(['config', 'edit', '--home', folder], { TMPDIR: join(folder, 'tmp'), EDITOR: editor(script) })
  t.teardown(() => { child.kill('SIGKILL') })
  const copies = (): string[] => readdirSync(join(folder, 'tmp'))
  const isOpen = (): boolean => copies().some(name => existsSync(join(folder, 'tmp', name, 'svc.toml.open')))
  while (!isOpen()) await new Promise(resolve => { setImmediate(resolve) })
  child.kill('SIGTERM')
  t.match(await finished, { code: 143, stderr: /Your edit is in / })
  t.equal(readFileSync(join(folder, 'tmp', copies()[0]!, 'svc.toml'), 'utf8'), '[server]\n')
})

t.test('migrate brings an older file forward and keeps it beside', async t => {
  const steps = [{ version: 2, up: (config: Record<string, unknown>) => ({ ...config, server: { port: 9002 } }) }]
  const folder = home(t, { 'svc.toml': '# mine\n[server]\nport = 9000\n' })
  const file = join(folder, 'etc/svc/svc.toml')
  const process = new FakeProcess()
  await migrateSvcToml(new Cli(process, () => 'svc'), resolvePaths({}, { home: folder }), steps)
  t.match(process.stdout.text, /is migrated from version 1 to 2\. The old file is .*svc\.toml\.v1\.bak/)
  t.equal(readFileSync(`${file}.v1.bak`, 'utf8'), '# mine\n[server]\nport = 9000\n')
  t.match(parseToml(readFileSync(file, 'utf8')), { meta: { schema_version: 2 }, server: { port: 9002 } })
  t.match(readFileSync(file, 'utf8'), '# mine')
  const again = new FakeProcess()
  await migrateSvcToml(new Cli(again, () => 'svc'), resolvePaths({}, { home: folder }), steps)
  t.match(again.stdout.text, 'has version 2, which is the latest')
})

t.test('migrate leaves alone what is latest, absent, newer or broken', async t => {
  const of = (text: string | null) => run(['config', 'migrate', '--home', home(t, text === null ? {} : { 'svc.toml': text })])
  t.match(await of(null), { code: 0, stdout: /There is no .*nothing to migrate/ })
  t.match(await of('[meta]\nschema_version = 1\n'), { code: 0, stdout: /has version 1, which is the latest/ })
  t.match(await of('[meta]\nschema_version = 9\n'), { code: 1, stderr: /meta\.schema_version of \S+ is 9, and this release knows versions up to 1/ })
  t.match(await of('[meta'), { code: 1, stderr: /is not valid TOML/ })
})

t.test('reload asks the gateway, and fails when files are broken', async t => {
  const plan = { live: ['slots.max_slots'], slot_restart: [], gateway_restart: ['server.port'], unknown: [], slots: ['agent'] }
  const good = await fakeApi({ 'POST /api/settings/reload': { server: {}, _svc: { revision: 3, diagnostics: [], apply_plan: plan } } })
  t.teardown(() => good.close())
  const { code, stdout } = await run(['config', 'reload', '--url', good.url])
  t.equal(code, 0)
  t.match(stdout, /has read its configuration again\.\nin force +slots\.max_slots\nnext start of svc +server\.port\nSlot agent runs with other settings: svc slot restart agent\n/)
  const diagnostics = [{ file: 'slots/far.toml', path: 'runtime_options.zome', message: 'is not a known key' }]
  const odd = await fakeApi({ 'POST /api/settings/reload': { _svc: { diagnostics: [], apply_plan: plan } }, 'GET /api/status': { diagnostics } })
  t.teardown(() => odd.close())
  t.match(await run(['config', 'reload', '--url', odd.url]), {
    code: 0, stdout: /\nProblems in the configuration:\n {2}slots\/far\.toml: runtime_options\.zome is not a known key\n/
  }, 'what does not fit between the files is told as well')
  const bad = await fakeApi({
    'POST /api/settings/reload': { _svc: { diagnostics: [{ file: 'slots/tts.toml', path: 'device', message: 'must be one of cpu' }], apply_plan: plan } }
  })
  t.teardown(() => bad.close())
  t.match(await run(['config', 'reload', '--json', '--url', bad.url]), { code: 1, stdout: /"_svc"/, stderr: /slots\/tts\.toml: device must be one of cpu/ })
})

t.test('hardware prints the probe, or says that there is none', async t => {
  const fake = await fakeApi({ 'GET /api/hardware': { hostname: 'box', gpus: [] } })
  t.teardown(() => fake.close())
  t.same(JSON.parse((await run(['config', 'hardware', '--url', fake.url])).stdout), { hostname: 'box', gpus: [] })
  const none = await fakeApi({})
  t.teardown(() => none.close())
  t.match(await run(['config', 'hardware', '--url', none.url]), { code: 1, stderr: /does not report its hardware/ })
  const other = await fakeApi({ 'GET /api/hardware': (_request, response) => refuse(response, 503, 'plugin.unavailable', 'it fell') })
  t.teardown(() => other.close())
  t.match(await run(['config', 'hardware', '--url', other.url]), { code: 1, stderr: /it fell/ })
})
