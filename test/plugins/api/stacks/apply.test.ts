import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LABEL_SLOT, type EngineSpec } from '../../../../kernel/contract/provider/engine-runtime.js'
import { createTestGateway, FakeEngineRuntime } from '../../../../kernel/testing/index.js'
import { capabilityChoices } from '../../../../plugins/services/capabilities/ref.js'
import { engines } from '../capabilities/host.js'
import { apiPlugins, type Answer, type Api } from '../support.js'
import { agreement, DEVICE_NODES, files, PORT_POOL, stack, stacksApi } from './host.js'

const states = (gateway: Api): Record<string, string> =>
  Object.fromEntries(gateway.slots.names().map(name => [name, gateway.slots.status(name).state]))

function etc (gateway: Api): Record<string, string> {
  const folder = join(gateway.home, 'etc/svc')
  const names = [...readdirSync(folder), ...readdirSync(join(folder, 'slots')).map(name => `slots/${name}`)]
  return Object.fromEntries(names.filter(name => name.endsWith('.toml')).map(name => [name, readFileSync(join(folder, name), 'utf8')]))
}

async function made (t: Test, more: Readonly<Record<string, string>> = {}, body: object = stack): Promise<Api> {
  const gateway = await stacksApi(t, more)
  const created = await gateway.call('POST', '/api/stacks', { slug: 'mine', stack: body })
  t.equal(created.status, 201, created.text)
  return gateway
}

const apply = (gateway: Api, slug = 'mine', dryRun = false, force = false): Promise<Answer> =>
  gateway.call('POST', `/api/stacks/${slug}/apply?dry_run=${dryRun}&force=${force}`)

t.test('a dry run tells what apply then does; what the stack does not name goes', async t => {
  const gateway = await made(t)
  await gateway.slots.load('old')
  await gateway.slots.load('agent')
  const before = etc(gateway)
  const preview = await apply(gateway, 'mine', true)
  t.equal(preview.status, 200, preview.text)
  t.match(preview.json, {
    stack: 'mine', dry_run: true, creates: ['helper', 'embed'], unloads: ['old'], profiles: { length: 0 }, warnings: { length: 0 },
    changes: [{ slot: 'agent', before_model: 'chatty', after_model: 'coder', changed: true }, { slot: 'helper', before_model: null, after_model: 'small' }, { slot: 'embed' }],
    capabilities: [{ child: 'embed', slot: 'embed', before: null, after: { device: 'cpu', provider: 'llm-server', model: 'nomic', enabled: true } }]
  })
  t.match(preview.json.summary, [
    /^change slot agent: model chatty -> coder, device cpu -> gpu-vulkan, profile unset -> mine, mtp unset -> true/,
    'create slot helper with model small', /create slot embed/, 'embed by slot embed: nomic on cpu', 'unload slot old'
  ])
  t.same(etc(gateway), before, 'nothing is written')
  t.same([states(gateway).old, states(gateway).agent], ['ready', 'ready'])

  const applied = await apply(gateway)
  t.equal(applied.status, 200, applied.text)
  t.same(agreement(applied.json), agreement(preview.json))
  t.match(applied.json.converged, { loaded: ['helper'], swapped: ['agent'], reloaded: { length: 0 }, unloaded: ['old'], capabilities_applied: ['embed'], errors: { length: 0 } })
  t.same(states(gateway), { agent: 'ready', embed: 'ready', helper: 'ready', old: 'offline' })
  t.equal(gateway.slots.status('agent').modelId, 'coder')
  const agent = await gateway.file('etc/svc/slots/agent.toml')
  t.match(agent, /^# the first one\n[^]*device = "gpu-vulkan"\nport = 8081 # fixed\n/, 'comments stay')
  t.match(gateway.slots.config('agent'), { mtp: true, vision: false, profile: 'mine', server: { extra_args: '--flash-attn on' } })
  t.match((await gateway.call('GET', '/api/stacks')).json, { active: 'mine', drift: 'clean' })
  t.match(gateway.audit().find(({ action }) => action === 'stack.apply'), {
    target: 'mine', outcome: 'ok', message: /loaded helper; swapped agent; unloaded old/, after: { created: ['helper', 'embed'] }
  })
  const { events } = gateway.gateway.kernel().events.list({ type: 'stack.*' })
  t.match(events.map(({ type }) => type), ['stack.created', 'stack.applied', 'stack.converged'])

  const settled = etc(gateway)
  const again = await apply(gateway)
  t.same(etc(gateway), settled, 'to apply it again changes nothing')
  t.match(again.json, { summary: ['no change'], created: { length: 0 }, converged: { loaded: { length: 0 }, swapped: { length: 0 }, reloaded: { length: 0 }, skipped: ['agent', 'helper'], unloaded: { length: 0 } } })
  t.notOk(again.json.changes.some(({ changed }: { changed: boolean }) => changed))
})

t.test('a stack counts as modified when a slot differs from it', async t => {
  const gateway = await made(t)
  const list = async (): Promise<[string | null, string]> => {
    const { json } = await gateway.call('GET', '/api/stacks')
    return [json.active, json.drift]
  }
  t.same(await list(), [null, 'none'])
  t.match((await gateway.call('GET', '/api/stacks/mine')).json, { active: false, drift: 'none' })
  await apply(gateway)
  t.same(await list(), ['mine', 'clean'])
  t.match((await gateway.call('GET', '/api/stacks/mine')).json, { active: true, drift: 'clean' })
  t.match((await gateway.call('GET', '/api/stacks/saber')).json, { active: false, drift: 'none' })
  await gateway.slots.update('old', { idle_timeout_s: 7 })
  t.same(await list(), ['mine', 'clean'], 'a slot that it does not name')
  await gateway.slots.update('agent', { idle_timeout_s: 7 })
  t.same(await list(), ['mine', 'modified'])
  await gateway.slots.update('agent', { idle_timeout_s: null })
  t.same(await list(), ['mine', 'clean'])
  await gateway.call('POST', '/api/capabilities/embed/embed', { enabled: false })
  t.same(await list(), ['mine', 'modified'], 'a capability of it')
  await apply(gateway)
  t.same(await list(), ['mine', 'clean'])
  await gateway.call('PUT', '/api/stacks/mine', { ...stack, slots: stack.slots.slice(0, 1) })
  t.same(await list(), ['mine', 'modified'], 'the stack itself')
  await gateway.call('DELETE', '/api/stacks/mine')
  t.same(await list(), ['mine', 'modified'], 'the stack is gone')
})

t.test('what the guards refuse changes nothing, and a dry run refuses it too', async t => {
  const npu = 'type = "llm"\nprovider = "npu-rt"\ndevice = "npu"\nport = 8088\n[model]\ndefault = "npu-only"\n'
  const gateway = await stacksApi(t, { 'etc/svc/slots/flm.toml': npu })
  const helper = { slot: 'helper', model: 'small', device: 'cpu' }
  const cases: ReadonlyArray<[object, number, string]> = [
    [{ slot: 'second', model: 'npu-only', device: 'npu', provider: 'npu-rt' }, 409, 'slot.npu_exclusivity_violation'],
    [{ slot: 'agent', model: 'coder', device: 'cpu', profile: 'none' }, 404, 'profiles.not_found'],
    [{ slot: 'agent', model: 'coder', profile: 'tts-gpu' }, 400, 'slot.config_error']
  ]
  const before = etc(gateway)
  for (const [i, [row, status, code]] of cases.entries()) {
    t.equal((await gateway.call('POST', '/api/stacks', { slug: `s${i}`, stack: { name: 'x', slots: [helper, row] } })).status, 201)
    for (const dryRun of [true, false]) {
      const refused = await apply(gateway, `s${i}`, dryRun)
      t.match([refused.status, refused.json.error.code], [status, code], `${code} ${dryRun} ${refused.text}`)
    }
  }
  const { 'stacks.toml': _, ...now } = etc(gateway)
  t.same(now, before)
  t.notOk(gateway.slots.names().includes('helper'))
  t.match((await gateway.call('GET', '/api/stacks')).json, { active: null, drift: 'none' })
  t.match(gateway.audit().find(({ action }) => action === 'stack.apply'), { outcome: 'error' })
  t.match((await apply(gateway, 'nothing')).json.error.code, 'stacks.not_found')
})

t.test('what cannot be had is told, and the rest is in force', async t => {
  const gateway = await made(t, {}, {
    name: 'Far',
    slots: [{
      slot: 'agent', model: 'not-here', device: 'cpu',
      capabilities: [{ child: 'embed', model: 'unheard-of' }, { child: 'rerank', model: 'judge', device: 'cpu' }, { child: 'tts', enabled: false }]
    }]
  })
  const preview = await apply(gateway, 'mine', true)
  t.match(preview.json.warnings, [
    /capability:embed is not changed: 'unheard-of' is not a model for embed/, /model 'not-here' is not on this host, and its source is unknown/, /unheard-of/
  ])
  const applied = await apply(gateway, 'mine', false, true)
  t.same(agreement(applied.json), agreement(preview.json))
  t.match(applied.json.converged.errors, [{ target: 'capability:embed', error: /not a model for embed/ }, { target: 'slot:agent', error: /not-here/ }])
  t.same(applied.json.converged.capabilities_applied, ['rerank'])
  t.match((await gateway.call('GET', '/api/stacks')).json, { active: 'mine', drift: 'degraded' })
  t.equal(capabilityChoices.of(gateway.gateway.kernel().config.snapshot).embed, undefined)
  t.equal(states(gateway).rerank, 'ready')
})

t.test('an apply that would leave a serving slot dead is refused unless it is forced', async t => {
  const gateway = await made(t, {}, {
    name: 'Elsewhere',
    slots: [
      { slot: 'agent', model: 'coder', device: 'gpu-cuda', profile: 'cuda', capabilities: [{ child: 'embed', model: 'nomic', device: 'gpu-cuda' }] },
      { slot: 'old', model: 'far', device: 'cpu' }, { slot: 'fresh', model: 'small', device: 'gpu-cuda' }
    ]
  })
  await gateway.slots.load('agent')
  const before = etc(gateway)
  const preview = await apply(gateway, 'mine', true)
  t.match(preview.json.troubles, [
    { slot: 'agent', what: 'device', message: /device gpu-cuda is missing/, serves: true },
    { slot: 'old', what: 'model', message: /model 'far' of slot 'old' is not in the registry/, serves: true },
    { slot: 'fresh', what: 'device', serves: false }
  ])
  t.match(preview.json.warnings, [/slot agent cannot start here: device gpu-cuda/, /slot fresh cannot start here/, /capability:embed/, /model 'far' is not on this host/])
  const refused = await apply(gateway)
  t.match([refused.status, refused.json.error], [409, {
    code: 'stacks.would_break', message: /stack 'mine' would leave slot 'agent' unable to start: device gpu-cuda is missing.*; and 1 more/, details: { troubles: [{}, {}] }
  }])
  t.same(etc(gateway), before, 'nothing is written')
  t.equal(states(gateway).agent, 'ready', 'and it goes on serving')
  t.match((await gateway.call('GET', '/api/stacks')).json.stacks.map(({ slug, lacks }: Record<string, unknown>) => [slug, lacks]),
    [['saber', { length: 0 }], ['forge', { length: 0 }], ['pi', { length: 0 }], ['mine', ['gpu-cuda']]])
  t.match((await apply(gateway, 'mine', false, true)).json, { converged: { errors: [{ target: 'capability:embed' }, { target: 'slot:agent' }, {}, {}] } })
})

t.test('a device that is not here is told although the model is unknown too', async t => {
  const gateway = await made(t, {}, { name: 'Elsewhere', slots: [{ slot: 'agent', model: 'far', device: 'gpu-cuda', profile: 'cuda' }] })
  const { json } = await apply(gateway, 'mine', true)
  t.match(json.troubles.map(({ what }: { what: string }) => what), ['device', 'model'])
  t.match(json.warnings, [/slot agent cannot start here: device gpu-cuda is missing/])
})

t.test('a row whose device and profile contradict each other is refused when the stack is written', async t => {
  const gateway = await made(t)
  const rows = [
    { slot: 'agent', model: 'coder', device: 'gpu-rocm', profile: 'mine' }, { slot: 'agent', model: 'coder', device: 'cpu', profile: 'rocm' },
    { slot: 'agent', model: 'coder', device: 'gpu-rocm', profile: 'copy' }, { slot: 'agent', model: 'coder', device: 'cpu', provider: 'tts-gpu' }
  ]
  for (const row of rows) {
    const body = { name: 'x', slots: [{ slot: 'helper', model: 'small' }, row], profiles: { copy: { image: 'x', device_class: 'gpu', backend: 'cuda' } } }
    for (const [method, url, payload] of [['POST', '/api/stacks', { slug: 'new', stack: body }], ['PUT', '/api/stacks/mine', body]] as const) {
      const { status, json } = await gateway.call(method, url, payload)
      t.match([status, json.error.code, json.error.param], [400, 'slot.config_error', /^slots\.1\./], `${method} ${JSON.stringify(row)}`)
    }
  }
})

t.test('what a dry run says of the active stack agrees with its drift', async t => {
  const gateway = await made(t)
  const told = async (): Promise<[string, string[]]> => [
    (await gateway.call('GET', '/api/stacks')).json.drift, (await apply(gateway, 'mine', true)).json.summary
  ]
  await apply(gateway)
  t.same(await told(), ['clean', ['no change']])
  await gateway.slots.update('agent', { idle_timeout_s: 7 })
  t.match(await told(), ['modified', [/^keep changes made since it was applied/]])
  await gateway.slots.update('agent', { mtp: false })
  t.match(await told(), ['modified', ['change slot agent: mtp false -> true']])
  await apply(gateway)
  await gateway.slots.unload('agent')
  t.match(await told(), ['clean', ['load slot agent']])
})

t.test('profiles: a local one wins, a missing one comes from the stack', async t => {
  const copy = { image: 'example.com/y:1', device_class: 'cpu' }
  const gateway = await made(t, {}, {
    name: 'x',
    profiles: { fresh: copy, mine: { image: 'other', device_class: 'gpu', backend: 'vulkan' }, idle: copy },
    slots: [{ slot: 'agent', model: 'coder', device: 'cpu', profile: 'fresh' }, { slot: 'gpu', model: 'small', device: 'gpu-vulkan', profile: 'mine' }]
  })
  const preview = await apply(gateway, 'mine', true)
  t.match(preview.json, { profiles: ['fresh'], warnings: [/profile 'mine' of this host differs/] })
  t.equal((await gateway.call('GET', '/api/profiles/fresh')).status, 404)
  const applied = await apply(gateway)
  t.same(agreement(applied.json), agreement(preview.json))
  t.match((await gateway.call('GET', '/api/profiles/fresh')).json, { image: 'example.com/y:1', used_by: ['agent'] })
  t.match((await gateway.call('GET', '/api/profiles/mine')).json, { image: 'example.com/x:1' })
  t.equal((await gateway.call('GET', '/api/profiles/idle')).status, 404, 'one that no row names')
})

t.test('what a row leaves open', async t => {
  const gateway = await made(t, {
    'etc/svc/slots/agent.toml': 'provider = "llm-server"\ndevice = "gpu-vulkan"\nprofile = "vulkan"\nport = 8081\nmtp = true\nextra_args = ["--a"]\nrole = "utility"\n[model]\ndefault = "chatty"\n'
  }, { name: 'x', slots: [{ slot: 'agent', model: 'coder' }, { slot: 'new', model: 'picky', device: 'gpu-vulkan' }] })
  await apply(gateway)
  const config = gateway.slots.config('agent')
  t.match(config, { device: 'gpu-vulkan', profile: null, mtp: null, role: null, vision: false, server: { extra_args: { length: 0 } } })
  t.equal(gateway.slots.config('new').profile, 'mine', 'the profile that its model prefers')
  t.match((await apply(gateway)).json, { summary: ['no change'] })
  await gateway.slots.update('new', { profile: 'vulkan' })
  t.match((await apply(gateway)).json, { summary: ['change slot new: profile vulkan -> mine'] })
})

t.test('a row that does not name a profile keeps a chosen one as long as it suits', async t => {
  const gateway = await made(t, {
    'etc/svc/slots/agent.toml': 'provider = "llm-server"\ndevice = "gpu-vulkan"\nprofile = "mine"\nport = 8081\n[model]\ndefault = "chatty"\n'
  }, { name: 'x', slots: [{ slot: 'agent', model: 'coder' }] })
  t.match((await apply(gateway, 'mine', true)).json, { summary: ['change slot agent: model chatty -> coder, vision true -> false', 'load slot agent'] })
  await apply(gateway)
  t.match(gateway.slots.config('agent'), { profile: 'mine', model: { default: 'coder' } })
  await gateway.call('PUT', '/api/stacks/mine', { name: 'x', slots: [{ slot: 'agent', model: 'coder', device: 'cpu' }] })
  t.match((await apply(gateway)).json, { converged: { errors: { length: 0 } } })
  t.match(gateway.slots.config('agent'), { device: 'cpu', profile: null }, 'on another device it does not')
})

t.test('a slot that is about to start, and of which no engine is made yet, is not started after all', async t => {
  let reached = (): void => {}
  const held = new Promise<void>(resolve => { reached = resolve })
  let release = (): void => {}
  const released = new Promise<void>(resolve => { release = resolve })
  const gateway = await made(t)
  Object.assign(gateway.runtime, {
    assertPortFree: async ({ labels }: EngineSpec) => {
      if (labels[LABEL_SLOT] !== 'old') return
      reached()
      await released
    }
  })
  const load = gateway.slots.load('old').catch((error: unknown) => error)
  await held
  t.equal(states(gateway).old, 'offline', 'its state says nothing of it')
  const applied = apply(gateway)
  t.match(await load, { code: 'slot.stopped' })
  release()
  const { json } = await applied
  t.same([json.converged.unloaded, json.converged.errors], [['old'], []])
  t.same(states(gateway), { agent: 'ready', embed: 'ready', helper: 'ready', old: 'offline' })
  t.notOk(gateway.runtime.started.some(({ slot }) => slot === 'old'))
})

t.test('the stack that is applied last wins', async t => {
  const starting = new Map<string, () => void>()
  const held = new Promise<void>(resolve => { starting.set('agent', resolve) })
  let release = (): void => {}
  const released = new Promise<void>(resolve => { release = resolve })
  const gateway = await stacksApi(t, {}, {
    onStart: ({ slot }) => {
      starting.get(slot)?.()
      return slot === 'agent' ? released : undefined
    }
  })
  const next = { name: 'Next', slots: [{ slot: 'old', model: 'small', device: 'cpu' }] }
  for (const [slug, body] of Object.entries({ mine: stack, next })) await gateway.call('POST', '/api/stacks', { slug, stack: body })
  const first = apply(gateway)
  await held
  t.match((await gateway.call('GET', '/api/stacks')).json, { active: 'mine', drift: 'degraded' }, 'on its way')
  const second = apply(gateway, 'next')
  t.match((await first).json, { error: { code: 'stacks.superseded', message: /stack 'next' was applied in the meantime/ } })
  release()
  t.match((await second).json, { stack: 'next', converged: { loaded: ['old'], errors: { length: 0 } } })
  t.match((await gateway.call('GET', '/api/stacks')).json, { active: 'next', drift: 'clean' })
  t.match(states(gateway), { old: 'ready', agent: 'offline', helper: 'offline' })
})

t.test('a gateway that is stopped on the way: the next one goes on', async t => {
  const home = t.testdir()
  let reached = (): void => {}
  const held = new Promise<void>(resolve => { reached = resolve })
  let release = (): void => {}
  const released = new Promise<void>(resolve => { release = resolve })
  const options = { plugins: [...apiPlugins, ...engines], home, deviceNodes: DEVICE_NODES }
  const runtime = new FakeEngineRuntime({
    onStart: ({ slot }) => {
      if (slot !== 'helper') return
      reached()
      return released
    }
  })
  const first = await createTestGateway({ ...options, runtime, files: { 'etc/svc/svc.toml': `[slots]\n${PORT_POOL}`, ...files } })
  await first.fetch('/api/stacks', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ slug: 'mine', stack })
  })
  const answer = first.fetch('/api/stacks/mine/apply', { method: 'POST' }).then(response => response.status, () => null)
  await held
  const closed = first.close()
  t.not(await answer, 200)
  release()
  await closed
  const next = new FakeEngineRuntime()
  const second = await createTestGateway({ ...options, runtime: next })
  const { events } = second.gateway.kernel()
  const told = events.subscribe({ since: 0, type: 'stack.converged' }, AbortSignal.timeout(120_000))
  for await (const { type } of told) if (type === 'stack.converged') break
  t.match(await (await second.fetch('/api/stacks')).json(), { active: 'mine', drift: 'clean' })
  t.match(['agent', 'helper', 'embed'].map(name => second.slots.status(name).state), ['ready', 'ready', 'ready'])
  await second.close()
  for (const each of [runtime, next]) await each.destroy()
})
