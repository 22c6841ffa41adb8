import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { settingsOf, type ConfigSnapshot, type Diagnostic } from '../../../kernel/contract/index.js'
import type { FileOps } from '../../../kernel/config/files/atomic-file.js'
import { ownIdentity } from '../../../kernel/config/files/process-identity.js'
import type { Table } from '../../../kernel/config/toml/toml-file.js'
import { memorySettings } from '../../../plugins/services/memory/settings.js'
import { laid, shippedProviders } from '../../providers.js'
import { providerOf } from '../slots/plan/launch-input.js'
import { openHome, writeTree } from './support.js'

const shown = (diagnostics: readonly Diagnostic[]): readonly string[] =>
  diagnostics.map(({ file, line, path, message }) => `${file}${line === undefined ? '' : `:${line}`} ${path} ${message}`)

const lines = (...text: readonly string[]): string => text.join('\n') + '\n'

t.test('an empty home is all defaults', async t => {
  const { config } = await openHome(t.testdir(), {})
  t.match(config.snapshot, {
    revision: 1, upstreams: { length: 0 }, providers: { length: 0 },
    svc: { meta: { schema_version: 1 }, slots: { port_range_start: 8081, idle_timeout_s: 300 } }
  })
  t.equal(config.snapshot.slots.size, 0)
  t.same(config.snapshot.diagnostics, [])
  t.same([...config.snapshot.profiles.keys()].sort(), [
    'cpu-llm', 'cuda', 'embed', 'imagegen', 'npu-rt', 'rerank', 'rocm', 'rocm-dnse', 'rocm-moe', 'tts-cpu', 'tts-gpu', 'vulkan'
  ])
})

t.test('the seeds of a first start are all there', async t => {
  const { profiles: seedProfiles } = shippedProviders
  const mtp = [...seedProfiles.values()].filter(profile => profile.mtp).map(profile => profile.name)
  t.same(mtp, ['rocm-dnse', 'rocm-moe'])
  t.match(seedProfiles.get('embed'), { flags: /--embedding .*-ub 8192/, device_class: 'gpu', seed: true })
  t.match(seedProfiles.get('rerank'), { flags: /--reranking/ })
  t.match(seedProfiles.get('cpu-llm'), { device_class: 'cpu', backend: null, image: 'cpu' })
  t.match(seedProfiles.get('npu-rt'), { device_class: 'npu' })
  t.match(seedProfiles.get('imagegen'), { device_class: 'img' })
  for (const { name, flags } of seedProfiles.values()) t.notMatch(flags, /--(model|port|ctx-size)\b/, name)
})

t.test('what is broken costs only itself', async t => {
  const { config, log } = await openHome(t.testdir(), {
    'slots/agent.toml': 'device = "cpu"\n[model]\ndefault = "qwen"\n',
    'slots/bad.toml': '# a comment\ndevice = "banana"\n[model]\nctx_size = 5\n',
    'slots/cut.toml': 'device = "cp',
    'slots/Bad Name.toml': '',
    'slots/.agent.toml.swp.toml': 'not ours',
    'slots/notes.txt': 'not ours',
    'profiles.toml': lines('[profile.mine]', 'image = "x"', '[profile.rocm]', 'image = "y"', '[profile.broken]', 'flags = 3',
      '[profile."Bad Name"]', 'image = "z"'),
    'upstreams.toml': lines('[[upstream]]', 'name = "a"', 'url = "http://a/v1"', '[[upstream]]', 'name = "a"', 'url = "http://b/v1"',
      '[[upstream]]', 'name = "c"', 'url = "ftp://c"', 'key = "sk-secret"'),
    'providers.toml': 'provider = 3\n',
    'manifest.json': '{ "toolbox_images": { "rocm": { "tag": "x:1", "digest": "nope" } } }',
    'hardware.json': '{ "ram_mb": 1024,',
    'api.env': 'KEY="v"\nbroken\n'
  })
  t.same([...config.snapshot.slots.keys()], ['agent'])
  t.match(config.snapshot.profiles.get('mine'), { image: 'x', seed: false })
  t.match(config.snapshot.profiles.get('rocm'), { image: 'rocm', seed: true }, 'the seed wins')
  t.same(config.snapshot.upstreams.map(upstream => upstream.url), ['http://a/v1'])
  t.equal(config.secret('KEY'), 'v')
  t.match(shown(config.snapshot.diagnostics), [
    /^slots\/Bad Name\.toml {2}has an invalid slot name/,
    'slots/bad.toml:2 device must be one of gpu-rocm, gpu-vulkan, gpu-cuda, cpu, npu; got "banana"',
    'slots/bad.toml:4 model.ctx_size must be at least 128',
    /^slots\/cut\.toml:1 {2}is not valid TOML: unfinished string/,
    /^profiles\.toml:3 profile\.rocm is a built-in profile/,
    'profiles.toml:5 profile.broken.image is required',
    'profiles.toml:6 profile.broken.flags must be text, got a whole number',
    /^profiles\.toml:7 profile\."Bad Name" has a name/,
    /^upstreams\.toml:4 upstream\.1 is a second upstream "a"/,
    'upstreams.toml:9 upstream.2.url must be an http or https URL',
    /^upstreams\.toml:10 upstream\.2\.key is not a known key/,
    /^providers\.toml:1 provider must be a list of tables, written \[\[provider\]\]/,
    'manifest.json toolbox_images.rocm.digest must be sha256: and 64 hex digits',
    'hardware.json  is not valid JSON: the text ends too early; it may be truncated',
    'api.env:2  is not KEY="value" (line 2)'
  ])
  t.notMatch(JSON.stringify(config.snapshot.diagnostics), /sk-secret/)
  t.equal(log.lines.filter(line => line.level === 'warn').length, config.snapshot.diagnostics.length, 'all are logged')
})

t.test('a broken svc.toml refuses the start with everything that is wrong, in all files', async t => {
  await t.rejects(openHome(t.testdir(), {
    'svc.toml': '[slots]\nport_range_start = "x"\nidle_timout_s = 5\n[telemetry]\nchannel = "weekly"\n', 'slots/x.toml': 'port = 1'
  }), {
    code: 'validation.invalid',
    message: /slots\.port_range_start must be a whole number, got text \(line 2\); slots\.idle_timout_s is not a known key; did you mean idle_timeout_s/,
    details: { fields: [{ path: 'slots.port_range_start' }, { path: 'slots.idle_timout_s' }, { path: 'telemetry.channel' }],
      diagnostics: [{}, {}, {}, { file: 'slots/x.toml', path: 'port' }] }
  })
  await t.rejects(openHome(t.testdir(), { 'svc.toml': '[slots\n' }), { code: 'config.parse_error', message: /svc\.toml is not valid TOML/ })
  await t.rejects(openHome(t.testdir(), { 'svc.toml': '[meta]\nschema_version = 2\n' }), {
    code: 'config.parse_error', message: /meta\.schema_version is 2, and this release knows versions up to 1; update the gateway/
  })
  await t.rejects(openHome(t.testdir(), { 'svc.toml/x': '' }), { code: 'config.parse_error', message: /a folder/ })
})

t.test('a reload tells what changed, and keeps the last good value of what broke', async t => {
  const { config, paths, log } = await openHome(t.testdir(), {
    'svc.toml': '[slots]\nidle_timeout_s = 10\n',
    'slots/a.toml': 'port = 8081\n',
    'slots/b.toml': 'port = 8082\n',
    'profiles.toml': '[profile.p]\nimage = "one"\n[profile.q]\nimage = "two"\n'
  })
  const seen: [ConfigSnapshot, ConfigSnapshot][] = []
  const stop = config.onChange((next, previous) => seen.push([next, previous]))
  config.onChange(() => { throw new Error('a listener that fails') })
  const first = config.snapshot

  await t.test('of equal files changes nothing and tells nobody', async t => {
    writeTree(paths.etc, { 'slots/a.toml': '# only a comment\nport = 8081\n' })
    t.equal(await config.reload(), first)
    t.same(seen, [])
  })

  await t.test('keeps the last good value of what broke', async t => {
    writeTree(paths.etc, {
      'svc.toml': '[slots]\nidle_timeout_s = -1\n', 'slots/a.toml': 'port = "x"', 'slots/b.toml': 'port = 8090\n', 'slots/c.toml': 'port = "y"',
      'profiles.toml': '[profile.p]\nimage = 3\n[profile.q]\nimage = "three"\n'
    })
    const next = await config.reload()
    t.equal(next.svc, first.svc, 'the same object')
    t.equal(next.slots.get('a'), first.slots.get('a'))
    t.equal(next.slots.get('b')?.port, 8090)
    t.notOk(next.slots.has('c'))
    t.match([next.profiles.get('p')?.image, next.profiles.get('q')?.image], ['one', 'three'])
    t.equal(next.diagnostics.length, 4)
    t.equal(next.revision, 2)
    t.same(seen, [[next, first]])
    t.match(log.lines.at(-1), { level: 'error', message: /a listener that fails/ })
  })

  await t.test('takes over repairs and forgets deleted files', async t => {
    writeTree(paths.etc, { 'svc.toml': '', 'slots/a.toml': 'port = 8083' })
    rmSync(join(paths.slots, 'b.toml'))
    rmSync(join(paths.slots, 'c.toml'))
    stop()
    const next = await config.reload()
    t.match([...next.slots].map(([name, slot]) => [name, slot.port]), [['a', 8083]])
    t.equal(next.svc.slots.idle_timeout_s, 300)
    t.equal(seen.length, 1, 'the listener is gone')
  })

  await t.test('with the folder of slots out of reach keeps them all', async t => {
    rmSync(paths.slots, { recursive: true })
    writeFileSync(paths.slots, 'a file')
    const next = await config.reload()
    t.same([...next.slots.keys()], ['a'])
    t.match(next.diagnostics.filter(diagnostic => diagnostic.file === 'slots'), [{ message: /cannot be listed/ }])
  })

  t.ok(Object.isFrozen(first) && Object.isFrozen(first.svc.slots) && Object.isFrozen(first.slots.get('a')?.model))
})

t.test('creating a slot writes its file, and refuses wrong or duplicate ones', async t => {
  const { config, paths } = await openHome(t.testdir(), {})
  const created = await config.createSlot('agent', {
    name: 'agent', device: 'cpu', model: 'qwen', context_size: 4096, server: { extra_args: ['-a'] }, profile: null, provider: 'llama-server'
  })
  t.match(created, { name: 'agent', device: 'cpu', provider: 'llm-server', model: { default: 'qwen', context_size: 4096 } })
  t.equal(config.snapshot.slots.get('agent'), created)
  t.equal(readFileSync(join(paths.slots, 'agent.toml'), 'utf8'),
    'device = "cpu"\nprovider = "llm-server"\n\n[model]\ndefault = "qwen"\ncontext_size = 4096\n\n[server]\nextra_args = [ "-a" ]\n')
  await t.rejects(config.createSlot('agent', {}), { code: 'slot.already_exists', details: { slot: 'agent' } })
  t.throws(() => config.checkSlot('agent', {}), { code: 'slot.already_exists' })
  t.match(config.checkSlot('other', { port: 8085 }), { name: 'other', port: 8085, workers: 1 })
  await t.rejects(config.createSlot('x', { devcie: 'cpu', port: 'secret-value' }), {
    code: 'validation.unknown_keys', details: { unknown_keys: ['devcie'], hint: 'devcie is not a known key; did you mean device?' }
  })
  await t.rejects(config.createSlot('x', { name: 'y' }), { code: 'validation.invalid', details: { fields: [{ path: 'name' }] } })
  await t.rejects(config.createSlot('x', { nope: null }), { code: 'validation.unknown_keys' })
  for (const name of ['', 'A', '../x', 'a/b', 'a.b', '-a', 'x'.repeat(33), 'a\n']) {
    await t.rejects(config.createSlot(name, {}), { code: 'validation.invalid', param: 'name', details: { fields: [{ path: 'name' }] } }, JSON.stringify(name))
  }
  await t.rejects(config.createSlot('x', {}, () => { throw new Error('refused') }), { message: 'refused' })
  t.same(readdirSync(paths.slots), ['agent.toml'], 'nothing else was written')
  const racing = await Promise.allSettled([1, 2, 3].map(port => config.createSlot('race', { port: 8080 + port })))
  t.same(racing.map(result => result.status).sort(), ['fulfilled', 'rejected', 'rejected'])
})

t.test('patching a slot keeps the comments and other keys of its file', async t => {
  const text = '# my agent\ndevice = "gpu-rocm"  # AMD\nidle_timeout_s = 60\n\n# the model\n[model]\ndefault = "qwen"\n'
  const { config, paths } = await openHome(t.testdir(), { 'slots/agent.toml': text, 'slots/bad.toml': 'port = "x"', 'slots/cut.toml': 'a = "' })
  const path = join(paths.slots, 'agent.toml')
  const patched = await config.patchSlot('agent', { device: 'cpu', context_size: 512, idle_timeout_s: null })
  t.match(patched, { device: 'cpu', idle_timeout_s: null, model: { default: 'qwen', context_size: 512 } })
  t.equal(readFileSync(path, 'utf8'), '# my agent\ndevice = "cpu"       # AMD\n\n# the model\n[model]\ndefault = "qwen"\ncontext_size = 512\n')
  t.match(await config.readSlotFile('agent'), { device: 'cpu', model: { default: 'qwen', context_size: 512 } })
  t.equal(await config.readSlotFile('none'), null)
  t.equal(await config.readSlotFile('../svc'), null)
  await t.rejects(config.readSlotFile('cut'), { code: 'config.parse_error' })

  const before = statSync(path).ino
  await config.patchSlot('agent', { device: 'cpu' })
  t.equal(statSync(path).ino, before, 'what changes nothing writes nothing')

  await t.rejects(config.patchSlot('none', {}), { code: 'slot.not_found' })
  await t.rejects(config.patchSlot('../agent', {}), { code: 'validation.invalid', param: 'name' })
  await t.rejects(config.patchSlot('cut', { port: 8081 }), { code: 'config.parse_error' })
  const refusal: unknown = await config.patchSlot('agent', { server: { env: { 'A B': 'hunter2' } } }).catch((error: unknown) => error)
  t.match(refusal, { code: 'validation.invalid', details: { fields: [{ path: 'server.env."A B"' }] } })
  t.notMatch(JSON.stringify([refusal, String(refusal)]), 'hunter2')
  await t.rejects(config.patchSlot('bad', { vision: false }), { code: 'validation.invalid', details: { fields: [{ path: 'port' }] } })
  t.match(await config.patchSlot('bad', { port: 8099 }), { port: 8099 }, 'a patch may repair a file')

  const checked: unknown[] = []
  await t.rejects(config.patchSlot('agent', { port: 8085 }, (next, previous) => {
    checked.push([next.port, previous.port])
    throw new Error('the guard says no')
  }), { message: 'the guard says no' })
  t.same(checked, [[8085, undefined]])
  t.notMatch(readFileSync(path, 'utf8'), /8085/)

  const ports = new Set<number>()
  await Promise.all(Array.from({ length: 20 }, (_, i) => config.patchSlot('agent', { server: { env: { [`K${i}`]: 'v' } }, port: 8100 + i }, (_next, previous) => {
    // every check sees what the one before it wrote
    ports.add(previous.port ?? 0)
  })))
  t.equal(ports.size, 20)

  await config.deleteSlot('agent')
  t.notOk(config.snapshot.slots.has('agent'))
  await t.rejects(config.deleteSlot('agent'), { code: 'slot.not_found' })
  await t.rejects(config.deleteSlot('..'), { code: 'validation.invalid' })
})

t.test('a patch of svc.toml keeps comments and order, and refuses a broken file', async t => {
  const text = '# mine\n[slots]\nidle_timeout_s = 10 # short\n\n[plugins.config.demo]\nx = 1\n'
  const { config, paths } = await openHome(t.testdir(), { 'svc.toml': text })
  const path = join(paths.etc, 'svc.toml')
  const svc = await config.patchSvc({ slots: { max_slots: 4, idle_timeout_s: null }, plugins: { config: { demo: { y: [1] } } }, models: { store: '/tmp' } })
  t.match(svc, { slots: { max_slots: 4, idle_timeout_s: 300 }, plugins: { config: { demo: { x: 1, y: [1] } } } })
  t.equal(config.snapshot.svc.slots.max_slots, 4)
  t.equal(readFileSync(path, 'utf8'), '# mine\n[slots]\nmax_slots = 4\n\n[plugins.config.demo]\nx = 1\ny = [ 1 ]\n\n[models]\nstore = "/tmp"\n')
  const revision = config.snapshot.revision
  await config.patchSvc({ slots: { max_slots: 4 } })
  t.equal(config.snapshot.revision, revision, 'no change, no event')

  const refused: readonly (readonly [Table, { code: string, details?: object }])[] = [
    [{ slots: { prot: 1 }, nope: {} }, { code: 'validation.unknown_keys', details: { unknown_keys: ['slots.prot', 'nope'] } }],
    [{ slots: { nope: null } }, { code: 'validation.unknown_keys', details: { unknown_keys: ['slots.nope'] } }],
    [{ slots: { port_range_end: 8200 } }, { code: 'validation.invalid', details: { fields: [{ path: 'slots.port_range_end', message: /8188/ }] } }],
    [{ slots: 'secret-value' }, { code: 'validation.invalid', details: { fields: [{ path: 'slots', message: 'must be a table, got text' }] } }],
    [{ models: { roots: ['rel'] } }, { code: 'validation.invalid', details: { fields: [{ path: 'models.roots.0' }] } }],
    [{ meta: { schema_version: 9 } }, { code: 'validation.invalid', details: { fields: [{ path: 'meta.schema_version' }] } }],
    [JSON.parse('{"__proto__": {"slots": 1}}') as Table, { code: 'validation.unknown_keys' }]
  ]
  for (const [patch, expect] of refused) await t.rejects(config.patchSvc(patch), expect)
  t.notMatch(readFileSync(path, 'utf8'), /8200|secret|rel/)
  await config.patchSvc({ memory: { graph: { anything: 'goes' } } })
  t.match(settingsOf(config.snapshot.svc, memorySettings).graph, { anything: 'goes' })

  writeFileSync(path, '[slots')
  await t.rejects(config.patchSvc({ slots: { max_slots: 5 } }), { code: 'config.parse_error' }, 'a broken file is not written over')
  t.equal(config.snapshot.svc.slots.max_slots, 4)
  rmSync(path)
  await config.patchSvc({ slots: { max_slots: 6 } })
  t.equal(readFileSync(path, 'utf8'), '[slots]\nmax_slots = 6\n')
})

t.test('writes that the file system refuses', async t => {
  const failing = (code: string): FileOps => ({ ...fs, open: async () => { throw Object.assign(new Error(code), { code }) } })
  for (const [code, message] of [['ENOSPC', /the disk is full/], ['EROFS', /read-only/], ['EACCES', /permission denied/]] as const) {
    const { config, paths } = await openHome(t.testdir(), { 'slots/a.toml': 'port = 8081\n', 'svc.toml': '' }, { ops: failing(code) })
    const failed = { code: 'config.write_failed', message, cause: { code } }
    await t.rejects(config.patchSlot('a', { port: 8082 }), { ...failed, details: { path: 'slots/a.toml', reason: code } })
    await t.rejects(config.createSlot('b', {}), { ...failed, details: { path: 'slots/b.toml' } })
    await t.rejects(config.patchSvc({ slots: { max_slots: 1 } }), { ...failed, details: { path: 'svc.toml' } })
    await t.rejects(config.setSecret('A', 'x'), { ...failed, details: { path: 'api.env' } })
    t.equal(readFileSync(join(paths.slots, 'a.toml'), 'utf8'), 'port = 8081\n')
    t.same(readdirSync(paths.slots), ['a.toml'])
    t.equal(config.snapshot.slots.get('a')?.port, 8081)
  }
})

t.test('secrets come from api.env before the environment, and stay out of the snapshot', async t => {
  const { config, paths } = await openHome(t.testdir(), { 'api.env': '# keys\nA="one"\n' }, { env: { A: 'env', B: 'env' } })
  t.same([config.secret('A'), config.secret('B'), config.secret('C')], ['one', 'env', undefined], 'the file wins over the environment')
  const revision = config.snapshot.revision
  await config.setSecret('C', 'p"w\\d')
  t.equal(config.secret('C'), 'p"w\\d')
  t.same(config.secretNames(), ['A', 'C'])
  t.equal(statSync(paths.secretsEnv).mode & 0o777, 0o600)
  t.ok(await config.deleteSecret('C'))
  t.notOk(await config.deleteSecret('C'))
  t.equal(readFileSync(paths.secretsEnv, 'utf8'), '# keys\nA="one"\n')
  t.equal(config.snapshot.revision, revision, 'secrets are no part of the snapshot')
  await t.rejects(config.setSecret('a b', 'x'), { code: 'validation.invalid', param: 'name' })
  await t.rejects(config.setSecret('A', 'line\nline'), { code: 'validation.invalid', param: 'value' })
  writeFileSync(paths.secretsEnv, 'A="two"\n')
  await config.reload()
  t.equal(config.secret('A'), 'two')
})

t.test('migrations run in order, in memory until something is written', async t => {
  const migrations = [
    {
      version: 2,
      up: (config: Table) => ({ ...config, slots: { ...config.slots as Table | undefined, max_slots: config.most } })
    },
    { version: 3, up: ({ most: _, ...config }: Table) => config }
  ]
  const text = '# old\nmost = 7\n'
  const { config, paths } = await openHome(t.testdir(), { 'svc.toml': text }, { migrations })
  t.match(config.snapshot.svc, { meta: { schema_version: 3 }, slots: { max_slots: 7 } })
  const path = join(paths.etc, 'svc.toml')
  t.equal(readFileSync(path, 'utf8'), text, 'reading does not write')
  await config.patchSvc({ slots: { idle_timeout_s: 5 } })
  t.equal(readFileSync(path, 'utf8'), '# old\n\n[slots]\nmax_slots = 7\nidle_timeout_s = 5\n\n[meta]\nschema_version = 3\n')
  t.match((await config.reload()).svc, { slots: { max_slots: 7, idle_timeout_s: 5 } })
  await t.rejects(openHome(t.testdir(), { 'svc.toml': '[meta]\nschema_version = 4\n' }, { migrations }), { message: /versions up to 3/ })
})

t.test('the manifest of the operator lies over the images of providers', async t => {
  const providers = laid(providerOf({ images: { rocm: { tag: 'r:1' }, cuda: { tag: 'c:1' } } }))
  const { config } = await openHome(t.testdir(), { 'manifest.json': '{"toolbox_images": {"rocm": {"tag": "mine:2"}}}' }, { providers })
  t.match(config.snapshot.manifest.toolbox_images, { rocm: { tag: 'mine:2' }, cuda: { tag: 'c:1' } })
})

t.test('the start sweeps what dead writers left', async t => {
  const home = t.testdir()
  mkdirSync(join(home, 'etc/svc/slots'), { recursive: true })
  const { scope } = ownIdentity()
  writeFileSync(join(home, `etc/svc/slots/.a.toml.${scope}-999999999-1-0123456789ab.tmp`), 'half')
  const written = ['etc/svc', 'etc/svc/slots', 'var/lib/svc', 'var/lib/svc/registry', 'var/lib/svc/slots/a', 'var/lib/svc/plugins', 'var/lib/svc/models', 'var/lib/svc/slots']
  for (const folder of [...written, 'var/lib/svc/models/.tmp']) {
    mkdirSync(join(home, folder), { recursive: true })
    writeFileSync(join(home, folder, `.x.${scope}-999999999-1-0123456789ab.tmp`), 'half')
    writeFileSync(join(home, folder, `.x.${scope}-${process.pid}-${ownIdentity().start}-0123456789ab.tmp`), 'being written')
  }
  const { paths } = await openHome(home, {})
  t.same(readdirSync(paths.slots), [`.x.${scope}-${process.pid}-${ownIdentity().start}-0123456789ab.tmp`])
  const left = readdirSync(home, { recursive: true }).map(String).filter(name => name.includes('-999999999-'))
  t.same(left, [], 'in every folder that the gateway writes to')
})

t.test('tool servers of others are files of their own: read strictly, private, and their last good form stays', async t => {
  const { config, paths } = await openHome(t.testdir(), {
    'mcp-servers/notes.toml': 'spec = "npm:@acme/notes"\ntools = 3\n[secrets]\nNOTES_TOKEN = "ACME_KEY"\n',
    'mcp-servers/admin.toml': 'spec = "npm:x"\n',
    'mcp-servers/Bad Name.toml': 'spec = "npm:x"\n',
    'mcp-servers/odd.toml': 'spec = "npm:x"\nspeed = 1\n',
    'mcp-servers/steer.toml': 'spec = "npm:x"\ntransport = "streamable-http"\n',
    'mcp-servers/trap.toml': 'spec = "npm:x"\n[env]\nLD_PRELOAD = "/x.so"\n',
    'mcp-servers/plain.toml': 'spec = "http://tools.example/mcp"\ntransport = "streamable-http"\n',
    'mcp-servers/own.toml': 'command = "node"\n[secrets]\nKEY = "SVC_TOKEN"\n'
  })
  t.strictSame([...config.snapshot.toolServers.keys()], ['notes'])
  t.match(config.snapshot.toolServers.get('notes'), {
    id: 'notes', transport: 'stdio', enabled: true, idle_stop_s: 600, secrets: { NOTES_TOKEN: 'ACME_KEY' }, tools: { allow: { length: 0 }, gated: { length: 0 }, blocked: { length: 0 } }
  })
  t.match(config.snapshot.diagnostics.map(({ file, path, message }) => `${file} ${path} ${message}`), [
    /^mcp-servers\/Bad Name.toml .*invalid tool server name/,
    /^mcp-servers\/admin.toml id cannot be admin/,
    /^mcp-servers\/odd.toml speed /,
    /^mcp-servers\/own.toml secrets.KEY cannot be a key of the gateway itself/,
    /^mcp-servers\/plain.toml spec must be https/,
    /^mcp-servers\/steer.toml transport must be "stdio"/,
    /^mcp-servers\/trap.toml env.LD_PRELOAD cannot be set/
  ])

  await config.change(draft => draft.toolServers.create('files', { command: 'node', args: ['x.js'], env: { A: 'secret' } }))
  const file = join(paths.etc, 'mcp-servers/files.toml')
  t.equal(statSync(file).mode & 0o777, 0o600, 'for its env may hold what others must not read')
  await t.rejects(config.change(draft => draft.toolServers.create('files', { command: 'x' })), { code: 'mcp.already_installed' })
  await t.rejects(config.change(draft => draft.toolServers.create('../x', { command: 'x' })), { code: 'validation.invalid' })
  writeFileSync(file, `# mine\n${readFileSync(file, 'utf8')}`)
  await config.change(draft => draft.toolServers.patch('files', { enabled: false, env: { A: null, B: '2' } }))
  t.match(config.snapshot.toolServers.get('files'), { enabled: false, env: { B: '2' }, args: ['x.js'] })
  t.match(readFileSync(file, 'utf8'), /^# mine\n/, 'comments stay')
  writeFileSync(file, 'broken')
  await config.reload()
  t.match(config.snapshot.toolServers.get('files'), { enabled: false }, 'as it was')
  await config.change(draft => draft.toolServers.delete('files'))
  t.notOk(config.snapshot.toolServers.has('files'))
  await t.rejects(config.change(draft => draft.toolServers.delete('files')), { code: 'mcp.not_found' })
})
