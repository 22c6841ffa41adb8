import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { packageRoot } from '../../../kernel/config/package-root.js'
import type { PluginReport } from '../../../kernel/contract/index.js'
import {
  createTestGateway, FakeClock, FakeEngineRuntime, type TestGateway, type TestGatewayOptions
} from '../../../kernel/testing/index.js'
import apiMeta from '../../../plugins/api/meta/index.js'
import apiPlugins from '../../../plugins/api/plugins/index.js'
import apiSettings from '../../../plugins/api/settings/index.js'
import apiStatus from '../../../plugins/api/status/index.js'

type Files = Readonly<Record<string, string>>

interface Home {
  readonly gateway: TestGateway
  readonly plugins: string
  /** Writes files of a package, and its manifest when they have none. */
  readonly write: (name: string, files: Files, manifest?: object) => void
  readonly reload: (...again: string[]) => Promise<readonly PluginReport[]>
  readonly report: (name: string) => PluginReport | undefined
  readonly get: (path: string) => Promise<unknown>
  readonly runtime: FakeEngineRuntime
  /** Folders that code is imported from. */
  readonly copies: (name: string) => string[]
}

async function home (
  t: Test, allow: readonly string[], packages: Readonly<Record<string, Files>> = {},
  options: Pick<TestGatewayOptions, 'clock'> = {}
): Promise<Home> {
  const root = t.testdir({ etc: { svc: { 'svc.toml': `[plugins]\nallow = ${JSON.stringify(allow)}\n` } } })
  const plugins = join(root, 'var/lib/svc/plugins')
  const write = (name: string, files: Files, manifest: object = {}): void => writePackage(join(plugins, 'node_modules', name), name, files, manifest)
  for (const [name, files] of Object.entries(packages)) write(name, files)
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({
    home: root, runtime, plugins: [apiMeta, apiPlugins, apiSettings, apiStatus], ...options
  })
  t.teardown(() => gateway.close())
  return {
    gateway,
    runtime,
    plugins,
    write,
    reload: async (...again) => {
      const response = await gateway.fetch('/api/plugins/reload', { method: 'POST', ...(again.length === 0 ? {} : { body: JSON.stringify({ again }) }) })
      return (await response.json() as { plugins: PluginReport[] }).plugins
    },
    report: name => gateway.gateway.report().find(report => report.name === name),
    get: async path => await (await gateway.fetch(path)).json(),
    copies: name => existsSync(join(plugins, 'generations', name)) ? readdirSync(join(plugins, 'generations', name)) : []
  }
}

function writePackage (folder: string, name: string, files: Files, manifest: object): void {
  const all = { 'package.json': JSON.stringify({ name, version: '0.1.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' }, ...manifest }), ...files }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/** A plugin whose route says what stands in its second file. */
const plugin = (name: string, more = ''): string => `
import { core, createServiceRef, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { word } from './word.js'
export default definePlugin({ name: '${name}', kind: 'routes', apiVersion: 1, register (ctx) {
  ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/${name}', summary: 'x', handler: () => ({ word }) }))
  ${more}
} })`
const word = (text: string): string => `export const word = '${text}'\n`

t.test('the folder of a test is there until what the test left to its end is over', async t => {
  let isThere: boolean | null = null
  await t.test('a folder first, then a gateway', async t => {
    const folder = t.testdir()
    t.teardown(async () => {
      await new Promise(resolve => { setImmediate(resolve) })
      isThere = existsSync(folder)
    })
    t.pass('it is the runner that removes it')
  })
  t.equal(isThere, true)
})

t.test('a newer version is really loaded, with the files that it imports, and the old one goes', async t => {
  const stopping = 'ctx.onStop(() => { globalThis.stopped = word })'
  const it = await home(t, ['svc-plugin-foo'], { 'svc-plugin-foo': { 'index.js': plugin('foo', stopping), 'word.js': word('one') } })
  t.strictSame(await it.get('/api/test/foo'), { word: 'one' })
  it.write('svc-plugin-foo', { 'index.js': plugin('foo').replace('/api/test/foo', '/api/test/foo2'), 'word.js': word('two') }, { version: '0.2.0' })
  await it.reload()
  t.match(it.report('foo'), { state: 'active', version: '0.2.0', origin: 'package:svc-plugin-foo@0.2.0', waiting: null })
  t.strictSame(await it.get('/api/test/foo2'), { word: 'two' })
  t.match(await it.get('/api/test/foo'), { error: { code: 'system.http_404' } }, 'the route of the old one is gone')
  t.equal((globalThis as { stopped?: string }).stopped, 'one', 'the old one was stopped')
  t.equal(it.copies('svc-plugin-foo').length, 1, 'its folder was swept')
  for (const text of ['three', 'two']) {
    it.write('svc-plugin-foo', { 'index.js': plugin('foo'), 'word.js': word(text) }, { version: '0.2.0' })
    await it.reload()
    t.strictSame(await it.get('/api/test/foo'), { word: text }, 'only a file that it imports has changed')
  }
})

t.test('a package has error codes of its own, and none of another\'s', async t => {
  const codes = (define: string, more = ''): string => `
import { defineErrors, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
const fooError = ${define}
export default definePlugin({ name: 'foo-bar', kind: 'routes', apiVersion: 1, errors: fooError, register (ctx) {
  ctx.addRoute(defineRoute({
    method: 'POST', url: '/api/test/foo', summary: 'x', schema: { body: z.strictObject({ text: z.string() }) }, ${more}
    handler: () => { throw fooError(Object.keys(fooError.rows)[0], 'no room', { details: { left: 0 } }) }
  }))
} })`
  const own = 'defineErrors(`foo_bar`, { full: { status: 507, heals: true, when: `there is no room` }, unread: { status: 422, when: `it cannot be read` } })'
  const it = await home(t, ['svc-plugin-foo'], { 'svc-plugin-foo': { 'index.js': codes(own, 'bodyError: fooError.kind(`foo_bar.unread`),') } })
  t.equal(it.report('foo-bar')?.message, null)
  const post = (body: string): Promise<Response> => it.gateway.fetch('/api/test/foo', { method: 'POST', body })
  const full = await post('{"text":"x"}')
  t.strictSame([full.status, full.headers.get('x-should-retry')], [507, null], 'its row says that it heals')
  t.match(await full.json(), { error: { code: 'foo_bar.full', message: 'no room', details: { left: 0 } } })
  const unread = await post('{"txt":1}')
  t.strictSame([unread.status, unread.headers.get('x-should-retry')], [422, 'false'])
  t.match(await unread.json(), { error: { code: 'foo_bar.unread', message: /txt/, details: { fields: [{ path: 'text' }, { path: 'txt' }] } } })
  const listed = async (): Promise<object[]> => (await it.get('/api/meta/errors') as { errors: Array<{ code: string, plugin: string | null }> })
    .errors.filter(({ code, plugin }) => plugin === 'foo-bar' || code === 'slot.not_found')
  t.strictSame(await listed(), [
    { code: 'foo_bar.full', status: 507, heals: true, when: 'there is no room', plugin: 'foo-bar' },
    { code: 'foo_bar.unread', status: 422, heals: false, when: 'it cannot be read', plugin: 'foo-bar' },
    { code: 'slot.not_found', status: 404, heals: false, when: 'no slot has this name', plugin: null }
  ])
  for (const [define, says] of [
    ['defineErrors(`slot`, { full: { status: 507, when: `x` } })', /index\.js:5: its error codes start with 'slot\.' but must start with its own name: defineErrors\('foo_bar', \.\.\.\)/],
    ['defineErrors(`foo_bar`, { full: { status: 200, when: `x` } })', /index\.js:4: error code 'foo_bar\.full' has status 200/],
    ['(() => {})', /`errors` holds something that is not made by defineErrors/]
  ] as const) {
    it.write('svc-plugin-foo', { 'index.js': codes(define) })
    await it.reload()
    t.match(it.report('foo-bar')?.waiting, { state: 'failed', message: says }, define)
    t.match((await listed())[0], { code: 'foo_bar.full', status: 507 }, 'the one that runs goes on')
  }
})

t.test('mended: an error is told once, and the mended package is loaded', async t => {
  const it = await home(t, ['svc-plugin-foo', 'svc-plugin-other'], {
    'svc-plugin-foo': { 'index.js': 'globalThis.tries = (globalThis.tries ?? 0) + 1\nthrow new Error(`boom`)\n' }
  })
  const tries = (): unknown => (globalThis as { tries?: number }).tries
  t.match(it.report('svc-plugin-foo'), { state: 'failed', code: 'plugin.import_failed', message: /boom/ })
  await it.reload()
  t.equal(tries(), 1, 'what has not changed is judged once')
  await it.reload('svc-plugin-foo')
  t.equal(tries(), 2, 'it is judged again when somebody asks for it')
  it.write('svc-plugin-foo', { 'index.js': plugin('foo'), 'word.js': word('mended') })
  await it.reload()
  t.strictSame(await it.get('/api/test/foo'), { word: 'mended' })
})

t.test('a version that fails does not replace the one that runs, at any step', async t => {
  const good = { 'index.js': plugin('foo'), 'word.js': word('good') }
  const it = await home(t, ['svc-plugin-foo'], { 'svc-plugin-foo': good })
  const cases: ReadonlyArray<readonly [string, Files, object]> = [
    ['import', { 'index.js': 'throw new Error("boom")' }, {}],
    ['manifest', {}, { svc: { apiVersion: 7, kind: 'routes' } }],
    ['shape', { 'index.js': 'export default {}' }, {}],
    ['register', { 'index.js': plugin('foo', 'throw new Error("no")') }, {}],
    ['preflight', { 'index.js': plugin('foo', 'ctx.configureScope(() => { throw new Error("no") })') }, {}],
    ['start', { 'index.js': plugin('foo', 'ctx.onStart(() => { throw new Error("no disk") })') }, {}]
  ]
  for (const [phase, files, manifest] of cases) {
    it.write('svc-plugin-foo', { ...good, ...files }, { version: '0.2.0', ...manifest })
    const reports = await it.reload()
    t.match(reports.find(({ name }) => name === 'foo'), { state: 'active', version: '0.1.0', waiting: { version: '0.2.0', state: 'failed', phase } }, phase)
    t.strictSame(await it.get('/api/test/foo'), { word: 'good' }, phase)
  }
  it.write('svc-plugin-foo', good)
  await it.reload()
  t.match(it.report('foo'), { state: 'active', version: '0.1.0', waiting: null })
  it.write('svc-plugin-foo', { ...good, 'word.js': word('better') }, { version: '0.3.0' })
  await it.reload()
  t.match(it.report('foo'), { version: '0.3.0', waiting: null })
  t.strictSame(await it.get('/api/test/foo'), { word: 'better' })
})

t.test('a package that takes a restart says so, and what runs goes on', async t => {
  const svc = { apiVersion: 1, kind: 'routes', reload: 'restart' }
  const it = await home(t, ['svc-plugin-foo'])
  it.write('svc-plugin-foo', { 'index.js': plugin('foo'), 'word.js': word('one') }, { svc })
  await it.reload('svc-plugin-foo')
  it.write('svc-plugin-foo', { 'word.js': word('two') }, { version: '0.2.0', svc })
  await it.reload()
  t.match(it.report('foo'), { state: 'active', version: '0.1.0', waiting: { version: '0.2.0', state: 'restart' } })
  t.strictSame(await it.get('/api/test/foo'), { word: 'one' })
})

t.test('the plugins that use a service get the new one, or both stay as they are', async t => {
  const bell = (text: string, key: string): string => text
    .replace('kind: \'routes\',', `kind: 'routes', ${key},`)
    .replace('export default', 'const bell = createServiceRef(`live.bell`)\nexport default')
  const ringer = (sound: string): string => bell(plugin('ringer', `ctx.provide(bell, ${sound})`), 'provides: [bell]')
  const door = bell(plugin('door', `const { bell: ring } = ctx.services
    ring()
    ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/ring', summary: 'x', handler: () => ({ ring: ring() }) }))`), 'requires: { bell }')
  const it = await home(t, ['svc-plugin-ringer', 'svc-plugin-door'], {
    'svc-plugin-ringer': { 'index.js': ringer('() => `ding`'), 'word.js': word('') },
    'svc-plugin-door': { 'index.js': door, 'word.js': word('') }
  })
  t.strictSame(await it.get('/api/test/ring'), { ring: 'ding' })
  it.write('svc-plugin-ringer', { 'index.js': ringer('() => `dong`') })
  await it.reload()
  t.strictSame(await it.get('/api/test/ring'), { ring: 'dong' })
  it.write('svc-plugin-ringer', { 'index.js': ringer('1') }, { version: '0.2.0' })
  await it.reload()
  t.strictSame(await it.get('/api/test/ring'), { ring: 'dong' }, 'the plugin that would fall with the new one keeps the old one')
  t.match([it.report('ringer'), it.report('door')], [
    { state: 'active', version: '0.1.0', waiting: { version: '0.2.0', state: 'failed', message: /plugin 'svc-plugin-door', which uses its services.*ring is not a function/ } },
    { state: 'active', waiting: null }
  ])
})

t.test('a changed dependency of a plugin is loaded on reload', async t => {
  const it = await home(t, [])
  const dep = (text: string): void => it.write('some-words', { 'index.js': word(text) }, { svc: undefined, version: text === 'one' ? '1.0.0' : '2.0.0' })
  dep('one')
  it.write('svc-plugin-foo', { 'index.js': plugin('foo').replace('./word.js', 'some-words') }, { dependencies: { 'some-words': '*' } })
  writeFileSync(join(it.gateway.home, 'etc/svc/svc.toml'), '[plugins]\nallow = ["svc-plugin-foo"]\n')
  await it.reload()
  t.strictSame(await it.get('/api/test/foo'), { word: 'one' })
  rmSync(join(it.plugins, 'node_modules/some-words'), { recursive: true })
  dep('two')
  await it.reload()
  t.strictSame(await it.get('/api/test/foo'), { word: 'two' })
})

t.test('a linked folder is taken as it is at each reload; what it depends on stays where it is', async t => {
  const it = await home(t, ['svc-plugin-foo'])
  const folder = join(it.gateway.home, 'mine')
  writePackage(folder, 'svc-plugin-foo', { 'index.js': plugin('foo').replace('./word.js', 'some-words'), 'node_modules/some-words/index.js': word('linked') }, { dependencies: { 'some-words': '*' } })
  writePackage(join(folder, 'node_modules/some-words'), 'some-words', {}, { svc: undefined })
  symlinkSync(folder, join(it.plugins, 'node_modules/svc-plugin-foo'))
  await it.reload()
  t.strictSame(await it.get('/api/test/foo'), { word: 'linked' })
  writeFileSync(join(folder, 'index.js'), plugin('foo').replace('=> ({ word })', '=> ({ word, edited: true })').replace('./word.js', 'some-words'))
  await it.reload()
  t.strictSame(await it.get('/api/test/foo'), { word: 'linked', edited: true })
})

t.test('edited descriptors are taken by both reloads; a broken one leaves the engine as it was', async t => {
  const it = await home(t, [])
  const folder = join(it.gateway.home, 'etc/svc/engines')
  mkdirSync(folder, { recursive: true })
  const descriptor = (title: string): void => writeFileSync(join(folder, 'tiny.toml'), `name = "tiny"\ntitle = ${title}\napiVersion = 1\nimage = "x"\n[surfaces.chat]\npath = "/chat"\n`)
  const title = (): string | undefined => it.gateway.gateway.kernel() && it.gateway.gateway.inference().plans.providerOf({ provider: 'tiny' } as never)?.title
  descriptor('"One"')
  await it.reload()
  t.equal(title(), 'One')
  descriptor('"Two"')
  await it.reload()
  t.equal(title(), 'Two')
  descriptor('"Three"')
  t.equal((await it.gateway.fetch('/api/settings/reload', { method: 'POST' })).status, 200)
  t.equal(title(), 'Three')
  descriptor('3')
  await it.reload()
  t.equal(title(), 'Three')
  t.match(it.report('tiny'), { state: 'active', waiting: { state: 'failed', message: /title/ } })
})

t.test('copies that nobody uses are swept at the start, also half-made ones', async t => {
  const files = { 'index.js': plugin('foo'), 'word.js': word('one') }
  const it = await home(t, ['svc-plugin-foo'], { 'svc-plugin-foo': files })
  const [used] = it.copies('svc-plugin-foo')
  await it.gateway.gateway.stop()
  const generations = join(it.plugins, 'generations')
  for (const left of ['.0a1b2c', 'svc-plugin-foo/0123456789abcdef', 'svc-plugin-gone/0123456789abcdef']) mkdirSync(join(generations, left, 'node_modules'), { recursive: true })
  const again = await createTestGateway({ home: it.gateway.home, runtime: new FakeEngineRuntime() })
  t.teardown(() => again.close())
  t.strictSame(readdirSync(generations), ['svc-plugin-foo'])
  t.strictSame(readdirSync(join(generations, 'svc-plugin-foo')), [used])
})

const engine = (image: string, path: string): string => `
import { definePlugin, defineProvider } from 'svc-gateway/plugin'
export default definePlugin({ name: 'foo', kind: 'provider', apiVersion: 1, register: ctx => ctx.addProvider(defineProvider({
  name: 'foo', title: 'Foo', family: 'foo', devices: ['cpu'], slotTypes: ['llm'], cli: true, needsModel: false, exclusivity: 'standard',
  surfaces: { chat: { path: '${path}', streaming: true, body: 'json' } }, health: { path: '/health' }, image: '${image}', containerSpec: () => ({ command: [], env: {} })
})) })`

t.test('an engine goes on when its provider is replaced, and is marked when it would be started otherwise', async t => {
  const it = await home(t, ['svc-plugin-foo'])
  const svc = { apiVersion: 1, kind: 'provider' }
  it.write('svc-plugin-foo', { 'index.js': engine('registry.test/one', '/v1/chat/completions') }, { svc })
  mkdirSync(join(it.gateway.home, 'etc/svc/slots'), { recursive: true })
  writeFileSync(join(it.gateway.home, 'etc/svc/slots/agent.toml'), 'provider = "foo"\ndevice = "cpu"\n')
  await it.reload()
  const { slots } = it.gateway
  await slots.load('agent')
  const { runtime } = it
  const before = runtime.engine('agent')
  const copies = it.copies('svc-plugin-foo')
  it.write('svc-plugin-foo', { 'index.js': engine('registry.test/one', '/other/chat') }, { svc, version: '0.2.0' })
  await it.reload()
  t.equal(runtime.engine('agent'), before, 'the engine goes on')
  t.match(slots.status('agent'), { state: 'ready', configDrift: false })
  t.ok(it.copies('svc-plugin-foo').includes(copies[0]!), 'its folder stays while it runs')
  it.write('svc-plugin-foo', { 'index.js': engine('registry.test/two', '/other/chat') }, { svc, version: '0.3.0' })
  await it.reload()
  t.equal(runtime.engine('agent'), before)
  t.match(slots.status('agent'), { state: 'ready', configDrift: true })
  await slots.restart('agent')
  t.not(runtime.engine('agent'), before)
  t.match(slots.status('agent'), { configDrift: false })
  await slots.unload('agent')
  await it.reload()
  t.equal(it.copies('svc-plugin-foo').length, 1)
})

t.test('timers, subscriptions and listeners of a plugin go with it', async t => {
  const clock = new FakeClock()
  const left = (globalThis as { left?: string[] }).left = [] as string[]
  const messy = plugin('foo', `const { clock, events, config } = ctx.services
    const tick = () => { globalThis.left.push('tick'); clock.setTimer(1_000, tick) }
    const listen = async () => { for await (const event of events.subscribe({}, new AbortController().signal)) globalThis.left.push(event.type) }
    ctx.onStart(() => {
      clock.setTimer(1_000, tick)
      void listen().then(() => { globalThis.left.push('ended') })
      config.onChange(() => { globalThis.left.push('change') })
    })`).replace('kind: \'routes\',', 'kind: \'routes\', requires: { clock: core.clock, events: core.events, config: core.config },')
  const it = await home(t, ['svc-plugin-foo'], { 'svc-plugin-foo': { 'index.js': messy, 'word.js': word('one') } }, { clock })
  await clock.advance(1_000)
  t.ok(left.includes('tick'))
  it.write('svc-plugin-foo', { 'index.js': plugin('foo') })
  await it.reload()
  t.match(it.report('foo'), { state: 'active', waiting: null })
  t.ok(left.includes('ended'), 'the subscription ended')
  left.length = 0
  writeFileSync(join(it.gateway.home, 'etc/svc/svc.toml'), '[plugins]\nallow = ["svc-plugin-foo"]\n[slots]\nidle_timeout_s = 17\n')
  await it.reload()
  await clock.advance(5_000)
  t.strictSame(left, [])
})

/** A package with a configuration file of its own, and routes that show and change it. */
const parrot = (name = 'parrot'): string => `
import { z } from 'zod'
import { definePlugin, defineRoute } from 'svc-gateway/plugin'
export default definePlugin({ name: '${name}', kind: 'routes', apiVersion: 1, register (ctx) {
  const heard = []
  const file = ctx.addConfigFile({ file: 'parrot.toml', schema: z.strictObject({
    words: z.array(z.string()).default(['hello']), volume: z.number().min(0).max(11).default(5)
  }) })
  file.onChange((next, previous) => heard.push([previous.volume, next.volume]))
  let atStart = null
  ctx.onStart(() => { atStart = file.value.volume })
  ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/${name}', summary: 'x', handler: () => ({ ...file.value, heard, atStart }) }))
  ctx.addRoute(defineRoute({ method: 'PUT', url: '/api/test/${name}', summary: 'x', schema: { body: z.looseObject({}) }, handler: ({ body }) => file.patch(body) }))
} })`

t.test('a package owns a configuration file: it is read, checked, written and told of as the gateway\'s own are', async t => {
  const it = await home(t, ['svc-plugin-parrot'])
  symlinkSync(join(packageRoot, 'node_modules/zod'), join(it.plugins, 'node_modules/zod'))
  const path = join(it.gateway.home, 'etc/svc/parrot.toml')
  it.write('svc-plugin-parrot', { 'index.js': parrot() })
  writeFileSync(path, '# mine\nvolume = 7 # loud\n')
  await it.reload()
  t.match(await it.get('/api/test/parrot'), { words: ['hello'], volume: 7, atStart: 7 }, 'it is read before the plugin starts')

  const put = async (body: object): Promise<[number, unknown]> => {
    const response = await it.gateway.fetch('/api/test/parrot', { method: 'PUT', body: JSON.stringify(body) })
    return [response.status, await response.json()]
  }
  t.match(await put({ volume: 9 }), [200, { volume: 9, words: ['hello'] }])
  t.equal(readFileSync(path, 'utf8'), '# mine\nvolume = 9 # loud\n', 'comments stay')
  t.match(await put({ volume: 12 }), [400, { error: { code: 'validation.invalid', message: /volume must be at most 11/ } }])
  t.match(await put({ volum: 1 }), [400, { error: { code: 'validation.unknown_keys', message: /volum is not a known key; did you mean volume\?/ } }])
  t.equal(readFileSync(path, 'utf8'), '# mine\nvolume = 9 # loud\n', 'what is refused is not written')

  writeFileSync(path, 'words = ["hi"]\nvolume = "loud"\n')
  await it.reload()
  const findings = async (): Promise<unknown> => (await it.get('/api/status') as { diagnostics: unknown }).diagnostics
  t.match(await findings(), [{ file: 'parrot.toml', path: 'volume', line: 2, message: /must be a number/ }])
  t.match(await it.get('/api/test/parrot'), { words: ['hello'], volume: 9 }, 'the last good one stays')
  t.match(await put({ volume: 3 }), [200, { volume: 3, words: ['hi'] }], 'a write mends what it sets')
  t.strictSame((await it.get('/api/test/parrot') as { heard: unknown }).heard, [[5, 7], [7, 9], [9, 3]])
  t.strictSame(await findings(), [])

  it.write('svc-plugin-rival', { 'index.js': parrot('rival') })
  it.write('svc-plugin-greedy', { 'index.js': parrot('greedy').replace('parrot.toml', 'upstreams.toml') })
  it.write('svc-plugin-keen', { 'index.js': parrot('keen').replace('parrot.toml', 'keen.toml').replace('register', `settings: { name: 'keen', schema: z.strictObject({}) }, register`) })
  writeFileSync(join(it.gateway.home, 'etc/svc/svc.toml'), '[plugins]\nallow = ["svc-plugin-parrot", "svc-plugin-rival", "svc-plugin-greedy", "svc-plugin-keen"]\n')
  await it.reload()
  t.match(it.report('rival'), { state: 'failed', code: 'plugin.conflict', message: /configuration file 'parrot.toml' belongs to plugin 'svc-plugin-parrot'; choose another name/ })
  t.match(it.report('keen'), { state: 'failed', code: 'plugin.conflict', message: /a package cannot own the table \[keen\] of svc.toml; give it a `configSchema`/ })
  t.match(it.report('greedy'), { state: 'failed', code: 'plugin.conflict', message: /configuration file 'upstreams.toml' is the gateway's own/ })

  writeFileSync(path, 'volume = 99\n')
  writeFileSync(join(it.gateway.home, 'etc/svc/svc.toml'), '[plugins]\nallow = []\n')
  await it.reload()
  t.strictSame(await findings(), [], 'without its owner nobody reads it')
})

/** A file with a format of its own: an old name of a key, parts that are judged one by one, and what lives off a slot. */
const PERCH = `import { core, defineRoute, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
const perch = z.strictObject({ slot: z.string(), height: z.number().max(30).default(1), up: z.boolean().default(true) })
const perches = {
  file: 'perches.toml', schema: z.record(z.string(), perch),
  format: {
    read (data, { lastGood, words, known, report, check }) {
      known('version', 'perch')
      const said = Object.entries(data.perch ?? {}).map(([name, { branch, ...row }]) => {
        if (name.length > 9) report(['perch', name], 'has a name that is too long')
        return [name, check(perch, { ...branch === undefined ? {} : { slot: words.canonical(branch) }, ...row }, ['perch', name]) ?? lastGood[name]]
      })
      return Object.fromEntries(said.filter(([, row]) => row !== undefined))
    },
    backup: ({ version }) => version === 1 ? '.v1.bak' : null
  },
  findings: (rows, { slots }) => Object.entries(rows).filter(([, { slot }]) => !slots.has(slot))
    .map(([name, { slot }]) => ({ path: 'perch.' + name + '.slot', message: 'is no slot: ' + slot, code: 'slot.not_found', severity: 'warning' })),
  dependents: {
    one: 'perch', all: 'perches',
    of: (rows, { name }) => Object.entries(rows).filter(([, { slot, up }]) => up && slot === name).map(([perch]) => perch),
    drop: (draft, name) => draft.editFile('perches.toml', data => put(data, name, { up: false }))
  }
}
const put = (data, name, row) => ({ ...data, version: 2, perch: { ...data.perch, [name]: { ...data.perch?.[name], ...row } } })
export default definePlugin({ name: 'perch', kind: 'routes', apiVersion: 1, requires: { config: core.config, slots: core.slots }, register (ctx) {
  const { config, slots } = ctx.services
  const file = ctx.addConfigFile(perches)
  const params = z.object({ name: z.string() })
  ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/perch', summary: 'x', handler: () => file.value }))
  ctx.addRoute(defineRoute({ method: 'PUT', url: '/api/test/perch/:name', summary: 'x', schema: { params, body: z.looseObject({}) },
    handler: ({ body, params }) => config.change(draft => draft.editFile('perches.toml', data => put(data, params.name, body))) }))
  ctx.addRoute(defineRoute({ method: 'DELETE', url: '/api/test/slots/:name', summary: 'x', schema: { params, querystring: z.object({ force: z.string().optional() }) },
    handler: async ({ params, query }) => { await slots.delete(params.name, { force: query.force !== undefined }); return {} } }))
} })`

t.test('a package owns a file in a format of its own, and what it says of a slot stops that slot\'s deletion', async t => {
  const it = await home(t, ['svc-plugin-perch'])
  symlinkSync(join(packageRoot, 'node_modules/zod'), join(it.plugins, 'node_modules/zod'))
  const etc = join(it.gateway.home, 'etc/svc')
  const path = join(etc, 'perches.toml')
  mkdirSync(join(etc, 'slots'), { recursive: true })
  for (const name of ['agent', 'other']) writeFileSync(join(etc, `slots/${name}.toml`), 'device = "cpu"\nenabled = false\n')
  const old = 'version = 1\nworms = 1\n[perch.low]\nbranch = "agent" # the thick one\n[perch.high]\nslot = "other"\nheight = 31\n[perch.far]\nslot = "gone"\n'
  writeFileSync(path, old)
  it.write('svc-plugin-perch', { 'index.js': PERCH })
  await it.reload()
  const ask = async (method: string, url: string, body?: object): Promise<[number, unknown]> => {
    const response = await it.gateway.fetch(url, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    return [response.status, await response.json()]
  }
  const held = { low: { slot: 'agent', height: 1, up: true }, far: { slot: 'gone', height: 1, up: true } }
  t.strictSame(await it.get('/api/test/perch'), held, 'an old name is read; one that is broken is left out')
  const { diagnostics } = await it.get('/api/status') as { diagnostics: Array<{ file: string }> }
  t.match(diagnostics.filter(({ file }) => file === 'perches.toml'), [
    { file: 'perches.toml', path: 'worms', message: /is not a known key; known here: version, perch/ },
    { file: 'perches.toml', path: 'perch.high.height', message: /must be at most 30/ },
    { file: 'perches.toml', path: 'perch.far.slot', message: 'is no slot: gone', severity: 'warning' }
  ])

  t.match(await ask('DELETE', '/api/test/slots/agent'), [409, {
    error: { code: 'slot.in_use', message: /^perch 'low' runs in the engine of slot 'agent'/, details: { slot: 'agent', slots: { length: 0 }, perches: ['low'] } }
  }])
  t.match(await ask('PUT', '/api/test/perch/low', { height: 99 }), [400, { error: { code: 'validation.invalid', message: /perch.low.height must be at most 30/ } }])
  t.equal(readFileSync(path, 'utf8'), old, 'what is refused is not written')
  t.match(await ask('PUT', '/api/test/perch/far', { slot: 'other' }), [200, { far: { slot: 'other' } }], 'what was wrong elsewhere before is no obstacle')
  t.match(readFileSync(path, 'utf8'), /version = 2\nworms = 1\n\[perch.low\]\nbranch = "agent" # the thick one/)
  t.equal(readFileSync(`${path}.v1.bak`, 'utf8'), old, 'the old format is kept')

  t.match(await ask('DELETE', '/api/test/slots/agent?force=1'), [200, {}])
  t.match(await it.get('/api/test/perch'), { low: { up: false } }, 'with force it is taken off the slot')
  t.match(readFileSync(path, 'utf8'), /branch = "agent" # the thick one\nup = false/)
  t.notOk(existsSync(join(etc, 'slots/agent.toml')), 'in the change that deletes the slot')
  t.match(await ask('DELETE', '/api/test/slots/other'), [409, { error: { details: { perches: ['far'] } } }], 'as the broken one says nothing')
})

const NEST = `import { core, defineProvider, defineRoute, definePlugin } from 'svc-gateway/plugin'
import { z } from 'zod'
const song = z.strictObject({ notes: z.array(z.string()).default([]), flags: z.string().default('') })
const songs = {
  file: 'songs.toml', schema: z.strictObject({ song: z.record(z.string(), song).default({}) }),
  rows: {
    key: 'song', schema: song, builtin: new Set(['dawn']),
    check: (name, { flags }, world) => world.flags.slot(flags, { provider: 'finch', type: 'tts', profile: null }, { slot: name, what: 'flags of ' + name, param: 'flags' })
  }
}
export default definePlugin({ name: 'nest', kind: ['routes', 'provider'], apiVersion: 1, requires: { config: core.config }, register (ctx) {
  const { config } = ctx.services
  const file = ctx.addConfigFile(songs)
  ctx.addProvider(defineProvider({
    name: 'finch', title: 'Finch', family: 'finch', devices: ['cpu'], slotTypes: ['tts'], cli: true, needsModel: false, flags: { managed: ['port'] },
    surfaces: { speech: { path: '/v1/audio/speech', streaming: true, body: 'json' } }, health: { path: '/health' }, exclusivity: 'standard',
    containerSpec: ({ argv }) => ({ command: argv })
  }))
  ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/nest', summary: 'x', handler: () => file.value }))
  ctx.addRoute(defineRoute({ method: 'PUT', url: '/api/test/nest/:name', summary: 'x', schema: { params: z.object({ name: z.string() }), body: z.unknown() },
    handler: ({ body, params }) => config.change(async draft => {
      await draft.putRow(songs.file, params.name, body.gone ? null : body)
      return draft.files.get(songs.file)
    }) }))
} })`

t.test('a package owns a file of tables by name: each is judged, kept and written by itself', async t => {
  const it = await home(t, ['svc-plugin-nest'])
  symlinkSync(join(packageRoot, 'node_modules/zod'), join(it.plugins, 'node_modules/zod'))
  const path = join(it.gateway.home, 'etc/svc/songs.toml')
  it.write('svc-plugin-nest', { 'index.js': NEST }, { svc: { apiVersion: 1, kind: ['routes', 'provider'] } })
  writeFileSync(path, '# mine\n[song.one]\nnotes = ["c"] # low\n[song.two]\nnotes = ["d"]\n[song.dawn]\nnotes = ["e"]\n')
  await it.reload()
  const findings = async (): Promise<unknown> => (await it.get('/api/status') as { diagnostics: unknown }).diagnostics
  const songs = { one: { notes: ['c'], flags: '' }, two: { notes: ['d'], flags: '' } }
  t.strictSame(await it.get('/api/test/nest'), { song: songs }, 'a name of the plugin\'s own is not used')
  t.match(await findings(), [{ file: 'songs.toml', path: 'song.dawn', message: /is a built-in song/ }])

  writeFileSync(path, '# mine\n[song.one]\nnotes = "c"\n[song.two]\nnotes = ["f"] # high\nflags = "--port 1"\n')
  await it.reload()
  t.strictSame(await it.get('/api/test/nest'), { song: { one: songs.one, two: { notes: ['f'], flags: '--port 1' } } }, 'the broken one stays as it was, the other counts')
  t.match(await findings(), [
    { path: 'song.one.notes', line: 3 }, { path: 'song.two.flags', code: 'slot.managed_arg_denied' }
  ], 'and what no schema knows is found')

  const put = async (name: string, body: object): Promise<[number, unknown]> => {
    const response = await it.gateway.fetch(`/api/test/nest/${name}`, { method: 'PUT', body: JSON.stringify(body) })
    return [response.status, await response.json()]
  }
  t.match(await put('two', { flags: '--port 2' }), [400, { error: { code: 'slot.managed_arg_denied', message: /flags of two: --port is set by the gateway/ } }])
  t.match(await put('dawn', {}), [400, { error: { code: 'validation.invalid', message: /built in/ } }])
  t.match(await put('three', { note: [] }), [400, { error: { code: 'validation.unknown_keys' } }])
  t.match(await put('two', { notes: ['f'], flags: '' }), [200, { song: { two: { flags: /^$/ } } }])
  t.strictSame((await put('one', { gone: true }))[0], 200)
  t.equal(readFileSync(path, 'utf8').includes('notes = ["f"] # high'), true, 'what stays is left as it was written')
  t.strictSame(await it.get('/api/test/nest'), { song: { two: { notes: ['f'], flags: '' } } })
  t.strictSame(await findings(), [])
})
