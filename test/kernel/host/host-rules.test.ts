import assert from 'node:assert/strict'
import fc from '../../property.js'
import t from 'tap'
import {
  defineErrors, definePlugin, defineRoute, defineTool, createServiceRef, providerDescriptorSchema, type AnyPlugin, type AnyRoute,
  type EngineProvider
} from '../../../kernel/contract/index.js'
import { z } from 'zod'
import { findConflicts, isMountable, routeKey, type Claim } from '../../../kernel/host/mount/conflicts.js'
import { withDeadline } from '../../../kernel/host/start/deadline.js'
import { fillIn, providerOfDescriptor } from '../../../kernel/host/packages/descriptor-provider.js'
import { orderPlugins, type Node } from '../../../kernel/host/start/order.js'
import { newRecord, waitingFor, type Candidate, type PluginRecord } from '../../../kernel/host/record/record.js'
import { planReload } from '../../../kernel/host/reload/reload-plan.js'
import { Services } from '../../../kernel/host/mount/services.js'
import { checkPluginShape } from '../../../kernel/host/record/shape.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'
import { launchOf, modelOf, slotOf } from '../slots/plan/launch-input.js'

const node = (name: string, requires: readonly string[] = [], provides: readonly string[] = [name]): Node => ({ name, requires,
  provides })
const none = new Set<string>()

t.test('plugins are ordered by what they require, and cycles are reported', async t => {
  const plain = (nodes: readonly Node[], core = none) => {
    const { order, missing, cycles, skipped, duplicates } = orderPlugins(nodes, core)
    return { order: order.join(' '), missing: [...missing], cycles: [...cycles], skipped: [...skipped], duplicates: [...duplicates] }
  }
  const fine = { missing: [], cycles: [], skipped: [], duplicates: [] }
  t.strictSame(plain([node('c', ['b']), node('b', ['a']), node('a')]), { ...fine, order: 'a b c' })
  t.strictSame(plain([node('b'), node('a'), node('c')]), { ...fine, order: 'b a c' }, 'otherwise as given')
  t.strictSame(plain([node('a', ['core.slots'])], new Set(['core.slots'])), { ...fine, order: 'a' })
  t.strictSame(plain([node('a', ['x']), node('b', ['a'])]), { ...fine, order: 'a b', missing: [['a', 'x']], skipped: [['b', 'a']] })
  t.strictSame(plain([node('a', ['a'])]), { ...fine, order: 'a', cycles: [['a', 'a -> a']] })
  t.strictSame(plain([node('guest', ['b']), node('a', ['b']), node('b', ['a'])]).cycles, [['a', 'a -> b -> a'], ['b', 'a -> b -> a']])
  t.strictSame(plain([node('a', ['b', 'c']), node('b', ['a']), node('c', ['b'])]).cycles.map(([name]) => name), ['a', 'b', 'c'], 'every member of a knot')
  t.strictSame(plain([node('one', [], ['s']), node('two', [], ['s']), node('user', ['s'])]), { ...fine, order: 'one two user', duplicates: [['two', 's']] })
  t.strictSame(plain([node('a', [], ['core.slots'])], new Set(['core.slots'])).duplicates, [['a', 'core.slots']], 'a core service cannot be replaced')
})

t.test('order: providers before consumers in every graph without circles, and every circle is named', async t => {
  const graph = fc.integer({ min: 1, max: 12 }).chain(n => fc.tuple(
    fc.array(fc.array(fc.nat(n - 1), { maxLength: 3 }), { minLength: n, maxLength: n }), fc.boolean(),
    fc.shuffledSubarray(Array.from({ length: n }, (_, i) => i), { minLength: n, maxLength: n })
  ))
  fc.assert(fc.property(graph, ([edges, acyclic, shuffled]) => {
    const requires = edges.map((list, i) => [...new Set(list)].filter(to => !acyclic || to < i))
    const nodes = shuffled.map(i => node(`p${i}`, requires[i]!.map(to => `p${to}`)))
    const { order, cycles, skipped, missing, duplicates } = orderPlugins(nodes, none)
    const reaches = (from: number, to: number, seen = new Set<number>()): boolean =>
      requires[from]!.some(next => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))))
    assert.equal(missing.size + duplicates.size, 0)
    assert.deepEqual([...order].sort(), nodes.map(({ name }) => name).sort(), 'each once')
    for (const [i, list] of requires.entries()) {
      const inCircle = reaches(i, i)
      assert.equal(cycles.has(`p${i}`), inCircle, `p${i}`)
      if (inCircle) {
        const path = cycles.get(`p${i}`)!.split(' -> ')
        assert.ok(path.includes(`p${i}`) && path[0] === path.at(-1))
        for (let at = 0; at + 1 < path.length; at++) assert.ok(requires[Number(path[at]!.slice(1))]!.includes(Number(path[at + 1]!.slice(1))), 'the path is real')
        continue
      }
      for (const to of list) assert.ok(cycles.has(`p${to}`) || order.indexOf(`p${to}`) < order.indexOf(`p${i}`), 'providers first')
      assert.equal(skipped.has(`p${i}`), requires.some((_, j) => reaches(j, j) && reaches(i, j)), 'who needs a member of a circle is skipped')
    }
  }), { numRuns: 2_000 })
  t.pass('2000 graphs')
})

const route = (method: 'GET' | 'POST', url: string): AnyRoute => defineRoute({ method, url, summary: 'x', handler: () => 1 })
const claim = (plugin: string, routes: readonly AnyRoute[], providers: readonly string[] = [],
  tools: readonly string[] = [], errors: Pick<Claim, 'errors' | 'domain'> = {}): Claim => ({
  plugin,
  ...errors,
  stage: {
    routes: [...routes],
    services: [],
    agents: [],
    providers: providers.map(name => ({ name }) as EngineProvider),
    runtimes: [],
    files: [],
    templates: [],
    tools: tools.map(name => defineTool({ server: 'admin', name, description: 'x', input: z.object({}), handler: async () => 1 }))
  }
})

const codes = (domain: string, name: string): Pick<Claim, 'errors'> => ({ errors: [defineErrors(domain, { [name]: { status: 400, when: 'x' } })] })

t.test('two plugins cannot claim the same route, tool, provider or code', async t => {
  const cases: Array<[string, Claim[], Record<string, RegExp>]> = [
    ['none', [claim('a', [route('GET', '/x')]), claim('b', [route('POST', '/x'), route('GET', '/x/y')])], {}],
    ['the same route', [claim('a', [route('GET', '/x')]), claim('b', [route('GET', '/x')])], { b: /GET \/x belongs to plugin 'a'/ }],
    ['names of parameters make no difference', [claim('a', [route('GET', '/x/:id/y')]), claim('b', [route('GET', '/x/:name/y')])], { b: /belongs to plugin 'a'/ }],
    ['nor does a slash at the end', [claim('a', [route('GET', '/x/')]), claim('b', [route('GET', '/x')])], { b: /belongs to/ }],
    ['twice in one plugin', [claim('a', [route('GET', '/x'), route('GET', '/x')])], { a: /twice/ }],
    ['a provider', [claim('a', [], ['llm']), claim('b', [], ['llm'])], { b: /provider 'llm' belongs to/ }],
    ['a tool', [claim('a', [], [], ['t']), claim('b', [], [], ['t'])], { b: /tool 't' of admin belongs to/ }],
    ['an URL that cannot be mounted', [claim('a', [route('GET', 'x')])], { a: /'x' is not valid/ }],
    ['an error code', [claim('a', [], [], [], codes('a', 'one')), claim('b', [], [], [], codes('a', 'one'))], { b: /error code 'a\.one' belongs to plugin 'a'; choose another name/ }],
    ['an error code of the kernel', [claim('a', [], [], [], codes('slot', 'not_found'))], { a: /error code 'slot\.not_found' belongs to the gateway/ }],
    ['built-in plugins share a domain', [claim('a', [], [], [], codes('slot', 'one')), claim('b', [], [], [], codes('slot', 'two'))], {}],
    ['packages do not', [claim('notes', [], [], [], { ...codes('slot', 'one'), domain: 'notes' })], { notes: /start with 'slot\.' but must start with its own name: defineErrors\('notes', / }],
    ['who is refused claims nothing', [claim('a', [route('GET', 'bad'), route('GET', '/x')]), claim('b', [route('GET', '/x')])], { a: /not valid/ }]
  ]
  for (const [name, claims, expected] of cases) {
    const found = findConflicts(claims)
    t.strictSame([...found.keys()], Object.keys(expected), name)
    for (const [plugin, message] of Object.entries(expected)) t.match(found.get(plugin)?.message, message, name)
  }
  t.match(findConflicts([claim('a', [route('GET', '/x')])], new Set([routeKey('GET', '/x')])).get('a')?.message, /belongs to the gateway/)
  for (const [url, ok] of [['/', true], ['/a/:b/c', true], ['/a/*', true], ['/a-b_c.d~e', true], ['/a/:id.png', true], ['a', false], ['/a b', false], ['/a?b', false], ['/a*b', false], ['/a/%zz', false], ['', false]] as const) {
    t.equal(isMountable(url), ok, url)
  }
})

t.test('a module that is no plugin is refused with what is wrong in it', async t => {
  const good = definePlugin({ name: 'good', kind: 'routes', apiVersion: 1, register: () => {} })
  const like = (change: object): unknown => ({ default: definePlugin({ name: 'good', kind: 'routes', apiVersion: 1, register: () => {}, ...change } as never) })
  t.equal(checkPluginShape({ default: good }, 'good', null), good)
  t.equal(checkPluginShape({ default: good }, 'some-package', { apiVersion: 1, kind: 'routes' }), good, 'a package may be named otherwise')
  const cases: Array<[string, unknown, string, RegExp]> = [
    ['nothing', undefined, 'plugin.not_a_plugin', /definePlugin/], ['no default', {}, 'plugin.not_a_plugin', /definePlugin/], ['an unbranded object', { default: { ...good, name: 'x' } }, 'plugin.not_a_plugin', /./],
    ['a bad name', like({ name: 'Not Kebab' }), 'plugin.not_a_plugin', /kebab-case/], ['another name', like({ name: 'other' }), 'plugin.not_a_plugin', /its name is 'other'/],
    ['a bad kind', like({ kind: 'thing' }), 'plugin.not_a_plugin', /kind 'thing'/], ['no register', like({ register: 1 }), 'plugin.not_a_plugin', /register/],
    ['a requirement that is no ref', like({ requires: { a: { id: 'x.y' } } }), 'plugin.not_a_plugin', /requires\.a/], ['an offer that is no ref', like({ provides: ['x'] }), 'plugin.not_a_plugin', /provides/],
    ['a schema that is none', like({ configSchema: {} }), 'plugin.not_a_plugin', /zod/], ['another contract', like({ apiVersion: 2 }), 'plugin.api_version', /version 2/]
  ]
  for (const [name, module, code, message] of cases) {
    const checked = checkPluginShape(module, 'good', null)
    if (name === 'an unbranded object') t.equal('code' in checked, true, name)
    else t.match(checked, { code, message }, name)
  }
  t.match(checkPluginShape({ default: good }, 'good', { apiVersion: 1, kind: 'provider' }), { code: 'plugin.manifest_invalid' })
})

t.test('the placeholders of a descriptor are filled in at each launch', async t => {
  const input = { ...launchOf({ model: modelOf({}, 'vendor/m'), port: 8085, mmprojPath: null }), argv: ['--own', '{port}'] }
  const cases: Array<[string, readonly string[], readonly string[]]> = [
    ['values', ['--model', '{model_path}', '--port={port}', '{host}:{port}', '{model_name}', '{context_size}', '{workers}', '{state_dir}'],
      ['--model', '/models/model.gguf', '--port=8085', '0.0.0.0:8085', 'vendor/m', '8192', '1', '/var/lib/svc/slots/agent']],
    ['a flag whose value is not there goes with it', ['--a', '--mmproj', '{mmproj_path}', '--b'], ['--a', '--b']],
    ['a joined flag goes by itself', ['--a', '--mmproj={mmproj_path}', '--b'], ['--a', '--b']],
    ['a word without a flag', ['serve', '{mmproj_path}'], ['serve']],
    ['what is no placeholder stays', ['{unknown}', '{Port}', '{"json":1}', '{constructor}'], ['{unknown}', '{Port}', '{"json":1}', '{constructor}']]
  ]
  for (const [name, tokens, filled] of cases) t.strictSame(fillIn(tokens, input), filled, name)
  t.strictSame(fillIn(['{model_path}', '{model_name}'], { ...input, model: null, slot: slotOf({}, 'mine') }), ['mine'])
  const provider = providerOfDescriptor(providerDescriptorSchema.parse({
    name: 'tiny', apiVersion: 1, image: 'x', command: ['--port', '{port}'], process: ['./tiny', '{host}'], surfaces: { chat: { path: '/chat' } }
  }))
  t.strictSame(provider.containerSpec(input).command, ['--port', '8085', '--own', '{port}'], 'what the operator adds is taken as it is')
  t.strictSame(provider.processSpec!(input)[0], { command: './tiny', args: ['0.0.0.0', '--own', '{port}'], env: {}, label: './tiny' })
  t.equal(provider.title, 'tiny')
  for (const wrong of [{ surfaces: {} }, { image: undefined }, { surfaces: { chat: { path: 'no-slash' } } }, { name: 'Not Kebab' }, { extra: 1 }, { apiVersion: 2 }]) {
    t.notOk(providerDescriptorSchema.safeParse({ name: 'tiny', apiVersion: 1, image: 'x', surfaces: { chat: { path: '/chat' } }, ...wrong }).success, JSON.stringify(wrong))
  }
})

t.test('a step that overspends its deadline fails with its name', async t => {
  const clock = new FakeClock()
  t.equal(await withDeadline(clock, 10, 'x', () => 1), 1)
  await t.rejects(withDeadline(clock, 10, 'x', () => { throw new Error('at once') }), { message: 'at once' })
  t.equal(clock.pending, 0)
  const late: unknown[] = []
  let fail = (_: Error): void => {}
  const slow = withDeadline(clock, 5_000, 'register of \'slow\'', () => new Promise((_, reject) => { fail = reject }), error => { late.push(error) })
  slow.catch(() => {})
  await clock.advance(5_000)
  await t.rejects(slow, { code: 'plugin.timeout', message: 'register of \'slow\' took longer than 5 s' })
  fail(new Error('too late'))
  await settle()
  t.match(late, [{ message: 'too late' }], 'what comes later is told, not thrown')
  t.equal(clock.pending, 0)
})

t.test('services: taken once, given to those who require them, and withdrawn for good', async t => {
  const services = new Services()
  const bell = createServiceRef<{ ring: () => string }>('test.bell')
  const light = createServiceRef<number>('test.light')
  services.add(bell, { ring: () => 'ding' })
  services.add(light, 1)
  t.throws(() => services.add(bell, { ring: () => 'dong' }), { code: 'plugin.conflict' })
  const given = services.of({ b: bell }) as { b: { ring: () => string } }
  t.equal(given.b.ring(), 'ding')
  t.strictSame(Object.keys(given), ['b'], 'nothing else is reachable')
  t.ok(Object.isFrozen(given))
  services.remove('test.bell')
  services.remove('test.nothing')
  t.strictSame([...services.ids], ['test.light'])
  services.add(bell, { ring: () => 'dong' })
  t.equal((services.of({ b: bell }) as typeof given).b.ring(), 'dong')
  t.equal(services.containerOf({ l: light }).resolve('l'), 1)
})

function record (name: string, state: PluginRecord['state'], { requires = [], provides = [] }: { requires?: string[], provides?: string[] } = {}, origin = 'inline'): PluginRecord {
  const plugin: AnyPlugin = definePlugin({
    name,
    kind: 'service',
    apiVersion: 1,
    requires: Object.fromEntries(requires.map(id => [id.replace('.', ''), createServiceRef(id)])),
    provides: provides.map(id => createServiceRef(id)),
    register: () => {}
  })
  const code = state === 'skipped' ? 'plugin.dependency_failed' as const : null
  return Object.assign(newRecord(candidate(name, origin)), { state, plugin, code })
}

function candidate (name: string, origin = 'inline'): Candidate {
  const [source, version = null] = origin.split('@')
  return {
    name, origin, source: `${source} ${name}`, version, revision: version, restarts: false, root: () => null, manifest: null, problem: null, load: () => Promise.resolve(null)
  }
}

t.test('a reload changes only plugins that are new, changed or gone', async t => {
  type Wish = Parameters<typeof planReload>[1]
  const plan = (records: PluginRecord[], wanted: Candidate[], more: Partial<Wish> = {}) =>
    planReload(records, {
      wanted, disabled: new Set(), again: new Set(), held: new Set(), tableOf: ({ table }) => table, ...more
    })
  const go = (...args: Parameters<typeof plan>): string[] => {
    const { staying, leaving, fresh } = plan(...args)
    return [staying, leaving, fresh].map(list => list.map(({ name }) => name).join(' '))
  }
  const [old, next] = ['package:a@1.0.0', 'package:a@2.0.0']
  t.strictSame(go([record('a', 'active')], [candidate('a'), candidate('b')]), ['a', '', 'b'], 'one is new')
  t.strictSame(go([record('a', 'active'), record('b', 'active')], [candidate('a')]), ['a', 'b', ''], 'one is gone')
  t.strictSame(go([record('a', 'failed'), record('b', 'skipped')], [candidate('a'), candidate('b')]), ['', 'b', 'b'], 'what fell for the sake of others is tried again')
  t.strictSame(go([record('a', 'failed')], [candidate('a')], { again: new Set(['a']) }), ['', 'a', 'a'], 'what is asked for is tried again')
  t.strictSame(go([record('a', 'failed')], [candidate('a')], { tableOf: () => '{"mended":true}' }), ['', 'a', 'a'], 'another table may mend it')
  t.strictSame(go([record('a', 'failed', {}, old)], [candidate('a', next)]), ['', 'a', 'a'], 'another version may mend it')
  t.strictSame(go([record('a', 'active', {}, old)], [candidate('a', next)]), ['', 'a', 'a'], 'a new version replaces the old one')
  const running = record('a', 'active', {}, old)
  t.strictSame(go([running], [candidate('a', next)], { held: new Set([running]) }), ['a', '', ''], 'one that fell beside it does not')
  running.waiting = waitingFor(record('a', 'failed', {}, next))
  t.strictSame(go([running], [candidate('a', next)]), ['a', '', ''], 'and is judged once')
  t.strictSame(go([running], [candidate('a', next)], { again: new Set(['a']) }), ['', 'a', 'a'], 'unless it is asked for')
  const late = plan([record('a', 'active', {}, old)], [{ ...candidate('a', next), restarts: true }])
  t.strictSame([late.staying.length, late.fresh.length, [...late.late.values()].map(({ version }) => version)], [1, 0, ['2.0.0']], 'one that takes a restart waits')
  t.strictSame(go([record('a', 'active')], [candidate('a')], { disabled: new Set(['a']) }), ['', 'a', 'a'], 'one was disabled')
  const chain = [record('a', 'active', { provides: ['s.a'] }, old), record('b', 'active', { requires: ['s.a'], provides: ['s.b'] }), record('c', 'active', { requires: ['s.b'] }), record('d', 'active')]
  t.strictSame(go(chain, [candidate('b'), candidate('c'), candidate('d')]), ['d', 'a b c', 'b c'], 'a plugin that loses a service goes with it, and tries again')
  const newer = [candidate('a', next), candidate('b'), candidate('c'), candidate('d')]
  t.strictSame(go(chain, newer), ['d', 'a b c', 'a b c'], 'the plugins that use a service get the new one')
  t.strictSame(go(chain, newer, { held: new Set([chain[2]!]) }), ['a b c d', '', ''], 'one that cannot keeps what it uses')
  t.strictSame(go([record('a', 'active', { provides: ['s.a'] }), record('twin', 'failed', { provides: ['s.a'] }), record('b', 'active', { requires: ['s.a'] })],
    [candidate('a'), candidate('twin'), candidate('b')]), ['a b', '', ''], 'a fallen twin takes nothing with it')
  t.strictSame(go([], []), ['', '', ''])
})
