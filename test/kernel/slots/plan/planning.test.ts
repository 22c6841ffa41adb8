import assert from 'node:assert/strict'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import fc from '../../../property.js'
import t from 'tap'
import {
  canonicalJson, type Device, type EngineProvider, type NamedProfile, type NamedSlotConfig, type SlotConfigInput,
  type SlotType
} from '../../../../kernel/contract/index.js'
import type { EngineInspection } from '../../../../kernel/contract/provider/engine-runtime.js'
import { LaidProviders } from '../../../../kernel/config/parts/laid-providers.js'
import { splitArgs } from '../../../../kernel/slots/plan/argv/flag-texts.js'
import { mtpFlags } from '../../../../plugins/providers/llm-server/mtp-flags.js'
import { contextSizeFor, hasContext, nativeContext } from '../../../../kernel/slots/plan/context/context-size.js'
import { deviceOfProfile } from '../../../../kernel/slots/plan/profile/device-profile.js'
import { idleTimeoutMs } from '../../../../kernel/slots/schedule/idle-policy.js'
import { planArgv, planLaunch, type LaunchPlan, type PlanInput } from '../../../../kernel/slots/plan/launch/launch-plan.js'
import { portCandidates, type PortClaims } from '../../../../kernel/slots/life/ports.js'
import { findProgram } from '../../../../kernel/runtime/programs/program-search.js'
import { chooseCandidate } from '../../../../kernel/slots/plan/launch/process-candidates.js'
import { profileOutlook } from '../../../../kernel/slots/plan/profile/profile-outlook.js'
import { profileMisfit } from '../../../../kernel/slots/plan/profile/profile-fit.js'
import { reconcileEngines } from '../../../../kernel/slots/life/reconcile.js'
import { laid, shippedProviders } from '../../../providers.js'
import { launchOf, modelOf, profileOf, providerOf, slotOf } from './launch-input.js'

t.test('context size: the slot, else the model up to 32768, else 8192; never silently 4096', async t => {
  const cases: Array<[name: string, slot: number | null, metadata: unknown, defaults: number | undefined, size: number]> = [
    ['the slot says it', 131072, 4096, 2048, 131072],
    ['the slot says little', 128, undefined, undefined, 128],
    ['the model file', null, 16384, 4096, 16384],
    ['a large model', null, 1_048_576, undefined, 32_768],
    ['a small model', null, 2048, undefined, 2048],
    ['only the registry row', null, undefined, 65_536, 32_768],
    ['a header that makes no sense', null, -5, 4096, 4096],
    ['a header that is no number', null, '8192', undefined, 8192],
    ['nobody knows', null, undefined, undefined, 8192]
  ]
  for (const [name, context_size, context_length, defaults, size] of cases) {
    const model = modelOf({ metadata: { context_length }, defaults: defaults === undefined ? {} : { context_size: defaults } })
    t.equal(contextSizeFor(slotOf({ model: { context_size } }), 'm', nativeContext(null, 'm', model)), size, name)
  }
  t.equal(contextSizeFor(slotOf(), null, null), 8192, 'no model')
  t.equal(nativeContext(null, null, null), null)
  const own = providerOf({ models: { canonical: id => id, contextSize: id => id === 'known' ? 512 : null, list: () => Promise.resolve([]) } })
  t.equal(nativeContext(own, 'known', modelOf()), 512, 'the engine\'s own models are not the registry\'s')
  t.equal(nativeContext(own, 'unknown', modelOf()), null)
  t.equal(nativeContext(own, null, null), null)
  const types: Array<[SlotType, boolean]> = [['llm', true], ['embedding', true], ['reranking', true], ['tts', false], ['transcription', false], ['image', false]]
  for (const [type, has] of types) t.equal(hasContext(slotOf({ type })), has, type)
})

t.test('profiles that do not suit a slot say why', async t => {
  const provider = providerOf({
    slotTypes: ['llm', 'embedding', 'reranking', 'image'],
    flags: { aliases: { pools: 'pooled', s: 'scores' }, modes: { pooled: 'embedding', scores: 'reranking' } }
  })
  const cases: Array<[name: string, profile: Parameters<typeof profileMisfit>[0], device: Device, type: SlotType,
    why: RegExp | null]> = [
    ['fits', profileOf({ backend: 'rocm' }), 'gpu-rocm', 'llm', null],
    ['of any GPU runtime', profileOf(), 'gpu-vulkan', 'llm', null],
    ['is not there', undefined, 'cpu', 'llm', /no such profile/],
    ['a type the provider does not run', profileOf(), 'gpu-rocm', 'tts', /runs no tts slots/],
    ['another device class', profileOf({ device_class: 'cpu' }), 'gpu-rocm', 'llm', /device class cpu, the slot's is gpu/],
    ['a GPU profile on the CPU', profileOf({ backend: 'rocm' }), 'cpu', 'llm', /device class gpu, the slot's is cpu/],
    ['another GPU runtime', profileOf({ backend: 'rocm' }), 'gpu-vulkan', 'llm', /for rocm, the slot's device is gpu-vulkan/],
    ['an image slot', profileOf({ device_class: 'img' }), 'gpu-rocm', 'image', null],
    ['an image slot with a GPU profile', profileOf(), 'gpu-rocm', 'image', /device class gpu, the slot's is img/],
    ['flags for embeddings on an llm slot', profileOf({ flags: '--pooled -b 1' }), 'gpu-rocm', 'llm', /bakes in embedding flags/],
    ['flags for embeddings on an embedding slot', profileOf({ flags: '-b 1 --pools=on' }), 'gpu-rocm', 'embedding', null],
    ['flags for reranking on an embedding slot', profileOf({ flags: '--scores' }), 'gpu-rocm', 'embedding', /bakes in reranking flags/],
    ['flags for reranking on a reranking slot', profileOf({ flags: '-s' }), 'gpu-rocm', 'reranking', null],
    ['flags that another engine reads so', profileOf({ flags: '--embedding --reranking' }), 'gpu-rocm', 'llm', null],
    ['an open quote, which a launch refuses', profileOf({ flags: '--pools \'' }), 'gpu-rocm', 'llm', /bakes in embedding flags/],
    ['a flag that only looks like it', profileOf({ flags: '--pooled-cache 1' }), 'gpu-rocm', 'llm', null]
  ]
  for (const [name, profile, device, type, why] of cases) {
    const misfit = profileMisfit(profile, device, type, provider, laid(provider))
    if (why === null) t.equal(misfit, null, name)
    else t.match(misfit, why, name)
  }
})

t.test('a profile is the engine\'s that brings it or its image, also beside another default', async t => {
  const vee = providerOf({
    name: 'vee', images: { seven: { tag: 'example.org/vee:7' } }, profiles: { fast: { image: 'seven' } }, defaultFor: [{ type: 'llm' }]
  })
  const brush = providerOf({
    name: 'brush', slotTypes: ['image'], profiles: { oil: { image: 'x', device_class: 'img' } }, defaultFor: [{ type: 'image' }]
  })
  const providers = new LaidProviders([
    ...shippedProviders.list().map(provider => ({ provider, isBuiltin: true })),
    ...[vee, brush].map(provider => ({ provider, isBuiltin: false }))
  ])
  const cases: Array<[name: string, profile: NamedProfile, provider: string]> = [
    ['a built-in one', providers.profiles.get('rocm')!, 'llm-server'],
    ['one of the package that is the default', providers.profiles.get('fast')!, 'vee'],
    ['one for images of a package', providers.profiles.get('oil')!, 'brush'],
    ['one with a built-in image', profileOf({ image: 'rocm' }), 'llm-server'],
    ['one with the image of a package', profileOf({ image: 'seven' }), 'vee'],
    ['a copy with another image', profileOf({ image: 'seven', cloned_from: 'rocm' }), 'vee'],
    ['a copy with an image of nobody', profileOf({ cloned_from: 'rocm' }), 'llm-server'],
    ['one of nobody', profileOf(), 'vee'],
    ['one of nobody for images', profileOf({ device_class: 'img' }), 'brush'],
    ['one of nobody for the NPU', profileOf({ device_class: 'npu' }), 'npu-rt']
  ]
  for (const [name, profile, provider] of cases) t.equal(profileOutlook(profile, providers).provider, provider, name)
  t.equal(profileMisfit(providers.profiles.get('rocm'), 'gpu-rocm', 'llm', vee, providers), 'it is for llm-server, the slot\'s provider is vee')
  const misfit = (name: string, type: SlotType): string | null =>
    profileMisfit(providers.profiles.get(name), 'gpu-rocm', type, providers.get('llm-server')!, providers)
  t.match(misfit('embed', 'llm'), /bakes in embedding flags/)
  t.match(misfit('rerank', 'embedding'), /bakes in reranking flags/)
  t.equal(misfit('embed', 'embedding'), null)
})

t.test('a profile that is chosen alone brings its device along, and a contradiction is refused', async t => {
  const rocm = profileOf({ backend: 'rocm' }, 'rocm')
  const cases: Array<[string, Device, typeof rocm | null, { device: boolean, profile: boolean }, Device | 'refused' | null]> = [
    ['they agree', 'gpu-rocm', rocm, { device: true, profile: true }, null],
    ['no profile', 'cpu', null, { device: true, profile: false }, null],
    ['a profile for any runtime', 'gpu-vulkan', profileOf(), { device: true, profile: true }, null],
    ['the profile changes, the device follows', 'gpu-vulkan', rocm, { device: false, profile: true }, 'gpu-rocm'],
    ['the device changes', 'gpu-vulkan', rocm, { device: true, profile: false }, null],
    ['a contradiction', 'gpu-vulkan', rocm, { device: true, profile: true }, 'refused'],
    ['a contradiction on the CPU', 'cpu', rocm, { device: true, profile: true }, 'refused'],
    ['neither is said', 'gpu-vulkan', rocm, { device: false, profile: false }, null]
  ]
  for (const [name, device, profile, said, expected] of cases) {
    if (expected === 'refused') t.throws(() => deviceOfProfile(device, profile, said), { code: 'slot.config_error', param: 'profile' }, name)
    else t.equal(deviceOfProfile(device, profile, said), expected, name)
  }
})

t.test('ports: what is preferred, then what nobody had, then what idle slots had last', async t => {
  const none: PortClaims = { held: new Set(), remembered: new Set(), preferred: [] }
  const claims = (more: Partial<PortClaims> = {}): PortClaims => ({ ...none, ...more })
  t.strictSame(portCandidates({ start: 8081, end: 8084 }, claims({ held: new Set([8082]) })), [8081, 8083, 8084])
  t.strictSame(portCandidates({ start: 8081, end: 8083 }, claims({ remembered: new Set([8081]), preferred: [8188] })),
    [8188, 8082, 8083, 8081])
  t.strictSame(portCandidates({ start: 9000, end: 9002 }, claims({ preferred: [9001], held: new Set([9001]) })), [9000, 9002])
})

t.test('a slot\'s idle time is its own, else the global one, unless others depend on it', async t => {
  const cases: Array<[string, SlotConfigInput, string, number, number | null]> = [
    ['the global one', {}, 'coder', 300, 300_000], ['the slot\'s own', { idle_timeout_s: 10 }, 'coder', 300, 10_000],
    ['0 is never', { idle_timeout_s: 0 }, 'coder', 300, null], ['globally 0', {}, 'coder', 0, null],
    ['globally 0, the slot\'s own', { idle_timeout_s: 7 }, 'coder', 0, 7_000], ['an anchor', {}, 'agent', 300, null], ['an anchor', {}, 'npu', 300, null],
    ['an anchor with its own', { idle_timeout_s: 5 }, 'utility', 300, 5_000], ['pinned', { pinned: true, idle_timeout_s: 5 }, 'coder', 300, null]
  ]
  const idle = (slot: NamedSlotConfig, globalS: number, provider: EngineProvider | null = null): number | null =>
    idleTimeoutMs({ slot, provider, device: slot.device ?? 'gpu-vulkan' }, globalS)
  for (const [name, config, slot, global, expected] of cases) t.equal(idle(slotOf(config, slot), global), expected, `${slot}: ${name}`)
  t.equal(idle(slotOf({ type: 'image' }, 'img'), 300), null, 'an image engine on the GPU')
  t.equal(idle(slotOf({ type: 'image', device: 'cpu' }, 'img'), 300), 300_000, 'and one on the CPU')
  const trio = providerOf({ children: [{ suffix: '-x', type: 'embedding', model: 'x', active: slot => slot.npu?.embed === true }] })
  t.equal(idle(slotOf({ npu: { embed: true } }, 'coder'), 300, trio), null, 'one whose process serves another slot')
  t.equal(idle(slotOf({}, 'coder'), 300, trio), 300_000, 'which is switched off')
})

function engine (id: string, slot: string, labels: Record<string, string> = {}, state: EngineInspection['state'] = 'running'): EngineInspection {
  return {
    id,
    name: id,
    labels: { 'svc.slot': slot, 'svc.config': 'h', 'svc.generation': '1', ...labels },
    state,
    exitCode: null,
    oomKilled: false,
    address: null,
    label: '',
    startedAt: null
  }
}

t.test('what is left of an earlier run is adopted or removed', async t => {
  const wanted = new Map<string, string | null>([['a', 'h'], ['off', null]])
  const plan = reconcileEngines([
    engine('old', 'a'), engine('young', 'a', { 'svc.generation': '7' }), engine('other', 'a', { 'svc.config': 'x', 'svc.generation': '9' }),
    engine('dead', 'a', { 'svc.generation': '8' }, 'exited'), engine('made', 'a', {}, 'created'), engine('stray', 'gone'), engine('disabled', 'off'),
    engine('nameless', 'a', { 'svc.generation': 'many' })
  ], wanted)
  t.strictSame(plan.adopt.map(({ slot, engine: { id } }) => [slot, id]), [['a', 'young']])
  t.strictSame(Object.fromEntries(plan.remove.map(({ engine: { id }, reason }) => [id, reason])), {
    old: 'a newer engine of its slot exists',
    nameless: 'a newer engine of its slot exists',
    other: 'the configuration of its slot has changed',
    dead: 'it is not running',
    made: 'it is not running',
    stray: 'its slot no longer exists',
    disabled: 'its slot is disabled, cannot be started or may not use its GPU'
  })
})

function planOf (input: Partial<PlanInput> = {}): LaunchPlan {
  return planLaunch({
    launch: launchOf(),
    provider: providerOf(),
    mtp: false,
    access: { devices: ['/dev/dri'], cdiDevices: [], groups: [44], securityOpts: [], env: { VISIBLE: '0', SHARED: 'access' } },
    image: { ref: 'example.org/engine:1', digest: null },
    publishHost: '127.0.0.1',
    ...input
  })
}

t.test('a launch plan merges flags and environment, and equal launches have equal hashes', async t => {
  t.test('merges provider, profile and extra_args; MTP lies below the profile\'s own flags', async t => {
    const launch = launchOf({
      profile: profileOf({ flags: '--threads 4 --spec-draft-n-max 9', backend: 'vulkan' }), slot: slotOf({ server: { extra_args: '--threads 8 --name "two words"' } })
    })
    const provider = providerOf({ flags: { mtp: mtpFlags } })
    const merged = planArgv(provider, launch, true)
    t.match(merged.argv.join(' '), /^--port 8081 --spec-type draft-mtp --spec-draft-device Vulkan0 .*--spec-draft-n-max 9 --ctx-size 8192 --threads 8 --name two words$/)
    t.strictSame(merged.argv.filter(word => word === '--spec-draft-n-max').length, 1)
    t.equal(planArgv(providerOf(), { ...launch, profile: null }, false).argv.join(' '), '--port 8081 --ctx-size 8192 --threads 8 --name two words')
    const forced = planArgv(provider, { ...launch, profile: null, device: 'gpu-cuda' }, true)
    t.match(forced.argv.join(' '), /--spec-draft-device CUDA0/, 'forced on without a profile')
    t.notMatch(planArgv(providerOf(), launch, true).argv.join(' '), /--spec-type/, 'an engine that has none gets no flags for it')
  })
  t.test('refuses what the gateway owns, and quotes that stay open', async t => {
    const extra = (extra_args: string | string[]): (() => unknown) => () => planArgv(providerOf(),
      launchOf({ slot: slotOf({ server: { extra_args } }) }), false)
    t.throws(extra('--ctx-size 1 -c 2'), { code: 'slot.managed_arg_denied', param: 'server.extra_args', details: { flags: ['--ctx-size', '-c'] } })
    t.throws(extra(['--port=1']), { code: 'slot.managed_arg_denied' })
    t.throws(extra('--name "open'), { code: 'slot.config_error', param: 'server.extra_args' })
    t.throws(() => splitArgs('\'', 'flags of profile x'), { message: /flags of profile x/ })
    t.strictSame(splitArgs(['as it is', '"'], 'x'), ['as it is', '"'], 'a list is taken word by word')
  })
  t.test('env: the slot\'s own wins over the device\'s, and that over the provider\'s', async t => {
    const provider = providerOf({ containerSpec: ({ argv }) => ({ command: argv, env: { OWN: 'provider', SHARED: 'provider', VISIBLE: 'provider' } }) })
    const launch = launchOf({ slot: slotOf({ server: { env: { VISIBLE: '1' } } }) })
    t.strictSame(planOf({ provider, launch }).env, { OWN: 'provider', SHARED: 'access', VISIBLE: '1' })
  })
  t.test('as a container: narrow, published, with an image', async t => {
    const { form } = planOf()
    t.match(form, {
      kind: 'container', image: 'example.org/engine:1', digest: null, network: 'bridge', publishHost: '127.0.0.1', ipc: 'private', devices: ['/dev/dri'], groups: [44]
    })
    const host = planOf({ provider: providerOf({ containerSpec: () => ({ command: [], network: 'host', image: 'own:2', devices: ['/dev/x'] }) }) })
    t.match(host.form, { network: 'host', publishHost: null, image: 'own:2', devices: ['/dev/dri', '/dev/x'] })
    t.throws(() => planOf({ image: null }), { code: 'slot.config_error', message: /no container image/ })
  })
  t.test('as a process: the provider\'s candidates', async t => {
    const launch = launchOf({ form: 'process', bindHost: '127.0.0.1' })
    const provider = providerOf({ processSpec: ({ argv }) => [{ command: 'engine', args: argv, label: 'engine' }] })
    t.match(planOf({ launch, provider, image: null }).form, { kind: 'candidates', candidates: [{ command: 'engine', args: ['--port', '8081', '--ctx-size', '8192'] }] })
    t.strictSame(planOf({ launch }).form, { kind: 'candidates', candidates: [] }, 'a provider that needs a container has none')
  })
  t.test('equal launches have equal hashes, whatever the order of their keys; any change shows', async t => {
    const env = (entries: Record<string, string>): string =>
      planOf({ launch: launchOf({ slot: slotOf({ server: { env: entries } }) }) }).configHash
    t.equal(env({ A: '1', B: '2' }), env({ B: '2', A: '1' }))
    const hashes = [
      planOf(), planOf({ launch: launchOf({ port: 8082 }) }), planOf({ launch: launchOf({ contextSize: 4096 }) }), planOf({ image: { ref: 'other', digest: null } }),
      planOf({ image: { ref: 'example.org/engine:1', digest: 'sha256:1' } }), planOf({ publishHost: '0.0.0.0' }),
      planOf({ launch: launchOf({ slot: slotOf({ server: { env: { A: '1' } } }) }) }), planOf({ launch: launchOf({ form: 'process' }) })
    ].map(plan => plan.configHash)
    t.equal(new Set(hashes).size, hashes.length)
    fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), value => {
      const shuffled = Object.fromEntries(Object.entries(value).reverse())
      assert.equal(canonicalJson(shuffled), canonicalJson(value))
      assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)))
    }))
  })
})

t.test('the first program that is on this host is taken', async t => {
  const dir = t.testdir({ bin: { engine: '#!/bin/sh\n', plain: 'no program' }, weights: 'x' })
  await chmod(join(dir, 'bin/engine'), 0o755)
  const path = `relative/bin:${join(dir, 'nowhere')}:${join(dir, 'bin')}`
  t.equal(await findProgram('engine', path), join(dir, 'bin/engine'))
  t.equal(await findProgram('plain', path), null, 'a file that cannot be run is no program')
  t.equal(await findProgram('node', ''), process.execPath)
  t.equal(await findProgram(join(dir, 'bin/engine'), ''), join(dir, 'bin/engine'))
  const missing = { command: 'missing', args: ['1'], label: 'missing' }
  const needy = { command: 'engine', args: ['2'], label: 'needy', requiresFiles: [join(dir, 'not-there')] }
  const fine = { command: 'engine', args: ['3'], label: 'fine', env: { A: '1' }, requiresFiles: [join(dir, 'weights')] }
  const chosen = await chooseCandidate('slot agent', providerOf(), [missing, needy, fine], path, '127.0.0.1')
  t.match(chosen, { form: { kind: 'process', command: join(dir, 'bin/engine'), args: ['3'], label: 'fine', workingDir: null, bindHost: '127.0.0.1' }, env: { A: '1' } })
  await t.rejects(chooseCandidate('slot agent', providerOf(), [missing, needy], path, ''), { code: 'runtime.unavailable', details: { tried: ['missing', 'needy'] } })
  await t.rejects(chooseCandidate('slot agent', providerOf(), [], path, ''), { code: 'runtime.unavailable', message: /needs a container engine/ })
})
