import { createHash } from 'node:crypto'
import t from 'tap'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import llmServer from '../../../plugins/providers/llm-server/index.js'
import { mtpFlags } from '../../../plugins/providers/llm-server/mtp-flags.js'
import { shippedFacts } from '../../providers.js'
import { apiOf, groupOf, refused } from './support.js'

const api = apiOf('api-profiles', 'api-slots')

const OWN = '# tuned on a rainy day\n[profile.mine]\nimage = "example.com/engine:1" # pinned\nflags = "-fa on"\ndevice_class = "cpu"\n'

t.test('profiles are listed with their flags, built-in ones first', async t => {
  const engine = createFakeProviderPlugin({ ...shippedFacts('imagegen'), defaultFor: [{ type: 'llm' }], flags: { mtp: mtpFlags } })
  const gateway = await api(t, {
    // the engine of images brings a profile
    group: groupOf('api-profiles', 'imagegen', 'library'), files: { 'etc/svc/profiles.toml': OWN }, providers: [engine]
  })
  const { json } = await gateway.call('GET', '/api/profiles')
  t.equal(json.length, 13)
  t.match(json.find(({ name }: { name: string }) => name === 'rocm'), { name: 'rocm', seed: true, backend: 'rocm', device_class: 'gpu', tps: null, rtf: null, used_by: { length: 0 } })
  t.match(json.at(-1), { name: 'mine', seed: false, image: 'example.com/engine:1', flags: '-fa on', mtp: false, cloned_from: null })
  const one = await gateway.call('GET', '/api/profiles/rocm-moe')
  t.match(one.json.resolved_flags, /^--spec-type draft-mtp --spec-draft-device ROCm0 .*--jinja$/, 'with the bundle that it opts in to')
  t.notMatch(one.json.flags, /spec/)
  await refused(t, gateway, ['GET', '/api/profiles/none'], 404, 'profiles.not_found', /GET \/api\/profiles/)
})

t.test('create, change, delete; comments stay', async t => {
  const gateway = await api(t, { files: { 'etc/svc/profiles.toml': OWN } })
  const made = await gateway.call('POST', '/api/profiles', { name: 'fast', image: 'vulkan', flags: '-fa on', backend: 'vulkan', cloned_from: 'vulkan' })
  t.equal(made.status, 201)
  t.match(made.json, { name: 'fast', seed: false, device_class: 'gpu', cloned_from: 'vulkan' })
  const changed = await gateway.call('PUT', '/api/profiles/mine', { flags: '-fa off', intent: 'mornings', mtp: null })
  t.match(changed.json, { flags: '-fa off', intent: 'mornings', mtp: false, image: 'example.com/engine:1' })
  t.equal(await gateway.file('etc/svc/profiles.toml'),
    '# tuned on a rainy day\n[profile.mine]\nimage = "example.com/engine:1" # pinned\nflags = "-fa off"\ndevice_class = "cpu"\nintent = "mornings"\n\n' +
    '[profile.fast]\nimage = "vulkan"\nflags = "-fa on"\nbackend = "vulkan"\ncloned_from = "vulkan"\n')
  t.match((await gateway.call('PUT', '/api/profiles/fast', { device_class: 'cpu' })).json, { backend: null }, 'off the GPU there is no GPU runtime')
  const gone = await gateway.call('DELETE', '/api/profiles/fast')
  t.equal(gone.status, 204)
  t.equal(gone.text, '')
  t.notMatch(await gateway.file('etc/svc/profiles.toml'), /fast/)
  t.match(gateway.audit().filter(row => row.category === 'profile').map(({ action, target, outcome }) => [action, target, outcome]), [
    ['profile.delete', 'fast', 'ok'], ['profile.edit', 'fast', 'ok'], ['profile.edit', 'mine', 'ok'], ['profile.create', 'fast', 'ok']
  ])
  t.match(gateway.audit().find(row => row.action === 'profile.edit' && row.target === 'mine'), {
    before: { flags: '-fa on' }, after: { flags: '-fa off' }
  })
})

t.test('invalid, duplicate and built-in profiles are refused with their code', async t => {
  const gateway = await api(t, { files: { 'etc/svc/profiles.toml': OWN } })
  const cases: ReadonlyArray<readonly [readonly [string, string, unknown?], number, string, RegExp?]> = [
    [['POST', '/api/profiles', { name: 'mine', image: 'x' }], 409, 'profiles.exists'],
    [['POST', '/api/profiles', { name: 'rocm', image: 'x' }], 409, 'profiles.exists'],
    [['POST', '/api/profiles', { name: 'Bad Name', image: 'x' }], 400, 'validation.invalid'],
    [['POST', '/api/profiles', { name: 'x' }], 400, 'validation.invalid', /image is required/],
    [['POST', '/api/profiles', { name: 'x', image: 'y', flag: '' }], 400, 'validation.unknown_keys', /did you mean flags/],
    [['POST', '/api/profiles', { name: 'x', image: 'y', flags: '--a "b' }], 400, 'validation.invalid', /never closed/],
    [['POST', '/api/profiles', { name: 'x', image: 'y', backend: 'metal' }], 400, 'validation.invalid'],
    [['POST', '/api/profiles', { name: 'x', image: 'y', device_class: 'cpu', backend: 'vulkan' }], 400, 'validation.invalid', /backend must be null for device class cpu/],
    [['PUT', '/api/profiles/mine', { backend: 'cuda' }], 400, 'validation.invalid', /no GPU runtime/],
    [['PUT', '/api/profiles/rocm', { flags: '' }], 409, 'profiles.seed_immutable', /clone it/],
    [['PUT', '/api/profiles/none', { flags: '' }], 404, 'profiles.not_found'],
    [['PUT', '/api/profiles/mine', { name: 'other' }], 400, 'validation.unknown_keys'],
    [['PUT', '/api/profiles/mine', { flags: '\'' }], 400, 'validation.invalid'],
    [['DELETE', '/api/profiles/rocm'], 409, 'profiles.seed_immutable'],
    [['DELETE', '/api/profiles/none'], 404, 'profiles.not_found']
  ]
  for (const [call, status, code, message] of cases) await refused(t, gateway, call, status, code, message)
  t.equal(await gateway.file('etc/svc/profiles.toml'), OWN)
})

t.test('a profile that slots use is neither deleted nor changed to misfit them', async t => {
  const gateway = await api(t, {
    files: {
      'etc/svc/profiles.toml': OWN,
      'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "cpu"\nport = 8081\nprofile = "mine"\n[model]\ndefault = "fake-model"\n'
    }
  })
  t.same((await gateway.call('GET', '/api/profiles/mine')).json.used_by, ['agent'])
  const used = await refused(t, gateway, ['DELETE', '/api/profiles/mine'], 409, 'profiles.in_use', /slot 'agent'; give it another profile/)
  t.same(used.json.error.details, { name: 'mine', slots: ['agent'] })
  await refused(t, gateway, ['PUT', '/api/profiles/mine', { device_class: 'gpu' }], 409, 'profiles.in_use', /would no longer fit/)
  t.equal(await gateway.file('etc/svc/profiles.toml'), OWN)

  await gateway.call('POST', '/api/slots/agent/load')
  t.equal((await gateway.call('GET', '/api/slots/agent')).json.config_drift, false)
  t.equal((await gateway.call('PUT', '/api/profiles/mine', { image: 'example.com/engine:2' })).status, 200)
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { config_drift: true, state: 'ready', image: 'example.com/engine:2' })
  await gateway.call('POST', '/api/slots/agent/restart')
  t.equal((await gateway.call('GET', '/api/slots/agent')).json.config_drift, false)

  await gateway.call('PUT', '/api/slots/agent/config', { profile: null })
  t.equal((await gateway.call('DELETE', '/api/profiles/mine')).status, 204)
})

t.test('a profile survives the round trip through an envelope', async t => {
  const gateway = await api(t, { files: { 'etc/svc/profiles.toml': OWN } })
  const { json: envelope } = await gateway.call('POST', '/api/profiles/mine/export')
  t.match(envelope, {
    kind: 'svc.profile', schema_version: 1, name: 'mine', exported_at: /^\d{4}-.*Z$/, checksum: /^sha256:[0-9a-f]{64}$/,
    profile: { image: 'example.com/engine:1', flags: '-fa on', device_class: 'cpu' }
  })
  const canonical = '{"device_class":"cpu","flags":"-fa on","image":"example.com/engine:1","intent":"","mtp":false,"quant":""}'
  t.equal(envelope.checksum, `sha256:${createHash('sha256').update(canonical).digest('hex')}`, 'sorted keys, nulls left out')
  t.equal((await gateway.call('POST', '/api/profiles/mine/export')).json.checksum, envelope.checksum)
  await refused(t, gateway, ['POST', '/api/profiles/none/export'], 404, 'profiles.not_found')

  const dry = async (more: object): Promise<unknown> => (await gateway.call('POST', '/api/profiles/import', { envelope, dry_run: true, ...more })).json
  t.same(await dry({}), { dry_run: true, valid: true, checksum_ok: true, name: 'mine', schema_version: 1, collides: true })
  t.match(await dry({ name: 'theirs' }), { name: 'theirs', collides: false })
  const reordered = { ...envelope, profile: Object.fromEntries(Object.entries(envelope.profile as object).reverse()) }
  t.match(await dry({ envelope: reordered }), { checksum_ok: true }, 'the order of keys means nothing')
  t.match(await dry({ envelope: { ...envelope, checksum: null } }), { checksum_ok: true }, 'no checksum is no wrong one')
  const forged = { ...envelope, profile: { ...envelope.profile, flags: '-fa off' } }
  t.match(await dry({ envelope: forged, name: 'theirs' }), { valid: false, checksum_ok: false })

  const post = (body: object): readonly [string, string, unknown] => ['POST', '/api/profiles/import', body]
  await refused(t, gateway, post({ envelope }), 400, 'profiles.import_no_name')
  await refused(t, gateway, post({ envelope, name: 'mine' }), 409, 'profiles.exists')
  await refused(t, gateway, post({ envelope, name: 'rocm' }), 409, 'profiles.exists')
  await refused(t, gateway, post({ envelope: forged, name: 'theirs' }), 400, 'profiles.bad_envelope', /checksum/)
  t.match((await gateway.call(...post({ envelope: { ...envelope, name: 'Not of ours' }, name: 'x', dry_run: true }))).json, { valid: true, name: 'x' }, 'a name that is replaced may be any')
  await refused(t, gateway, post({ envelope: { ...envelope, kind: 'svc.stack' }, name: 'x' }), 400, 'profiles.bad_envelope', /kind/)
  await refused(t, gateway, post({ envelope: { ...envelope, schema_version: 2 }, name: 'x' }), 400, 'profiles.bad_envelope', /update the gateway/)
  await refused(t, gateway, post({ envelope: { ...envelope, profile: { image: '' } }, name: 'x', dry_run: true }), 400, 'profiles.bad_envelope', /image/)
  await refused(t, gateway, post({ envelope: {}, name: 'x' }), 400, 'profiles.bad_envelope')
  await refused(t, gateway, post({ name: 'x' }), 400, 'validation.invalid')
  t.equal(await gateway.file('etc/svc/profiles.toml'), OWN, 'nothing was written')

  const { json: item, status } = await gateway.call(...post({ envelope: { ...envelope, more: 1 }, name: 'theirs' }))
  t.equal(status, 200)
  t.match(item, { name: 'theirs', flags: '-fa on', seed: false })
  t.equal((await gateway.call('POST', '/api/profiles/theirs/export')).json.checksum, envelope.checksum, 'it survives the round trip')
})

t.test('envelopes carry no secrets and no paths of this host', async t => {
  const gateway = await api(t)
  const flags = '--threads 8 --lora /home/me/secret.gguf --api-key=sk-verysecret12345 --hf-token hf_abcdefghijkl --max-tokens 5 --mmproj ~/x -1 -ot "exps=CPU"'
  await gateway.call('POST', '/api/profiles', { name: 'mine', image: 'vulkan', flags })
  const { json, text } = await gateway.call('POST', '/api/profiles/mine/export')
  t.notMatch(text, /secret|hf_abc|home|~/)
  t.equal(json.profile.flags, '--threads 8 --max-tokens 5 -ot exps=CPU')
  t.same(json.omitted, ['--lora', '--api-key', '--hf-token', '--mmproj'])
  t.equal((await gateway.call('GET', '/api/profiles/mine')).json.flags, flags, 'what is here stays')
})

t.test('flags and variables that the gateway owns are refused by every writer, in every spelling, and at the launch', async t => {
  const gateway = await api(t, {
    group: groupOf('api-profiles', 'api-slots', 'api-models', 'api-stacks', 'api-capabilities', 'capabilities', 'hub', 'library', 'pull', 'stack-catalog'),
    providers: [createFakeProviderPlugin(), llmServer],
    files: {
      'etc/svc/profiles.toml': `${OWN}[profile.old]\nimage = "example.com/x:1"\nflags = "--port 9999 -c 64"\ndevice_class = "cpu"\n`,
      'etc/svc/slots/real.toml': 'provider = "llm-server"\ndevice = "cpu"\nport = 8090\n[model]\ndefault = "fake-model"\n',
      'etc/svc/slots/keyed.toml': 'device = "cpu"\n[model]\ndefault = "fake-model"\n[server.env]\nLLAMA_API_KEY = "x"\n',
      'etc/svc/slots/bad.toml': 'provider = "llm-server"\ndevice = "cpu"\nport = 8091\nprofile = "old"\n[model]\ndefault = "fake-model"\n'
    }
  })
  const profile = (flags: string): object => ({ image: 'x', device_class: 'cpu', flags })
  const row = (more: object): object => ({ slot: 'real', model: 'fake-model', ...more })
  const envelope = { kind: 'svc.profile', schema_version: 1, profile: profile('--port 9999') }
  const all = '--port 9999 --model /etc/passwd -c 64 --host 0.0.0.0 --api-key x'
  const writers: ReadonlyArray<readonly [readonly [string, string, unknown], RegExp]> = [
    [['POST', '/api/profiles', { name: 'p', ...profile(all) }], /--port, --model, -c, --host, --api-key/],
    [['PUT', '/api/profiles/mine', { flags: '-m=/etc/passwd' }], /profile 'mine': -m is/],
    [['POST', '/api/profiles/import', { envelope, name: 'p' }], /--port/],
    [['PUT', '/api/models/fake-model', { defaults: { extra_args: '--ctx_size 64' } }], /fake-model.*--ctx_size/],
    [['POST', '/api/models', { id: 'more', path: '/usr', defaults: { extra_args: '-ngl 3' } }], /-ngl/],
    [['PUT', '/api/slots/real/config', { server: { extra_args: '--api-key=secret' } }], /--api-key is/],
    [['PUT', '/api/slots/real/config', { server: { env: { LLAMA_API_KEY: 'x', LLAMA_ARG_PORT: '1', OMP_NUM_THREADS: '2' } } }],
      /env of slot 'real': LLAMA_API_KEY, LLAMA_ARG_PORT are/],
    [['POST', '/api/slots', { name: 'late', device: 'cpu', server: { env: { LLAMA_ARG_MODEL: '/etc/passwd' } } }], /LLAMA_ARG_MODEL is/],
    [['PUT', '/api/slots/real/config', { profile: 'old' }], /profile 'old': --port, -c/],
    [['POST', '/api/slots', { name: 'late', device: 'cpu', server: { extra_args: ['--gpt-oss-20b-default'] } }], /gpt-oss/],
    [['POST', '/api/stacks', { slug: 's', stack: { name: 's', slots: [row({ server_extra_args: '--host 0.0.0.0' })] } }], /--host/],
    [['POST', '/api/stacks', { slug: 's', stack: { name: 's', profiles: { p: profile('--alias x') } } }], /--alias/]
  ]
  for (const [call, message] of writers) await refused(t, gateway, call, 400, 'slot.managed_arg_denied', message)
  t.equal((await gateway.call('POST', '/api/profiles', { name: 'layers', ...profile('-ngl 12 --threads 4') })).status, 201,
    'what a field of the slot overrides may be preset')
  t.match((await gateway.call('PUT', '/api/models/fake-model', { name: 'Fake' })).status, 200)

  await refused(t, gateway, ['GET', '/api/slots/bad/resolved'], 400, 'slot.managed_arg_denied', /old/)
  t.match((await gateway.call('POST', '/api/slots/bad/load')).json.error.message, /profile 'old': --port, -c are set by the gateway/)
  t.match((await gateway.call('POST', '/api/slots/keyed/load')).json.error.message,
    /env of slot 'keyed': LLAMA_API_KEY is set by the gateway/, 'a variable in a file that was written by hand')
  t.same(await gateway.runtime.list({}), [], 'and nothing was started')
})
