import t from 'tap'
import { slotRoleOf, slotStates, surfaceNames, svcConfigSchema, type Model, type SlotState, type SlotType, type SurfaceName } from '../../../kernel/contract/index.js'
import { Catalog } from '../../../kernel/dispatch/route/catalog.js'
import { globMatches, isListed } from '../../../kernel/dispatch/upstream/model-filters.js'
import { resolutionError } from '../../../kernel/dispatch/route/resolution-errors.js'
import { fullNameRoute, resolveModel, virtualChain, type Resolution, type RouteSnapshot, type SlotRoute } from '../../../kernel/dispatch/route/resolve.js'
import type { UpstreamRoute } from '../../../kernel/dispatch/upstream/upstream-row.js'
import type { SlotManager } from '../../../kernel/slots/slot-manager.js'
import type { UpstreamPool } from '../../../kernel/dispatch/upstream/upstream-pool.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { modelOf, slotOf } from '../slots/plan/launch-input.js'

const llm: readonly SurfaceName[] = ['chat', 'completions']
const surfacesOf: Partial<Record<SlotType, readonly SurfaceName[]>> = { embedding: ['embeddings'], reranking: ['rerank'], tts: ['speech'], transcription: ['transcription'], image: ['image'] }

function slot (name: string, route: Partial<SlotRoute> = {}): SlotRoute {
  const type = route.type ?? 'llm'
  const modelId = route.modelId === undefined ? `${name}-model` : route.modelId
  return {
    name, type, enabled: true, state: 'offline', modelId, configuredModel: modelId, needsModel: true, isNpu: false, anchor: null, role: slotRoleOf({ name, role: null }), isDefault: false,
    surfaces: new Set(surfacesOf[type] ?? llm), abilities: {}, contextSize: null, catalogue: [], ...route
  }
}

function snapshot (slots: readonly SlotRoute[], upstreams: Record<string, UpstreamRoute> = {},
  registry: readonly string[] = []): RouteSnapshot {
  const byModel = new Map<string, SlotRoute[]>()
  for (const route of slots) if (route.modelId !== null) byModel.set(route.modelId, [...byModel.get(route.modelId) ?? [], route])
  const byCatalogue = new Map<string, SlotRoute[]>()
  for (const route of slots) for (const id of route.catalogue) byCatalogue.set(id, [...byCatalogue.get(id) ?? [], route])
  return {
    slots: new Map(slots.map(route => [route.name, route])),
    aliases: new Map([['assistant', 'agent']]),
    clientAliases: new Map(),
    byModel,
    byCatalogue,
    registry: { has: id => registry.includes(id) },
    upstreamModels: new Map(Object.entries(upstreams)),
    unlisted: new Set(),
    switchedOff: new Map()
  }
}

/** A resolution in a few words: `slot agent (agent-model) via virtual`. */
function words (resolution: Resolution): string {
  switch (resolution.kind) {
    case 'slot': return `slot ${resolution.slot} (${resolution.modelId}) via ${resolution.via}`
    case 'upstream': return `upstream ${resolution.upstream} (${resolution.modelId})`
    case 'not-loaded': return `not loaded ${resolution.slot}`
    case 'no-route': return `no route ${resolution.slot}`
    case 'provider-gone': return `provider ${resolution.provider} of ${resolution.slot} is gone`
    case 'unserved': return `unserved ${resolution.slot} by ${resolution.anchor}${resolution.enabled ? '' : ', switched off'}`
    case 'not-found': return 'not found'
  }
}

t.test('a model of an engine\'s own catalogue', async t => {
  const image = { type: 'image' as const, needsModel: false, catalogue: ['turbo', 'small'] }
  const given = snapshot([
    slot('cold', { ...image, modelId: null }), slot('warm', { ...image, modelId: 'small', state: 'ready' }), slot('agent')
  ], { turbo: { upstream: 'evil', modelId: 'turbo' } }, ['turbo'])
  t.equal(words(resolveModel(given, 'turbo', 'image')), 'slot warm (turbo) via registry', 'the slot closest to serving, the model as asked for')
  t.equal(words(resolveModel(given, 'small', 'image')), 'slot warm (small) via registry')
  t.equal(words(resolveModel(given, 'warm', 'image')), 'slot warm (small) via slot', 'a slot by its name has the model of its file')
  t.equal(words(resolveModel(given, 'turbo', 'chat')), 'no route warm')
  t.equal(words(resolveModel(snapshot([slot('off', { ...image, enabled: false })]), 'turbo', 'image')), 'not loaded off')
})

t.test('a full name leads to its upstream while that has given no list', async t => {
  const given: RouteSnapshot = { ...snapshot([slot('agent')]), unlisted: new Set(['up', 'a-b']) }
  const cases: Array<[model: string, route: string]> = [
    ['up/m', 'up m'], ['a-b/vendor/m:7b', 'a-b vendor/m:7b'],
    ['listed/m', ''], ['up', ''], ['up/', ''], ['/up/m', ''], ['/', ''], ['', ''], ['UP/m', ''], ['agent', '']
  ]
  for (const [model, expected] of cases) {
    const route = fullNameRoute(given, model)
    t.equal(route?.kind === 'upstream' ? `${route.upstream} ${route.modelId}` : '', expected, JSON.stringify(model))
  }
})

t.test('each way to name a model resolves to its route, or says why not', async t => {
  const given = snapshot([
    slot('agent'), slot('utility'), slot('embed', { type: 'embedding' }), slot('tts', { type: 'tts', modelId: null, needsModel: false }),
    slot('bare', { modelId: null }), slot('off', { enabled: false }), slot('odd', { modelId: 'now', configuredModel: 'then' })
  ], {
    'gpt-9': { upstream: 'openai', modelId: 'gpt-9' },
    'openai/gpt-9': { upstream: 'openai', modelId: 'gpt-9' },
    'gpt-4o-mini-tts': { upstream: 'openai', modelId: 'gpt-4o-mini-tts' },
    'agent': { upstream: 'evil', modelId: 'agent' },
    'agent-model': { upstream: 'evil', modelId: 'agent-model' }
  }, ['agent-model', 'unused/model', 'off-model'])
  const cases: Array<[row: string, model: string, surface: SurfaceName, expected: string]> = [
    ['a slot name', 'agent', 'chat', 'slot agent (agent-model) via slot'],
    ['a slot name', 'utility', 'completions', 'slot utility (utility-model) via slot'],
    ['a slot of another kind, on its surface', 'embed', 'embeddings', 'slot embed (embed-model) via slot'],
    ['an engine with its model built in', 'tts', 'speech', 'slot tts (null) via slot'],
    ['an alias', 'assistant', 'chat', 'slot agent (agent-model) via slot'],
    ['a slot on a surface it does not serve', 'embed', 'chat', 'no route embed'],
    ['a slot on a surface of no slot', 'agent', 'speech', 'no route agent'],
    ['a slot without a model', 'bare', 'chat', 'not loaded bare'],
    ['a disabled slot', 'off', 'chat', 'not loaded off'],
    ['a virtual name of a role', 'svc/agent', 'chat', 'slot agent (agent-model) via virtual'],
    ['a virtual name of a slot', 'svc/embed', 'embeddings', 'slot embed (embed-model) via virtual'],
    ['a virtual name of a disabled slot is no other slot', 'svc/off', 'chat', 'not loaded off'],
    ['a virtual name of a slot on a wrong surface is no other slot', 'svc/embed', 'chat', 'no route embed'],
    ['a virtual name of nobody', 'svc/nobody', 'chat', 'not found'],
    ['a virtual name that is empty', 'svc/', 'chat', 'not found'],
    ['a registry ref that a slot owns', 'agent-model', 'chat', 'slot agent (agent-model) via registry'],
    ['a registry ref of a disabled slot', 'off-model', 'chat', 'not loaded off'],
    ['a registry ref that no slot has', 'unused/model', 'chat', 'not loaded null'],
    ['what a slot runs', 'now', 'chat', 'slot odd (now) via registry'],
    ['what a slot is configured with and does not run', 'then', 'chat', 'not loaded odd'],
    ['an upstream model', 'gpt-9', 'chat', 'upstream openai (gpt-9)'],
    ['an upstream model by the name of its upstream', 'openai/gpt-9', 'embeddings', 'upstream openai (gpt-9)'],
    ['a usual name, for the only slot of its type', 'tts-1', 'speech', 'slot tts (null) via usual'],
    ['a usual name on another surface', 'tts-1', 'chat', 'not found'],
    ['a usual name that no slot can mean', 'whisper-1', 'transcription', 'not found'],
    ['a usual name that an upstream has', 'gpt-4o-mini-tts', 'speech', 'upstream openai (gpt-4o-mini-tts)'],
    ['another upstream\'s', 'other/gpt-9', 'chat', 'not found'],
    ['anything else', 'gpt-99', 'chat', 'not found'],
    ['case counts', 'Agent', 'chat', 'not found'],
    ['members of every object', 'constructor', 'chat', 'not found'],
    ['members of every object', '__proto__', 'chat', 'not found']
  ]
  for (const [row, model, surface, expected] of cases) t.equal(words(resolveModel(given, model, surface)), expected, `${row}: ${model} on ${surface}`)
})

t.test('roles: the first of the chain that is up, else the first that there is', async t => {
  const names = (role: string, ...slots: SlotRoute[]): string[] => virtualChain(snapshot(slots), role, 'llm').map(({ name }) => name)
  const agent = slot('agent')
  const utility = slot('utility')
  const npu = slot('flm', { isNpu: true })
  t.strictSame(names('agent', utility, agent, npu), ['agent'])
  t.strictSame(names('utility', agent, utility, npu), ['utility', 'agent'])
  t.strictSame(names('npu', agent, utility, npu), ['flm', 'utility', 'agent'])
  t.strictSame(names('agent', slot('main', { role: 'primary' }), agent), ['main', 'agent'], 'a role makes a slot play it')
  t.strictSame(names('agent', slot('agent', { modelId: null }), slot('agent2', { role: 'primary', enabled: false })), [], 'only enabled llm slots with a model')
  t.strictSame(names('utility', slot('utility', { type: 'embedding' }), agent), ['agent'])

  const go = (model: string, ...slots: SlotRoute[]): string => words(resolveModel(snapshot(slots), model, 'chat'))
  const up = (route: SlotRoute): SlotRoute => ({ ...route, state: 'ready' })
  t.equal(go('svc/utility', agent, utility), 'slot utility (utility-model) via virtual', 'both cold')
  t.equal(go('svc/utility', up(agent), utility), 'slot agent (agent-model) via virtual', 'the one that is up')
  t.equal(go('svc/utility', up(agent), up(utility)), 'slot utility (utility-model) via virtual')
  t.equal(go('svc/npu', agent, utility), 'slot utility (utility-model) via virtual')
  t.equal(go('svc/npu', up(agent), utility, npu), 'slot agent (agent-model) via virtual')
  t.equal(go('svc/npu'), 'not found')
  t.equal(go('svc/agent', slot('primary')), 'slot primary (primary-model) via virtual', 'a name that says the role')
  t.equal(go('svc/agent', slot('agent', { role: 'utility' }), slot('primary')), 'slot primary (primary-model) via virtual', 'a role that was given wins over the name')
  t.equal(go('svc/utility', slot('coder'), slot('writer', { isDefault: true })), 'slot writer (writer-model) via virtual', 'the default is the last of every chain')
  t.equal(go('svc/agent', slot('coder'), slot('old', { isDefault: true, enabled: false })), 'not found', 'any other slot is no stand-in')
  t.equal(go('svc/agent', slot('agent', { modelId: null, needsModel: false })), 'slot agent (null) via virtual', 'an engine with its model built in')
  const embeds = (model: string, ...slots: SlotRoute[]): string => words(resolveModel(snapshot(slots), model, 'embeddings'))
  const npuEmbed = slot('embed-npu', { type: 'embedding', isNpu: true })
  const embed = slot('embed', { type: 'embedding', isDefault: true })
  t.equal(embeds('svc/npu', npu, embed, npuEmbed), 'slot embed-npu (embed-npu-model) via virtual', 'chains are among the slots of the kind that is asked')
  t.equal(embeds('svc/npu', npu, embed, up(npuEmbed)), 'slot embed-npu (embed-npu-model) via virtual')
  t.equal(embeds('svc/npu', npu, up(embed), npuEmbed), 'slot embed (embed-model) via virtual', 'the one that is up')
  t.equal(embeds('svc/agent', agent, embed), 'slot embed (embed-model) via virtual')
  t.equal(embeds('svc/agent', agent, { ...embed, isDefault: false }), 'no route agent')
  t.equal(go('svc/agent', slot('agent', { enabled: false })), 'not loaded agent', 'the slot of that name says why not')
  t.equal(go('svc/coder', slot('coder'), up(agent)), 'slot coder (coder-model) via virtual', 'a slot asked for by name is taken cold')
})

t.test('of several slots with a model the one closest to serving is taken, among those that fit', async t => {
  const order: Record<SlotState, number> = { ready: 0, serving: 0, idle: 0, warming: 1, starting: 1, pulling: 1, offline: 2,
    unloading: 2, error: 3 }
  for (const a of slotStates) {
    for (const b of slotStates) {
      const resolution = resolveModel(snapshot([slot('a', { modelId: 'm', state: a }), slot('b', { modelId: 'm', state: b })]), 'm', 'chat')
      t.equal(words(resolution), `slot ${order[a] <= order[b] ? 'a' : 'b'} (m) via registry`, `${a} or ${b}`)
    }
  }
  const pair = snapshot([slot('e', { type: 'embedding', modelId: 'm', state: 'ready' }), slot('l', { modelId: 'm' }), slot('off', { modelId: 'm', enabled: false, state: 'ready' })])
  t.equal(words(resolveModel(pair, 'm', 'chat')), 'slot l (m) via registry', 'the surface decides first')
  t.equal(words(resolveModel(pair, 'm', 'embeddings')), 'slot e (m) via registry')
  t.equal(words(resolveModel(pair, 'm', 'speech')), 'no route e')
})

t.test('every dead end has its code and says what to do', async t => {
  const cases: Array<[Parameters<typeof resolutionError>[0], string, number, RegExp]> = [
    [{ kind: 'not-found' }, 'model.not_found', 404, /GET \/v1\/models/],
    [{ kind: 'not-loaded', slot: 'a', reason: 'it is off' }, 'model.not_loaded', 404, /it is off/],
    [{ kind: 'no-route', slot: 'a', reason: 'wrong kind' }, 'dispatch.no_route', 404, /wrong kind/],
    [{ kind: 'unserved', slot: 'a-embed', anchor: 'a', enabled: true }, 'slot.unserved', 503, /svc slot restart a/],
    [{ kind: 'unserved', slot: 'a-embed', anchor: 'a', enabled: false }, 'slot.unserved', 503, /switched off there; switch it on in the file of that slot, then `svc slot restart a`$/],
    [{ kind: 'unserved', slot: 'a-embed', anchor: 'a', enabled: false, unserved: { code: 'mine.away', status: 409, switchOn: 'set b in its [c] table' } },
      'mine.away', 409, /switched off there; set b in its \[c\] table, then `svc slot restart a`$/]
  ]
  for (const [resolution, code, status, message] of cases) {
    const error = resolutionError(resolution, 'm', 'chat')
    t.match(error, { code, status, message, param: 'model', details: { model: 'm', surface: 'chat' } })
  }
  t.equal(new Set(surfaceNames).size, surfaceNames.length)
})

interface Listed { readonly upstream: string, readonly ids: readonly string[] }

function catalog (
  slots: readonly SlotRoute[], listed: readonly Listed[] = [], models: readonly Model[] = [], svc: Record<string, unknown> = {}
): Catalog {
  const find = (name: string): SlotRoute => slots.find(route => route.name === name)!
  return new Catalog({
    clock: new FakeClock(1_700_000_000_000),
    config: { snapshot: { svc: svcConfigSchema.parse(svc) } } as never,
    models: { get: (id: string) => models.find(model => model.id === id), list: () => models } as never,
    slots: {
      names: () => slots.map(({ name }) => name),
      aliases: () => [],
      config: (name: string) => ({ ...slotOf({ type: find(name).type, enabled: find(name).enabled, role: find(name).role,
        default: find(name).isDefault,
        model: { default: find(name).configuredModel } }, name) }),
      status: (name: string) => find(name),
      provider: (name: string) => ({
        needsModel: find(name).needsModel,
        catalogue: find(name).catalogue.map(id => ({ id, problem: null })),
        surfaces: Object.fromEntries([...find(name).surfaces].map(surface => [surface, {}]))
      }),
      device: () => 'gpu-rocm'
    } as unknown as SlotManager,
    upstreams: () => ({
      listed: () => listed.map(({ upstream, ids }) => ({ upstream, rows: ids.map(id => ({ id, fields: {} })) })),
      routes: () => new Map(),
      unlisted: () => new Set(),
      switchedOff: () => new Map()
    }) as unknown as UpstreamPool
  })
}

t.test('a model is found by another spelling if only one has it', async t => {
  const given = [slot('agent', { modelId: 'Qwen3-4B' }), slot('twin', { modelId: 'Same-Model' }), slot('other', { modelId: 'same-model' })]
  const names = catalog(given, [], [modelOf({}, 'On-Disk')])
  const asked = (name: string): string => words(names.resolve(name, 'chat'))
  t.equal(asked('Qwen3-4B'), 'slot agent (Qwen3-4B) via registry')
  for (const name of ['qwen3-4b', 'QWEN3-4B']) t.equal(asked(name), 'slot agent (Qwen3-4B) via spelling', name)
  t.equal(asked('AGENT'), 'not found', 'names of slots are exact')
  t.equal(asked('same-model'), 'slot other (same-model) via registry', 'the name as it is comes first')
  t.equal(asked('SAME-MODEL'), 'not found', 'two have it')
  t.equal(asked('on-disk'), 'not loaded null', 'the reason is that of the model that is meant')
  t.equal(asked('nobody'), 'not found')
})

t.test('the list of models has each id once, with what clients look for', async t => {
  t.test('live slots, then upstream models, then virtual names; the first of an id wins', async t => {
    const rows = catalog([
      slot('agent', { state: 'idle' }), slot('coder', { state: 'warming' }), slot('embed', { type: 'embedding', state: 'ready' }), slot('off', { enabled: false, state: 'ready' }),
      slot('utility', { state: 'serving' })
    ], [
      { upstream: 'one', ids: ['x', 'agent-model', 'agent', 'embed-model'] }, { upstream: 'two', ids: ['x', 'y', 'svc/agent', 'svc/coder', 'svc/other'] }
    ]).models()
    t.strictSame(rows.map(({ id, owned_by }) => `${id} ${owned_by}`), [
      'agent svc', 'utility svc', 'embed-model embed', 'x one', 'y two', 'svc/other two', 'svc/agent svc', 'svc/utility svc', 'svc/coder svc'
    ])
  })
  t.test('the rows of slots say what clients of either API look for', async t => {
    const models = [{ id: 'agent-model', name: 'Agent 7B', mmproj: '/p', metadata: { context_length: 4096, added_at: 1_600_000_000 }, defaults: {} } as unknown as Model]
    const slots = [slot('agent', { state: 'ready' }), slot('bare', { state: 'ready', modelId: null, needsModel: false })]
    const [first, second, third, fourth] = catalog(slots, [{ upstream: 'one', ids: ['x'] }], models).models()
    const known = {
      object: 'model',
      type: 'model',
      created: 1_600_000_000,
      created_at: '2020-09-13T12:26:40Z',
      owned_by: 'svc',
      status: 'loaded',
      context_length: 4096,
      max_model_len: 4096,
      capabilities: ['chat', 'vision'],
      supported_endpoints: ['/v1/chat/completions', '/v1/completions']
    }
    t.strictSame(first, { ...known, id: 'agent', name: 'agent · Agent 7B', display_name: 'agent · Agent 7B' })
    t.match(second, { id: 'bare', created: 1_700_000_000, created_at: '2023-11-14T22:13:20Z', name: 'bare', context_length: 8192, capabilities: ['chat'] })
    t.strictSame(third, { id: 'x', object: 'model', type: 'model', created: 1_700_000_000, created_at: '2023-11-14T22:13:20Z', owned_by: 'one', name: 'x', display_name: 'x' })
    t.strictSame(fourth, {
      ...known,
      id: 'svc/agent',
      name: 'svc/agent',
      display_name: 'svc/agent',
      _svc: { virtual: true, kind: 'live-resolve', resolves_to: 'agent-model', slot: 'agent', device: 'gpu-rocm' }
    })
  })
  t.test('list_unloaded lists every slot that a request would load, by its name', async t => {
    const slots = [
      slot('agent'), slot('coder', { state: 'warming' }), slot('embed', { type: 'embedding' }), slot('off', { enabled: false }),
      slot('bare', { modelId: null }), slot('pictures', { type: 'image', modelId: null, needsModel: false, catalogue: ['turbo'] }), slot('tts', { type: 'tts', state: 'error' })
    ]
    const rows = (settings: object): unknown[] => catalog(slots, [], [], { dispatcher: { list_unloaded: true, ...settings } })
      .models().map(({ id, status, capabilities }) => [id, status, capabilities])
    const own = [
      ['agent', 'unloaded', ['chat']], ['coder', 'loading', ['chat']], ['embed', 'unloaded', ['embed']], ['pictures', 'unloaded', ['image']], ['tts', 'unloaded', ['tts']],
      ['turbo', 'unloaded', ['image']]
    ]
    t.strictSame(rows({}), [...own, ['svc/agent', 'unloaded', ['chat']], ['svc/coder', 'loading', ['chat']]])
    t.strictSame(rows({ list_virtual: false }), own, 'a virtual name of a listed slot says nothing new')
  })
  t.test('a role is listed for the slot that plays it, and once for one that stands in', async t => {
    const ids = (slots: readonly SlotRoute[]): string[] => catalog(slots).models().map(({ id }) => id)
    t.strictSame(ids([slot('mine', { isDefault: true })]), ['svc/agent', 'svc/mine'])
    t.strictSame(ids([slot('agent'), slot('fast', { role: 'npu' })]), ['svc/agent', 'svc/npu', 'svc/fast'])
  })
  t.test('an alias is listed with what it leads to, and left out when that is nothing', async t => {
    const aliases = { 'gpt-4.1': 'agent', 'qwen3:4b': 'embed-model', 'mini': 'svc/utility', 'gone': 'nothing', 'embed': 'agent-model' }
    const rows = catalog([slot('agent'), slot('embed', { type: 'embedding' })], [], [], { aliases }).models()
    t.match(rows.slice(0, 3), [
      { id: 'gpt-4.1', name: 'gpt-4.1 · agent', status: 'unloaded', capabilities: ['chat'], _svc: { alias: true, resolves_to: 'agent', slot: 'agent', upstream: null } },
      { id: 'qwen3:4b', capabilities: ['embed'] }, { id: 'mini', capabilities: ['chat'] }
    ])
    t.strictSame(rows.slice(3).map(({ id }) => id), ['svc/agent'], 'a slot keeps its name')
  })
  t.test('a cold gateway lists the virtual names of every enabled llm slot', async t => {
    for (const list_virtual of [true, false]) {
      t.strictSame(catalog([slot('agent'), slot('coder'), slot('off', { enabled: false })], [], [], { dispatcher: { list_virtual } }).models().map(({ id }) => id), ['svc/agent', 'svc/coder'])
    }
    t.strictSame(catalog([]).models(), [])
  })
  t.test('is made anew after a change, and only then', async t => {
    const slots = [slot('agent')]
    const subject = catalog(slots)
    t.equal(words(subject.resolve('new', 'chat')), 'not found')
    slots.push(slot('new'))
    t.equal(words(subject.resolve('new', 'chat')), 'not found')
    subject.invalidate()
    t.equal(words(subject.resolve('new', 'chat')), 'slot new (new-model) via slot')
  })
})

t.test('filters hide models from the list', async t => {
  const filters = (filter: { models?: string[], include?: string[], exclude?: string[] }) => ({ models: [], include: [],
    exclude: [], ...filter })
  const cases: Array<[string, Parameters<typeof isListed>[1], string, boolean]> = [
    ['no filter', undefined, 'gpt-4', true], ['an empty one', filters({}), 'gpt-4', true],
    ['the list', filters({ models: ['gpt-4'] }), 'gpt-4', true], ['not on the list', filters({ models: ['gpt-4'] }), 'gpt-4o', false],
    ['included', filters({ include: ['gpt-*'] }), 'gpt-4o', true], ['not included', filters({ include: ['gpt-*'] }), 'o1', false],
    ['list or include', filters({ models: ['o1'], include: ['gpt-*'] }), 'o1', true], ['excluded', filters({ exclude: ['*-preview'] }), 'gpt-preview', false],
    ['exclude wins over the list', filters({ models: ['gpt-4'], exclude: ['gpt-?'] }), 'gpt-4', false], ['exclude wins over include', filters({ include: ['*'], exclude: ['*'] }), 'x', false]
  ]
  for (const [name, filter, id, listed] of cases) t.equal(isListed(id, filter), listed, name)
  const globs: Array<[string, string, boolean]> = [
    ['*', '', true], ['*', 'a/b\nc', true], ['a?c', 'abc', true], ['a?c', 'ac', false], ['a.c', 'abc', false], ['(a|b)+', '(a|b)+', true], ['[a]', 'a', false],
    ['vendor/*', 'vendor/model:1', true], ['*b', 'abc', false], ['^a$', 'a', false], ['\\d', '1', false]
  ]
  for (const [pattern, text, matches] of globs) t.equal(globMatches(pattern, text), matches, `${pattern} on ${JSON.stringify(text)}`)
  const slow = `${'*a'.repeat(12)}b`
  t.equal(globMatches(slow, 'a'.repeat(60)), false, 'no pattern takes for ever')
})

t.test('a slot in another one\'s engine is there while that one is, and starts nothing', async t => {
  const shadow = (name: string, route: Partial<SlotRoute> = {}): SlotRoute =>
    slot(name, { type: 'embedding', modelId: 'small', anchor: 'npu', state: 'ready', isNpu: true, ...route })
  const own = slot('embed', { type: 'embedding', modelId: 'small' })
  const cases: Array<[name: string, slots: SlotRoute[], model: string, expected: string]> = [
    ['up', [shadow('npu-embed')], 'npu-embed', 'slot npu-embed (small) via slot'],
    ['by its model', [shadow('npu-embed')], 'small', 'slot npu-embed (small) via registry'],
    ['by its role', [shadow('npu-embed')], 'svc/npu', 'slot npu-embed (small) via virtual'],
    ['on its way', [shadow('npu-embed', { state: 'warming' })], 'npu-embed', 'slot npu-embed (small) via slot'],
    ['down', [shadow('npu-embed', { state: 'offline' })], 'npu-embed', 'unserved npu-embed by npu'],
    ['failed, which a request mends', [shadow('npu-embed', { state: 'error' })], 'small', 'slot npu-embed (small) via registry'],
    ['switched off', [shadow('npu-embed', { enabled: false })], 'npu-embed', 'unserved npu-embed by npu, switched off'],
    ['a slot of its own with that model comes before one that is down', [shadow('npu-embed', { state: 'offline' }), own], 'small', 'slot embed (small) via registry'],
    ['and before one that is switched off', [shadow('npu-embed', { enabled: false }), own], 'small', 'slot embed (small) via registry'],
    ['and after one that is up', [own, shadow('npu-embed')], 'small', 'slot npu-embed (small) via registry']
  ]
  for (const [name, slots, model, expected] of cases) t.equal(words(resolveModel(snapshot(slots), model, 'embeddings')), expected, name)
})
