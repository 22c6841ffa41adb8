import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { Finding } from '../../../kernel/contract/index.js'
import { createTestGateway, FakeEngineRuntime, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { run, spawnSvc } from '../support.js'

const GGUF = 'var/lib/svc/models/known.gguf'

function homeOf (t: Test, files: Readonly<Record<string, string>>): string {
  const home = t.testdir({})
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  mkdirSync(dirname(join(home, GGUF)), { recursive: true })
  writeFileSync(join(home, GGUF), 'GGUF')
  mkdirSync(join(home, 'var/lib/svc/registry'), { recursive: true })
  writeFileSync(join(home, 'var/lib/svc/registry/registry.toml'), `[models.known]\npath = "${join(home, GGUF)}"\n[models.lost]\npath = "/lost.gguf"\n`)
  return home
}

const CPU = 'device = "cpu"\n'

/** Every file is well by itself. */
const tangled = {
  'etc/svc/svc.toml': `[slots]
autostart = false
[plugins]
allow = ["svc-plugin-gone"]
[plugins.config.imagegen]
silence_timeout_s = "soon"
[plugins.config.llm-sever]
prefer = "path"
`,
  'etc/svc/engines/broken.toml': 'name = "broken"\n',
  'etc/svc/slots/engineless.toml': `${CPU}provider = "nobody"\n`,
  'etc/svc/slots/modelless.toml': `${CPU}model = "unheard"\n`,
  'etc/svc/slots/sleeping.toml': `${CPU}model = "unheard"\nenabled = false\n`,
  'etc/svc/slots/lost.toml': `${CPU}model = "lost"\n`,
  'etc/svc/slots/profileless.toml': `${CPU}profile = "absent"\n`,
  'etc/svc/slots/misfit.toml': `${CPU}profile = "rocm"\n`,
  'etc/svc/slots/one.toml': `${CPU}port = 8085\ndefault = true\n`,
  'etc/svc/slots/two.toml': `${CPU}port = 8085\ndefault = true\n`,
  'etc/svc/slots/templated.toml': `${CPU}model = "known"\nchat_template = "nix"\n`,
  'etc/svc/slots/pictured.toml': `${CPU}image = "blub"\n`,
  'etc/svc/slots/well.toml': `${CPU}model = "known"\nchat_template = "chatml"\n`,
  'etc/svc/profiles.toml': '[profile.mine]\nimage = "vulkan"\ndevice_class = "cpu"\nflags = "--threads 2 --port 9999"\n',
  'etc/svc/slots/greedy.toml': `${CPU}model = "known"\nprofile = "mine"\n`,
  'etc/svc/upstreams.toml': `[[upstream]]
name = "cloud"
url = "http://127.0.0.1:9/v1"
fallback = ["one", "known", "svc/agent", "claud", "zz-unheard-of", "off/x", "cloud", "cloud/big"]
[[upstream]]
name = "off"
url = "http://127.0.0.1:9/v1"
enabled = false
[[upstream]]
name = "well"
url = "http://127.0.0.1:9/v1"
[[upstream]]
name = "local"
kind = "slot"
slot_name = "nowhere"
url = "http://127.0.0.1:9/v1"
`,
  'etc/svc/providers.toml': '[[provider]]\ncatalog_id = "opnai"\n[[provider]]\ncatalog_id = "own"\nbase_url = "http://127.0.0.1:9/v1"\nname = "cloud"\n',
  'etc/svc/capabilities.toml': `schema_version = 2
[selections.embed.embed]
provider = "nobody"
model = "unheard"
enabled = true
[selections.embed.rerank]
model = "unheard"
[selections.voice.tts]
provider = "tts-cpu"
device = "gpu-rocm"
`
}

const expected: ReadonlyArray<readonly [file: string, path: string, code: string, severity: string, message: RegExp]> = [
  ['svc.toml', 'plugins.allow', 'plugin.import_failed', 'error', /'svc-plugin-gone'.*not installed; run `svc plugin add svc-plugin-gone`/],
  ['engines/broken.toml', '', 'plugin.manifest_invalid', 'error', /surfaces/],
  ['svc.toml', 'plugins.config.imagegen.silence_timeout_s', 'plugin.config_invalid', 'error', /number/],
  ['svc.toml', 'plugins.config.llm-sever', 'plugin.not_found', 'warning', /did you mean llm-server\?/],
  ['slots/engineless.toml', 'provider', 'slot.provider_gone', 'error', /no such provider: 'nobody'; there are: .*llm-server/],
  ['slots/modelless.toml', 'model.default', 'model.not_found', 'error', /'unheard' of slot 'modelless' is not in the registry; register it/],
  ['slots/sleeping.toml', 'model.default', 'model.not_found', 'warning', /'unheard'/],
  ['slots/lost.toml', 'model.default', 'slot.load_failed', 'error', /the file of model 'lost' cannot be read at \/lost\.gguf/],
  ['slots/profileless.toml', 'profile', 'profiles.not_found', 'error', /no such profile: 'absent'/],
  ['slots/misfit.toml', 'profile', 'slot.config_error', 'error', /profile 'rocm' does not suit slot 'misfit'/],
  ['slots/one.toml', 'port', 'slot.port_conflict', 'error', /port 8085 belongs to slot 'two'/],
  ['slots/two.toml', 'port', 'slot.port_conflict', 'error', /port 8085 belongs to slot 'one'/],
  ['slots/one.toml', 'default', 'slot.config_error', 'error', /'two' is already the default llm slot/],
  ['slots/two.toml', 'default', 'slot.config_error', 'error', /'one' is already the default llm slot/],
  ['slots/templated.toml', 'chat_template', 'slot.load_failed', 'error', /the chat template cannot be read at .*nix\.jinja/],
  ['slots/pictured.toml', 'image', 'slot.config_error', 'error', /unknown image 'blub'/],
  ['profiles.toml', 'profile.mine.flags', 'slot.managed_arg_denied', 'error', /profile 'mine': --port is set by the gateway/],
  ['slots/greedy.toml', 'profile', 'slot.managed_arg_denied', 'error', /profile 'mine': --port is set by the gateway/],
  ['upstreams.toml', 'upstream.0.fallback', 'upstream.not_found', 'warning', /'claud' is not a known slot, model or upstream.*did you mean cloud\?/],
  ['upstreams.toml', 'upstream.0.fallback', 'upstream.not_found', 'warning', /'zz-unheard-of' is not a known slot, model or upstream\. A model of an upstream is <upstream>\/<model>/],
  ['upstreams.toml', 'upstream.0.fallback', 'upstream.invalid', 'warning', /'off' is switched off/],
  ['upstreams.toml', 'upstream.0.fallback', 'upstream.invalid', 'error', /names 'cloud' itself/],
  ['upstreams.toml', 'upstream.2.name', 'upstream.invalid', 'warning', /is the name of slot 'well'/],
  ['upstreams.toml', 'upstream.3.slot_name', 'slot.not_found', 'warning', /no such slot: 'nowhere'/],
  ['providers.toml', 'provider.0.catalog_id', 'upstream.invalid', 'error', /no such template: 'opnai'; did you mean openai\?/],
  ['providers.toml', 'provider.1.name', 'upstream.already_exists', 'warning', /'cloud' is also in upstreams\.toml/],
  ['capabilities.toml', 'selections.embed.embed.provider', 'capability.invalid_selection', 'error', /no such provider: 'nobody'/],
  ['capabilities.toml', 'selections.embed.embed.model', 'capability.unknown_model', 'warning', /'unheard' is not on this host; pull or register it/],
  ['capabilities.toml', 'selections.voice.tts.device', 'capability.illegal_backend_model_pair', 'warning', /runs on cpu, not gpu-rocm/]
]

async function startOn (t: Test, home: string): Promise<TestGateway> {
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ builtins, runtime, home })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return gateway
}

async function diagnosticsOf (gateway: TestGateway): Promise<Finding[]> {
  return (await (await gateway.fetch('/api/status')).json() as { diagnostics: Finding[] }).diagnostics
}

interface Verdict { readonly file: string, readonly status: string, readonly problems: ReadonlyArray<Omit<Finding, 'file'>> }
interface Validated { readonly ok: boolean, readonly complete: boolean, readonly files: readonly Verdict[] }

const findingsIn = ({ files }: Validated): Finding[] =>
  files.flatMap(({ file, problems }) => problems.map(problem => ({ file, ...problem })))
const keyOf = ({ file, path, code, severity, message }: Finding): string => [file, path, code, severity, message].join(' | ')

t.test('what stands between the files, told alike by the gateway and without one', async t => {
  const home = homeOf(t, tangled)
  const gateway = await startOn(t, home)
  const diagnostics = await diagnosticsOf(gateway)
  const { code, stdout } = await run(['config', 'validate', '--json', '--home', home])
  t.equal(code, 1)
  const validated = JSON.parse(stdout) as Validated
  t.match(validated, { ok: false, complete: true })
  for (const [file, path, code, severity, message] of expected) {
    const told = diagnostics.filter(found => found.file === file && found.path === path)
    const isTold = told.some(found => found.code === code && found.severity === severity && message.test(found.message))
    t.ok(isTold, `${file} ${path}: ${code}`, { told })
  }
  t.equal(diagnostics.length, expected.length, diagnostics.map(keyOf).join('\n'))
  t.same(findingsIn(validated).map(keyOf).sort(), diagnostics.map(keyOf).sort())
  t.match(validated.files.find(({ file }) => file === 'slots/well.toml'), { status: 'ok' })

  await gateway.fetch('/api/slots/two', { method: 'DELETE' })
  t.notOk((await diagnosticsOf(gateway)).some(({ file }) => /(one|two)\.toml$/.test(file)), 'a change is looked at anew')
})

t.test('the real command: lines for people, 1 for errors, 0 for warnings, nothing made', async t => {
  const home = homeOf(t, { ...tangled, 'etc/svc/svc.toml': '[slots]\nautostart = false\n' })
  const before = readdirSync(join(home, 'etc/svc'))
  const bad = await spawnSvc(['config', 'validate', '--home', home]).finished
  t.match(bad, { code: 1, stderr: /files are not valid in/ })
  for (const line of [
    /✗ slots\/one\.toml\n {4}port: port 8085 belongs to slot 'two'.* \[slot\.port_conflict\]\n/,
    /! slots\/sleeping\.toml\n {4}warning: model\.default: model 'unheard'/
  ]) t.match(bad.stdout, line)
  t.same(readdirSync(join(home, 'etc/svc')), before)
  const meek = homeOf(t, { 'etc/svc/svc.toml': '[plugins.config.nobody]\nx = 1\n', 'etc/svc/slots/agent.toml': `${CPU}model = "known"\n` })
  t.match(await spawnSvc(['config', 'validate', '--home', meek]).finished, {
    code: 0, stdout: /! svc\.toml\n {4}warning: plugins\.config\.nobody: no such plugin/, stderr: /^$/
  })
  const empty = t.testdir({})
  t.equal((await run(['config', 'validate', '--home', empty])).code, 0)
  t.notOk(existsSync(join(empty, 'etc')), 'looking makes nothing')
})

t.test('packages: a table that its plugin refuses, one whose code cannot be imported', async t => {
  const home = homeOf(t, {
    'etc/svc/svc.toml': '[plugins]\nallow = ["svc-plugin-good", "svc-plugin-bad"]\n[plugins.config.good]\nlevel = "high"\n',
    'etc/svc/slots/agent.toml': `${CPU}provider = "good"\n`
  })
  const modules = join(home, 'var/lib/svc/plugins/node_modules')
  const install = (name: string, code: string): void => {
    mkdirSync(join(modules, name), { recursive: true })
    const manifest = { name, version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'service' } }
    writeFileSync(join(modules, name, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(modules, name, 'index.js'), code)
  }
  install('svc-plugin-bad', 'throw new Error("no such luck")\n')
  install('svc-plugin-good', `import { definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
export default definePlugin({ name: 'good', kind: 'service', apiVersion: 1, configSchema: z.strictObject({ level: z.number() }), register () {} })
`)
  const gateway = await startOn(t, home)
  const diagnostics = await diagnosticsOf(gateway)
  const { code, stdout } = await spawnSvc(['config', 'validate', '--json', '--home', home]).finished
  t.equal(code, 1)
  t.match(findingsIn(JSON.parse(stdout) as Validated).map(keyOf).sort(), diagnostics.map(keyOf).sort())
  t.match(diagnostics, [
    { file: 'svc.toml', path: 'plugins.allow', code: 'plugin.import_failed', severity: 'warning', message: /'svc-plugin-bad'.*no such luck/ },
    { file: 'svc.toml', path: 'plugins.config.good.level', code: 'plugin.config_invalid', message: /number/ },
    { file: 'slots/agent.toml', path: 'provider' }
  ])
})

t.test('a broken svc.toml: the other files are judged by themselves', async t => {
  const home = homeOf(t, { ...tangled, 'etc/svc/svc.toml': '[server' })
  const { code, stdout, stderr } = await run(['config', 'validate', '--json', '--home', home])
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { ok: false, complete: false, files: [{ file: 'svc.toml', status: 'broken', problems: [{ code: 'config.parse_error' }] }] })
  t.match(stderr, 'References between files are checked once svc.toml is valid.')
})
