import t from 'tap'
import slots from '../../../plugins/api/slots/index.js'
import plugins from '../../../plugins/api/plugins/index.js'
import profiles from '../../../plugins/api/profiles/index.js'
import ttsCpu from '../../../plugins/providers/tts-cpu/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'

const GOOD = 'name = "mine"\napiVersion = 1\nimage = "x"\n[surfaces.chat]\npath = "/chat"\n'

t.test('what is wrong in a descriptor is named with what was meant', async t => {
  const cases: Array<[name: string, text: string, message: RegExp]> = [
    ['an unknown placeholder', `command = ["--port", "{prt}"]\n${GOOD}`, /engines\/mine\.toml: command\.1 names the placeholder \{prt\}, which does not exist; did you mean \{port\}\? \(line 1\)$/],
    ['one in capitals', `process = ["x", "{PORT}"]\n${GOOD}`, /process\.1 names the placeholder \{PORT\}.*did you mean \{port\}\? \(line 1\)$/],
    ['one like nothing', `command = ["{quux}"]\n${GOOD}`, /\{quux\}, which does not exist; known are \{model_path\}, .*\{workers\} \(line 1\)$/],
    ['a port that has no name', `command = ["{port.metrics}"]\n${GOOD}`, /\{port\.metrics\}, which does not exist; did you mean \{port\}|known are/],
    ['a port of no list', `${GOOD}port = "admin"\n`, /surfaces\.chat\.port names the port 'admin', which is not in `ports`/],
    ['a surface', GOOD.replace('surfaces.chat', 'surfaces.chats'), /surfaces\.chats is not a known key; did you mean chat\?/],
    ['a surface like nothing', GOOD.replace('surfaces.chat', 'surfaces.xyzzy'), /surfaces\.xyzzy is not a known key; known here: chat, compact, completions, count-tokens, .*embeddings,/],
    ['a device', `devices = ["gpu"]\n${GOOD}`, /devices\.0 must be one of .*; got "gpu"; did you mean gpu-rocm or gpu-vulkan or gpu-cuda\?/],
    ['a runtime', `runtime = "Docker!"\n${GOOD}`, /runtime must be container, process, docker, podman or the name of a runtime that a plugin brings/]
  ]
  for (const [name, text, message] of cases) {
    const gateway = await createTestGateway({ plugins: [createFakeProviderPlugin()], files: { 'etc/svc/engines/mine.toml': text } })
    t.match(gateway.gateway.report().find(report => report.name === 'mine'), { state: 'failed', code: 'plugin.manifest_invalid', message }, name)
    await gateway.close()
  }
  const fine = await createTestGateway({
    files: { 'etc/svc/engines/mine.toml': `command = ["--json", "{\\"a\\":1}", "{model_path}", "--port", "{port}"]\n${GOOD}` }
  })
  t.match(fine.gateway.report().find(report => report.name === 'mine'), { state: 'active' }, 'JSON is no placeholder')
  await fine.close()
})

const PARROT = `
import { definePlugin, defineProvider } from 'svc-gateway/plugin'
export default definePlugin({
  name: 'parrot',
  kind: 'provider',
  apiVersion: 1,
  register (ctx) {
   ctx.addUpstreamTemplate({ id: 'aviary', title: 'Aviary', url: 'http://127.0.0.1:9/v1', auth_style: 'none', category: 'local', capabilities: ['speech'] })
   ctx.addProvider(defineProvider({
    name: 'parrot',
    title: 'Parrot',
    family: 'parrot',
    devices: ['cpu'],
    slotTypes: ['tts'],
    cli: true,
    needsModel: false,
    images: { feathered: { tag: 'example.org/parrot:2' } },
    profiles: { loud: { image: 'feathered', flags: '--loud', device_class: 'cpu' } },
    aliases: ['polly'],
    deviceWords: { cage: 'cpu' },
    defaultFor: [{ type: 'tts' }],
    reservedPorts: [8090],
    defaultProfile: () => 'loud',
    surfaces: { speech: { path: '/v1/audio/speech', streaming: true, body: 'json' } },
    health: { path: '/health' },
    exclusivity: 'standard',
    models: { canonical: id => id, list: async () => [] },
    argvSegments: ({ port, engineModels }) => ({ base: ['--port', String(port), '--nest', engineModels.store] }),
    containerSpec: ({ argv }) => ({ command: argv })
   }))
  }
})
`

t.test('a package brings an engine with image, profile, alias and port, and is the default for its type', async t => {
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  const folder = 'var/lib/svc/plugins/node_modules/svc-plugin-parrot'
  const files = {
    [`${folder}/package.json`]: JSON.stringify({
      name: 'svc-plugin-parrot', version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'provider', entry: '.' }
    }),
    [`${folder}/index.js`]: PARROT,
    'etc/svc/svc.toml': '[slots]\nautostart = false\nport_range_start = 8089\nport_range_end = 8092\n[plugins]\nallow = ["svc-plugin-parrot"]\n',
    'etc/svc/providers.toml': '[[provider]]\ncatalog_id = "aviary"\nname = "birds"\n',
    'etc/svc/profiles.toml': '[profile.loud]\nimage = "x"\n[profile.mine]\nimage = "feathered"\ndevice_class = "cpu"\n',
    'etc/svc/slots/voice.toml': 'type = "tts"\ndevice = "cpu"\n',
    'etc/svc/slots/aliased.toml': 'type = "tts"\nprovider = "polly"\n',
    'etc/svc/slots/kokoro.toml': 'type = "tts"\nprovider = "kokoro"\n',
    'etc/svc/slots/caged.toml': 'type = "tts"\nprovider = "kokoro"\nbackend = "cage"\n',
    'etc/svc/slots/tuned.toml': 'type = "tts"\nprofile = "tts-cpu"\n'
  }
  const gateway = await createTestGateway({ runtime, files, plugins: [ttsCpu, slots, profiles, plugins] })
  const { config } = gateway.gateway.kernel()
  const providers = (): object => Object.fromEntries([...config.snapshot.slots].map(([name, { provider }]) => [name, provider]))
  t.strictSame(providers(), { aliased: 'parrot', caged: 'tts-cpu', kokoro: 'tts-cpu', tuned: 'tts-cpu', voice: 'parrot' })
  const answer = async (path: string): Promise<unknown> => await (await gateway.fetch(path)).json()
  t.match(await answer('/api/slots/voice/resolved'), { argv: ['--port', '8090', '--nest', /models\/parrot$/, '--loud'] }, 'its port, though another one is free, and its own folder of models')
  t.match(await answer('/api/slots/voice'), { profile: 'loud', provider: 'parrot', image: 'example.org/parrot:2' })
  t.match(await answer('/api/slots/kokoro/resolved'), { argv: ['--host', String, '--port', '8089'] }, 'no other engine gets its port')
  t.match(gateway.gateway.inference().upstreamService.get('birds'), { config: { url: 'http://127.0.0.1:9/v1', auth_style: 'none' }, source: 'providers.toml' })
  t.match(await answer('/api/profiles/loud'), { seed: true, flags: '--loud', runtime_family: 'parrot', supported_slot_types: ['tts'] })
  t.match(await answer('/api/profiles/mine'), { runtime_family: 'parrot', supported_slot_types: ['tts'] }, 'its image tells whose it is')
  t.match(config.snapshot.diagnostics, [{ file: 'profiles.toml', path: 'profile.loud', message: /is a built-in profile/, line: 1 }])
  t.equal(config.snapshot.slots.get('caged')!.device, 'cpu', 'its word for a device is read before anything is wrong with it')
  t.notOk(gateway.logs.some(({ message }) => /caged/.test(message)))
  await gateway.slots.ensureReady('voice', AbortSignal.timeout(120_000))
  t.equal(gateway.slots.status('voice').state, 'ready')

  await config.patchSvc({ plugins: { allow: [] } })
  t.equal((await gateway.fetch('/api/plugins/reload', { method: 'POST' })).status, 200)
  t.strictSame(providers(), { aliased: 'polly', caged: 'tts-cpu', kokoro: 'tts-cpu', tuned: 'tts-cpu', voice: 'tts-cpu' }, 'what shipped runs them again')
  t.equal(gateway.gateway.inference().upstreamService.get('birds'), undefined)
  t.match(config.snapshot.diagnostics.find(({ file }) => file === 'slots/caged.toml'), { path: 'backend', message: /^must be one of rocm, / })
  await gateway.close()
})

t.test('a descriptor says as much of its engine: other names, default types, a port of its own and profiles', async t => {
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  const gateway = await createTestGateway({
    runtime,
    files: {
      'etc/svc/engines/mynah.toml': `name = "mynah"
apiVersion = 1
image = "example.org/mynah:3"
command = ["--port", "{port}"]
needs_model = false
slot_types = ["tts"]
aliases = ["beo"]
default_for = [{ type = "tts", device = "cpu" }]
reserved_ports = [8090]
[profiles.shrill]
image = "example.org/mynah:shrill"
flags = "--shrill"
device_class = "cpu"
[surfaces.speech]
path = "/v1/audio/speech"
`,
      'etc/svc/svc.toml': '[slots]\nautostart = false\nport_range_start = 8089\nport_range_end = 8092\n',
      'etc/svc/slots/voice.toml': 'type = "tts"\ndevice = "cpu"\nprofile = "shrill"\n',
      'etc/svc/slots/aliased.toml': 'type = "tts"\nprovider = "beo"\n',
      'etc/svc/slots/other.toml': 'type = "tts"\nprovider = "kokoro"\n'
    },
    plugins: [ttsCpu, slots, profiles]
  })
  t.teardown(() => gateway.close())
  const { config } = gateway.gateway.kernel()
  t.strictSame([...config.snapshot.slots].map(([name, { provider }]) => [name, provider]),
    [['aliased', 'mynah'], ['other', 'tts-cpu'], ['voice', 'mynah']])
  const answer = async (path: string): Promise<unknown> => await (await gateway.fetch(path)).json()
  const { ports } = gateway.gateway.inference().fleet
  t.strictSame([ports.expected('voice'), ports.expected('other')], [8090, 8089], 'its port, though another one is free, and no other engine gets it')
  t.match(await answer('/api/slots/voice'), { profile: 'shrill', image: 'example.org/mynah:shrill' })
  t.match(await answer('/api/profiles/shrill'), { seed: true, flags: '--shrill' })
  await config.patchSvc({ slots: { port_range_start: 9000, port_range_end: 9001 } })
  await t.rejects(config.patchSvc({ slots: { port_range_start: 8085 } }), { message: /must not contain 8090, the port of mynah/ }, 'a pool may not take it in')
})

t.test('an engine of a descriptor is told its GPU by its own variable on Vulkan, and by none where it has none', async t => {
  const runtime = new FakeEngineRuntime({ form: 'process' })
  t.teardown(() => runtime.destroy())
  const descriptor = (name: string, more = ''): string => `name = "${name}"
apiVersion = 1
process = ["/bin/sh", "{port}"]
needs_model = false
devices = ["gpu-vulkan"]
slot_types = ["tts"]
${more}
[surfaces.speech]
path = "/v1/audio/speech"
`
  const slot = (provider: string): string => `type = "tts"\nprovider = "${provider}"\ndevice = "gpu-vulkan"\ngpu_index = 1\n`
  const gateway = await createTestGateway({
    runtime,
    deviceNodes: ['/dev/dri/renderD128', '/dev/dri/renderD129'],
    files: {
      'etc/svc/engines/mynah.toml': descriptor('mynah', 'vulkan_variable = "MYNAH_GPU"'),
      'etc/svc/engines/crow.toml': descriptor('crow'),
      'etc/svc/svc.toml': '[slots]\nautostart = false\n',
      'etc/svc/slots/a.toml': slot('mynah'),
      'etc/svc/slots/b.toml': slot('crow')
    },
    plugins: []
  })
  t.teardown(() => gateway.close())
  for (const name of ['a', 'b']) await gateway.slots.ensureReady(name, AbortSignal.timeout(120_000))
  const [told, untold] = runtime.started.map(({ spec }) => spec.env)
  t.match(told, { MYNAH_GPU: '1' })
  t.strictSame(Object.keys(untold!).filter(name => /GPU|VISIBLE/.test(name)), [])
})

t.test('a package cannot take an image, a profile or a name that somebody else has', async t => {
  const image = { tag: 'example.org/x:1' }
  const cases = [
    [{ images: { 'tts-cpu': image } }, /image 'tts-cpu' belongs to plugin 'tts-cpu'; choose another name/],
    [{ profiles: { 'tts-cpu': { image: 'x' } } }, /profile 'tts-cpu' belongs to/],
    [{ aliases: ['kokoro'] }, /provider 'kokoro' belongs to/]
  ] as const
  for (const [facts, message] of cases) {
    const gateway = await createTestGateway({ plugins: [ttsCpu, createFakeProviderPlugin({ name: 'greedy', ...facts })] })
    t.match(gateway.gateway.report().find(({ name }) => name === 'provider-greedy'), { state: 'failed', code: 'plugin.conflict', message })
    await gateway.close()
  }
})
