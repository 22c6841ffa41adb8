import t from 'tap'
import { bodyChecksum } from '../../../../kernel/contract/index.js'
import { refused } from '../support.js'
import { CPU_ONLY, stack, stacksApi } from './host.js'

t.test('the catalogue: built in, created, replaced, deleted', async t => {
  const gateway = await stacksApi(t)
  const { json } = await gateway.call('GET', '/api/stacks')
  t.match(json, { active: null, drift: 'none' })
  t.match(json.stacks.map(({ slug, seed, active, drift }: Record<string, unknown>) => [slug, seed, active, drift]),
    [['saber', true, false, 'none'], ['forge', true, false, 'none'], ['pi', true, false, 'none']])
  const created = await gateway.call('POST', '/api/stacks', { slug: 'mine', stack })
  t.equal(created.status, 201, created.text)
  t.match(created.json, {
    slug: 'mine', seed: false, active: false, drift: 'none', name: 'Mine', svc_version: /^\d/,
    profiles: { mine: { image: 'example.com/x:1', backend: 'vulkan' } },
    models: { coder: { id: 'coder', hf_repo: 'some/coder', hf_filename: 'coder.gguf', quant: 'Q4_K_M', size_bytes: 7, mmproj: 'present' }, nomic: { id: 'nomic' } }
  }, 'with all that it refers to')
  t.notMatch(created.text, '/secret/place')
  t.match(await gateway.file('etc/svc/stacks.toml'), /\[stack\.mine\]/)
  const replaced = await gateway.call('PUT', '/api/stacks/mine', { name: 'Other', slots: [{ slot: 'agent', model: 'small' }] })
  t.match(replaced.json, { name: 'Other', slots: [{ slot: 'agent', model: 'small' }] })
  t.same(Object.keys(replaced.json.models), ['small'])
  t.equal((await gateway.call('DELETE', '/api/stacks/mine')).status, 204)
  await refused(t, gateway, ['GET', '/api/stacks/mine'], 404, 'stacks.not_found', /GET \/api\/stacks/)
  t.match(gateway.audit().filter(({ category }) => category === 'stack').map(({ action, target, outcome }) => [action, target, outcome]),
    [['stack.delete', 'mine', 'ok'], ['stack.edit', 'mine', 'ok'], ['stack.create', 'mine', 'ok']])
})

t.test('invalid, duplicate and built-in stacks are refused with their code', async t => {
  const gateway = await stacksApi(t)
  t.equal((await gateway.call('POST', '/api/stacks', { slug: 'mine', stack })).status, 201)
  const row = { slot: 'agent', model: 'small' }
  const cases: ReadonlyArray<readonly [readonly [string, string, unknown?], number, string, RegExp?]> = [
    [['POST', '/api/stacks', { slug: 'mine', stack }], 409, 'stacks.exists'],
    [['POST', '/api/stacks', { slug: 'saber', stack }], 409, 'stacks.seed_immutable'],
    [['POST', '/api/stacks', { slug: 'Bad Slug', stack }], 409, 'stacks.invalid_name'],
    [['POST', '/api/stacks', { slug: '__proto__', stack }], 409, 'stacks.invalid_name'],
    [['POST', '/api/stacks', { slug: 'x' }], 400, 'validation.invalid', /stack/],
    [['POST', '/api/stacks', { slug: 'x', stack: { name: 'x', slots: [row, row] } }], 400, 'validation.invalid', /earlier row/],
    [['POST', '/api/stacks', { slug: 'x', stack: { name: 'x', slots: [{ ...row, modle: 'y' }] } }], 400, 'validation.unknown_keys'],
    [['POST', '/api/stacks', { slug: 'x', stack: { name: 'x', slots: [{ ...row, server_extra_args: '--a "b' }] } }], 400, 'validation.invalid', /never closed/],
    [['PUT', '/api/stacks/pi', stack], 409, 'stacks.seed_immutable', /another slug/],
    [['PUT', '/api/stacks/none', stack], 404, 'stacks.not_found'],
    [['DELETE', '/api/stacks/forge'], 409, 'stacks.seed_immutable'],
    [['DELETE', '/api/stacks/none'], 404, 'stacks.not_found'],
    [['POST', '/api/stacks/none/export'], 404, 'stacks.not_found'],
    [['POST', '/api/stacks/none/apply?dry_run=maybe'], 400, 'validation.invalid'],
    [['POST', '/api/stacks/snapshot', { name: 'x', slug: 'mine' }], 409, 'stacks.exists'],
    [['POST', '/api/stacks/snapshot', { name: '' }], 400, 'validation.invalid']
  ]
  const before = await gateway.file('etc/svc/stacks.toml')
  for (const [call, status, code, message] of cases) await refused(t, gateway, call, status, code, message)
  t.equal(await gateway.file('etc/svc/stacks.toml'), before)
})

t.test('an exported stack has no path and no secret, and its import on another host says what is missing there', async t => {
  const here = await stacksApi(t, { 'etc/svc/api.env': 'LAB_KEY="very-secret-word"\n' })
  const slots = [
    { slot: 'agent', model: '/home/me/model.gguf', server_extra_args: '-fa on --lora /home/me/l.bin --api-key sk-12345678901', profile: 'mine' },
    { slot: 'helper', model: 'coder', server_extra_args: ['--x', 'very-secret-word'], capabilities: [{ child: 'embed', model: 'nomic' }] }
  ]
  await here.call('POST', '/api/stacks', { slug: 'mine', stack: { name: 'Mine', description: 'with very-secret-word', slots } })
  const sealed = await here.call('POST', '/api/stacks/mine/export')
  t.match(sealed.json, {
    kind: 'svc.stack', schema_version: 1, svc_version: /^\d/, exported_at: /^\d{4}-/, checksum: /^sha256:[0-9a-f]{64}$/,
    omitted: ['slot agent: --lora', 'slot agent: --api-key'], stack: { slots: [{ model: 'model.gguf', server_extra_args: '-fa on' }, { model: 'coder' }] }
  })
  for (const leak of ['/home/me', 'sk-123', 'very-secret', '/secret/place', '/dev/null']) t.notMatch(sealed.text, leak)
  t.equal(sealed.json.checksum, bodyChecksum(sealed.json.stack))
  t.equal((await here.call('POST', '/api/stacks/mine/export')).json.checksum, sealed.json.checksum, 'the time of the export does not count')
  const stored = (await here.call('GET', '/api/stacks/mine')).json
  t.match(stored.slots[0], { model: '/home/me/model.gguf' }, 'what is kept here keeps its paths')

  const there = await stacksApi(t, {
    'etc/svc/profiles.toml': '[profile.other]\nimage = "example.com/z:1"\ndevice_class = "cpu"\n',
    'var/lib/svc/registry/registry.toml': '[models.nomic]\npath = "/dev/null"\ncapabilities = ["embed"]\n'
  })
  const report = await there.call('POST', '/api/stacks/import', { envelope: sealed.json, dry_run: true, slug: 'mine' })
  t.same(report.json, {
    dry_run: true, valid: true, checksum_ok: true, name: 'Mine', schema_version: 1, collides: false,
    resolutions: [
      { model_id: 'model.gguf', status: 'unresolvable', hf_repo: '', hf_filename: '' },
      { model_id: 'coder', status: 'pullable', hf_repo: 'some/coder', hf_filename: 'coder.gguf' },
      { model_id: 'nomic', status: 'present', hf_repo: '', hf_filename: '' }
    ],
    present: ['nomic'], pullable: ['coder'], unresolvable: ['model.gguf'], profiles: [{ name: 'mine', status: 'created' }]
  })
  await refused(t, there, ['GET', '/api/stacks/mine'], 404, 'stacks.not_found')
  const imported = await there.call('POST', '/api/stacks/import', { envelope: { ...sealed.json, extra: 1 }, slug: 'mine' })
  t.match(imported.json, { dry_run: false, stack: { slug: 'mine', name: 'Mine', seed: false }, pullable: ['coder'], profiles: [{ name: 'mine', status: 'created' }] })
  t.match((await there.call('GET', '/api/profiles/mine')).json, { image: 'example.com/x:1' })
  t.equal((await there.call('POST', '/api/stacks/mine/export')).json.checksum, sealed.json.checksum, 'it came as it left')
  await there.call('PUT', '/api/profiles/mine', { image: 'example.com/local:1' })
  t.match((await there.call('POST', '/api/stacks/import', { envelope: sealed.json, slug: 'again' })).json, { profiles: [{ name: 'mine', status: 'local' }] })
  t.match((await there.call('GET', '/api/profiles/mine')).json, { image: 'example.com/local:1' }, 'the local profile wins')
})

t.test('an envelope that is invalid or was changed is refused', async t => {
  const gateway = await stacksApi(t)
  const { json: good } = await gateway.call('POST', '/api/stacks/saber/export')
  t.same(Object.keys(good.stack.profiles), ['rocm', 'vulkan'], 'built-in ones carry what they refer to')
  t.match((await gateway.call('POST', '/api/stacks/import', { envelope: { ...good, checksum: undefined }, slug: 'copy' })).json, { dry_run: false }, 'no checksum is no wrong one')
  const changed = { ...good, stack: { ...good.stack, name: 'changed' } }
  t.match((await gateway.call('POST', '/api/stacks/import', { envelope: changed, dry_run: true })).json, { valid: false, checksum_ok: false, name: 'changed' })
  const bad = async (envelope: unknown, status: number, code: string, message: RegExp, more: object = { slug: 'x' }): Promise<void> => {
    await refused(t, gateway, ['POST', '/api/stacks/import', { envelope, ...more }], status, code, message)
  }
  await bad(changed, 400, 'stacks.bad_envelope', /checksum is wrong/)
  await bad({ ...good, kind: 'svc.profile' }, 400, 'stacks.bad_envelope', /kind/)
  await bad({ ...good, stack: { ...good.stack, more: 1 } }, 400, 'stacks.bad_envelope', /stack/)
  await bad({}, 400, 'stacks.bad_envelope', /kind/)
  await bad({ ...good, schema_version: 2 }, 400, 'stacks.envelope_too_new', /update the gateway/)
  await bad({ ...good, stack: { ...good.stack, schema_version: 9 } }, 400, 'stacks.envelope_too_new', /format 9/)
  await bad(good, 400, 'stacks.import_no_slug', /slug/, {})
  await bad(good, 409, 'stacks.exists', /PUT/, { slug: 'copy' })
  await bad(good, 409, 'stacks.invalid_name', /lowercase/, { slug: 'No Slug' })
})

t.test('a snapshot, and applying it, changes nothing', async t => {
  const gateway = await stacksApi(t, {
    'etc/svc/slots/vec.toml': 'type = "embedding"\nprovider = "llm-server"\ndevice = "cpu"\nport = 8083\n[model]\ndefault = "nomic"\n',
    'etc/svc/slots/off.toml': 'provider = "llm-server"\ndevice = "cpu"\nport = 8084\nenabled = false\n[model]\ndefault = "small"\n',
    'etc/svc/slots/bare.toml': 'provider = "llm-server"\ndevice = "cpu"\nport = 8085\n',
    'etc/svc/slots/gpu.toml':
      'provider = "llm-server"\ndevice = "gpu-vulkan"\nprofile = "mine"\nport = 8086\nmtp = false\nextra_args = "-fa on"\n' +
      '[model]\ndefault = "small"\n'
  })
  t.equal((await gateway.call('POST', '/api/capabilities/embed/embed', { enabled: true, model: 'nomic', device: 'cpu' })).status, 200)
  const shown = await gateway.call('POST', '/api/stacks/snapshot', { name: 'Now', description: 'as it is' })
  t.match(shown.json, { created: false, stack: { name: 'Now', description: 'as it is', profiles: { mine: {} }, models: { small: {} } } })
  t.same(shown.json.stack.slots.map((row: Record<string, unknown[]>) => [row.slot, row.type, row.capabilities!.length]),
    [['agent', null, 1], ['gpu', null, 0], ['old', null, 0], ['vec', 'embedding', 0]])
  t.match(shown.json.stack.slots[1], { mtp: false, server_extra_args: '-fa on', profile: 'mine', vision: true })
  const created = await gateway.call('POST', '/api/stacks', { slug: 'a', stack: shown.json.stack })
  t.equal(created.status, 201, created.text)
  const kept = await gateway.call('POST', '/api/stacks/snapshot', { name: 'Now', slug: 'b' })
  t.match(kept.json, { created: true, stack: { slug: 'b', seed: false } })
  for (const slug of ['a', 'b']) {
    const preview = (await gateway.call('POST', `/api/stacks/${slug}/apply?dry_run=1`)).json
    t.ok(preview.summary.every((line: string) => line.startsWith('load slot ')), slug)
    t.same(preview.creates, [])
    t.notOk(preview.changes.some(({ changed }: { changed: boolean }) => changed))
  }
})

t.test('a model that only an engine without a device here has is not here', async t => {
  for (const [gateway, status, lacks] of [[await stacksApi(t), 'present', false], [await stacksApi(t, CPU_ONLY, { deviceNodes: [] }), 'unresolvable', true]] as const) {
    await gateway.call('POST', '/api/stacks', { slug: 'mine', stack: { name: 'Mine', slots: [{ slot: 'vec', type: 'embedding', model: 'npu-embed', device: 'cpu' }] } })
    const { json: envelope } = await gateway.call('POST', '/api/stacks/mine/export')
    t.match((await gateway.call('POST', '/api/stacks/import', { envelope, dry_run: true })).json, { resolutions: [{ model_id: 'npu-embed', status }] })
    const { stacks } = (await gateway.call('GET', '/api/stacks')).json
    t.equal(stacks.some(({ seed, lacks }: { seed: boolean, lacks: string[] }) => seed && lacks.length > 0), lacks, 'and a built-in stack says what it would need')
  }
})
