import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  core, createServiceRef, definePlugin, defineRoute, sse, type AnyPlugin, type PluginReport, type PluginService
} from '../../../kernel/contract/index.js'
import {
  chatStream, createFakeProviderPlugin, createTestGateway, FakeClock, FakeEngineRuntime, settle, type TestGateway,
  type TestGatewayOptions
} from '../../../kernel/testing/index.js'
import textRoutes from '../../../plugins/v1/text/index.js'

interface Rig extends TestGateway {
  readonly runtime: FakeEngineRuntime
  /** Takes plugins in and out; counts at the next reload. */
  readonly plugins: AnyPlugin[]
  readonly reload: (...again: string[]) => Promise<readonly PluginReport[]>
  state (plugin: string): string
  /** Status and body of a GET. */
  get (path: string): Promise<[number, unknown]>
}

async function rig (t: Test, plugins: readonly AnyPlugin[] = [], options: TestGatewayOptions = {}): Promise<Rig> {
  let service: PluginService | null = null
  const list: AnyPlugin[] = [definePlugin({
    name: 'key',
    kind: 'service',
    apiVersion: 1,
    requires: { plugins: core.plugins },
    register: ctx => { service = ctx.services.plugins }
  }), ...plugins]
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ runtime, ...options, plugins: list })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    plugins: list,
    reload: (...again: string[]) => service!.reload(again),
    state: (plugin: string) => gateway.gateway.report().find(row => row.name === plugin)?.state ?? 'not there',
    get: async (path: string): Promise<[number, unknown]> => {
      const response = await gateway.fetch(path)
      return [response.status, await response.json()]
    }
  })
}

const routeTo = (name: string, handler: () => unknown = () => ({ ok: name })) => defineRoute({ method: 'GET', url: `/api/test/${name}`, summary: 'test', handler })

interface PluginParts {
  readonly start?: (signal: AbortSignal) => void | Promise<void>
  readonly stop?: () => void
  readonly answer?: () => unknown
}

function plugin (name: string, { start, stop, answer }: PluginParts = {}): AnyPlugin {
  return definePlugin({
    name,
    kind: 'routes',
    apiVersion: 1,
    register: ctx => {
      ctx.addRoute(routeTo(name, answer))
      if (start !== undefined) ctx.onStart(start)
      if (stop !== undefined) ctx.onStop(stop)
    }
  })
}

const gone = [404, { error: { code: 'system.http_404' } }]
const down = [503, { error: { code: 'plugin.unavailable' } }]

t.test('plugins come and go; what runs goes on', async t => {
  const log: string[] = []
  let release = (): void => {}
  const ticks = definePlugin({
    name: 'ticks',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => ctx.addRoute(routeTo('ticks', () => sse(async function* () {
      yield { data: 'before' }
      await new Promise<void>(resolve => { release = resolve })
      yield { data: 'after' }
    })))
  })
  const it = await rig(t, [ticks, plugin('old', { stop: () => { log.push('old stops') } })])
  const response = await it.fetch('/api/test/ticks')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  t.match((await reader.read()).value, /before/)
  it.plugins.splice(2, 1, plugin('new', { start: () => { log.push('new starts') } }))
  const report = await it.reload()
  t.strictSame(report.map(({ name, state }) => `${name} ${state}`), ['key active', 'ticks active', 'new active'])
  t.strictSame(log, ['old stops', 'new starts'])
  t.match(await it.get('/api/test/new'), [200, { ok: 'new' }])
  t.match(await it.get('/api/test/old'), gone)
  release()
  t.match((await reader.read()).value, /after/, 'a stream that began before goes on')
  t.ok((await reader.read()).done)
  it.plugins.splice(1, 1)
  await it.reload()
  t.match(await it.get('/api/test/ticks'), gone)
})

t.test('reload loads packages that are newly allowed, retries failed ones and unloads those taken off the list', async t => {
  const it = await rig(t)
  const modules = join(it.home, 'var/lib/svc/plugins/node_modules')
  const install = async (name: string, code: string): Promise<void> => {
    await mkdir(join(modules, name), { recursive: true })
    await writeFile(join(modules, name, 'package.json'), JSON.stringify({ name, version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' } }))
    await writeFile(join(modules, name, 'index.js'), code)
  }
  const allow = (...names: string[]): Promise<void> => writeFile(join(it.home, 'etc/svc/svc.toml'), `[plugins]\nallow = ${JSON.stringify(names)}\n`)
  await install('svc-plugin-disk', `import { definePlugin, defineRoute } from 'svc-gateway/plugin'
    export default definePlugin({ name: 'disk', kind: 'routes', apiVersion: 1, register: ctx => ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/disk', summary: 'x', handler: () => ({ ok: 'disk' }) })) })`)
  t.match(await it.get('/api/test/disk'), gone, 'installed is not allowed')
  await allow('svc-plugin-disk', 'svc-plugin-late')
  await it.reload()
  t.match(await it.get('/api/test/disk'), [200, { ok: 'disk' }])
  t.match(it.gateway.report().find(({ name }) => name === 'svc-plugin-late'), { state: 'failed', code: 'plugin.import_failed', message: /not installed/ })
  await install('svc-plugin-late', `import { definePlugin, defineRoute } from 'svc-gateway/plugin'
    export default definePlugin({ name: 'late', kind: 'routes', apiVersion: 1, register: ctx => ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/late', summary: 'x', handler: () => ({ ok: 'late' }) })) })`)
  await it.reload()
  t.match(await it.get('/api/test/late'), [200, { ok: 'late' }], 'what had failed is tried again')
  await allow('svc-plugin-late')
  await it.reload()
  t.match(await it.get('/api/test/disk'), gone)
  t.match(await it.get('/api/test/late'), [200, {}])

  const engines = join(it.home, 'etc/svc/engines')
  await mkdir(engines, { recursive: true })
  await writeFile(join(engines, 'tiny.toml'), 'name = "tiny"\n')
  await it.reload()
  t.equal(it.state('tiny'), 'failed')
  await writeFile(join(engines, 'tiny.toml'), 'name = "tiny"\napiVersion = 1\nimage = "x"\n[surfaces.chat]\npath = "/chat"\n')
  await it.reload()
  t.equal(it.state('tiny'), 'active')
  t.ok(it.gateway.inference().slots !== undefined)
  await rm(join(engines, 'tiny.toml'))
  await it.reload()
  t.equal(it.state('tiny'), 'not there')
  await writeFile(join(it.home, 'etc/svc/svc.toml'), '[plugins]\ndisabled = ["svc-plugin-late"]\nallow = ["svc-plugin-late"]\n')
  await it.reload()
  t.equal(it.state('svc-plugin-late'), 'disabled', 'also one that runs')
  t.match(await it.get('/api/test/late'), gone)
})

t.test('services: whoever loses one goes with it, and comes back with it', async t => {
  const bell = createServiceRef<() => string>('test.bell')
  let broken = true
  const ringer = (sound: string): AnyPlugin => definePlugin({
    name: 'ringer',
    kind: 'service',
    apiVersion: 1,
    provides: [bell],
    register: ctx => {
      ctx.provide(bell, () => sound)
      ctx.onStart(() => { if (broken) throw new Error('no battery') })
    }
  })
  const door = definePlugin({
    name: 'door', kind: 'routes', apiVersion: 1, requires: { bell }, register: ctx => ctx.addRoute(routeTo('door', () => ({ ok: ctx.services.bell() })))
  })
  const it = await rig(t, [door, ringer('ding')])
  t.equal(it.state('ringer'), 'failed')
  t.equal(it.state('door'), 'skipped')
  t.match(await it.get('/api/test/door'), down)
  broken = false
  await it.reload('ringer')
  t.match(await it.get('/api/test/door'), [200, { ok: 'ding' }], 'one that failed at its start is tried again, with its service')
  const old = it.plugins.pop()!
  await it.reload()
  t.match(it.gateway.report().find(({ name }) => name === 'door'), { state: 'failed', code: 'plugin.missing_service' })
  t.match(await it.get('/api/test/door'), gone)
  it.plugins.push(ringer('dong'))
  await it.reload()
  t.match(await it.get('/api/test/door'), [200, { ok: 'dong' }], 'the new one, not the one it knew')
  t.not(old, it.plugins.at(-1))
})

t.test('requests wait for a plugin that starts, at the boot and at a reload', async t => {
  let release = (_: Error | null): void => {}
  const slow = (): AnyPlugin => plugin('slow', {
    start: () => new Promise((resolve, reject) => { release = error => { if (error === null) resolve(); else reject(error) } })
  })
  const it = await rig(t)
  for (const [error, expected] of [[null, [200, { ok: 'slow' }]], [new Error('no disk'), down]] as const) {
    it.plugins.splice(1, 1, slow())
    release = () => {}
    const reloading = it.reload()
    let over = false
    while (it.state('slow') === 'not there') await settle()
    const answer = (async () => {
      for (;;) {
        const got = await it.get('/api/test/slow')
        if (got[0] !== 404) return got
      }
    })().then(got => {
      over = true
      return got
    })
    for (let i = 0; i < 50; i++) await settle()
    t.notOk(over, 'it waits')
    release(error)
    t.match(await answer, expected)
    await reloading
    it.plugins.splice(1, 1)
    await it.reload()
  }
})

t.test('the gateway listens and waits for its plugins, it does not refuse', async t => {
  let release = (): void => {}
  let base: () => string | null = () => null
  const slow = definePlugin({
    name: 'slow',
    kind: 'routes',
    apiVersion: 1,
    requires: { info: core.info },
    register: ctx => {
      base = () => ctx.services.info.baseUrl
      ctx.addRoute(routeTo('slow'))
      ctx.onStart(() => new Promise(resolve => { release = resolve }))
    }
  })
  const starting = rig(t, [slow])
  while (base() === null) await settle()
  const answer = fetch(`${base()!}/api/test/slow`)
  for (let i = 0; i < 50; i++) await settle()
  release()
  t.equal((await answer).status, 200)
  await starting
})

t.test('a provider that goes while its slot streams', async t => {
  let release = (): void => {}
  const it = await rig(t, [textRoutes, createFakeProviderPlugin()], { files: { 'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "cpu"\n' } })
  const chat = (stream: boolean): Promise<Response> =>
    it.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'agent', messages: [], stream }) })
  await (await chat(false)).text()
  const words = chatStream(Array.from({ length: 60 }, (_, i) => ` w${i}`))
  const engine = it.runtime.engine('agent')
  engine.answer({ headers: { 'content-type': 'text/event-stream' }, chunks: words, everyMs: 2 })
  const stream = (await chat(true)).text()
  // another plugin takes its time to start: nothing hangs meanwhile
  it.plugins.splice(2, 1, plugin('slow', { start: () => new Promise(resolve => { release = resolve }) }))
  const reloading = it.reload()
  while (it.state('slow') === 'not there') await settle()
  const refused = await chat(false)
  t.equal(refused.status, 503)
  t.match(await refused.json(), { error: { code: 'slot.provider_gone', message: /no active plugin provides 'fake'.*svc slot edit agent --provider/ } })
  release()
  await reloading
  t.equal(await stream, words.join(''), 'what runs ends in peace')
  it.plugins.push(createFakeProviderPlugin())
  await it.reload()
  engine.answer({ chunks: ['{}'] })
  t.equal((await chat(false)).status, 200, 'the slot is back, with the same engine')
})

t.test('a plugin that cannot be mounted a second time falls alone, with whatever needs it', async t => {
  const lamp = createServiceRef<string>('test.lamp')
  let scopes = 0
  const fickle = definePlugin({
    name: 'fickle',
    kind: 'routes',
    apiVersion: 1,
    provides: [lamp],
    register: ctx => {
      ctx.provide(lamp, 'on')
      ctx.addRoute(routeTo('fickle'))
      ctx.configureScope(() => { if (++scopes > 2) throw new Error('only once') })
    }
  })
  const reader = definePlugin({ name: 'reader', kind: 'routes', apiVersion: 1, requires: { lamp }, register: ctx => ctx.addRoute(routeTo('reader')) })
  const it = await rig(t, [fickle, reader])
  t.match(await it.get('/api/test/reader'), [200, {}])
  it.plugins.push(plugin('another'))
  await it.reload()
  t.match(await it.get('/api/test/another'), [200, { ok: 'another' }])
  t.match(it.gateway.report().find(({ name }) => name === 'fickle'), { state: 'failed', phase: 'mount', message: 'only once' })
  t.match(it.gateway.report().find(({ name }) => name === 'reader'), { state: 'skipped', message: /fickle/ })
  t.match(await it.get('/api/test/fickle'), down)
  t.match(await it.get('/api/test/reader'), down)
  scopes = 0
  await it.reload('fickle')
  t.match(await it.get('/api/test/reader'), [200, { ok: 'reader' }], 'and is tried again')
})

/** Its scope holds a port from its hook `onReady` on until it is closed. */
function portHolder (onReady = async (): Promise<void> => {}): AnyPlugin {
  let port = 0
  return definePlugin({
    name: 'holder',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => {
      ctx.addRoute(routeTo('holder'))
      ctx.configureScope(app => {
        const server = createServer()
        app.register(async inner => {
          inner.addHook('onReady', async () => {
            await onReady()
            server.listen(port, '127.0.0.1')
            await once(server, 'listening')
            port = (server.address() as AddressInfo).port
          })
        })
        app.addHook('onClose', () => new Promise<void>(resolve => { server.close(() => resolve()) }))
      })
    }
  })
}

const readyToo = definePlugin({
  name: 'ready-too',
  kind: 'routes',
  apiVersion: 1,
  register: ctx => {
    ctx.addRoute(routeTo('ready-too'))
    ctx.configureScope(app => { app.addHook('onReady', async () => {}) })
  }
})

t.test('a plugin whose onReady fails at a reload falls alone, and what is new starts', async t => {
  let stopped = 0
  const leaving = plugin('leaving', { stop: () => { stopped++ } })
  const it = await rig(t, [portHolder(), readyToo, leaving])
  t.match(await it.get('/api/test/holder'), [200, {}])
  it.plugins.splice(3, 1, plugin('another'))
  await it.reload()
  t.match(await it.get('/api/test/another'), [200, { ok: 'another' }])
  t.match(await it.get('/api/test/ready-too'), [200, { ok: 'ready-too' }])
  t.equal(stopped, 1, 'what leaves was stopped')
  t.match(it.gateway.report().find(({ name }) => name === 'holder'), { state: 'failed', phase: 'mount', message: /EADDRINUSE/ })
  t.match(await it.get('/api/test/holder'), down)
  await it.reload('holder')
  t.match(await it.get('/api/test/holder'), [200, { ok: 'holder' }], 'and is tried again once the port is free')
})

t.test('a plugin whose onReady succeeds in the dry run only falls alone at boot', async t => {
  let times = 0
  const it = await rig(t, [portHolder(async () => { if (++times === 2) throw new Error('only once') }), readyToo])
  t.match(it.gateway.report().find(({ name }) => name === 'holder'), { state: 'failed', phase: 'mount', message: 'only once' })
  t.match(await it.get('/api/test/ready-too'), [200, { ok: 'ready-too' }])
  t.match(await it.get('/api/test/holder'), down)
})

t.test('a reload that brings nothing new mounts nothing anew', async t => {
  let scopes = 0
  const counted = definePlugin({
    name: 'counted',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => {
      ctx.addRoute(routeTo('counted'))
      ctx.configureScope(() => { scopes++ })
    }
  })
  const broken = plugin('broken', { start: () => { throw new Error('not today') } })
  const it = await rig(t, [counted, broken])
  const before = scopes
  t.match((await it.reload()).map(({ name, state }) => `${name} ${state}`), ['key active', 'counted active', 'broken failed'])
  t.equal(scopes, before)
  t.match(await it.get('/api/test/counted'), [200, { ok: 'counted' }])
  t.match(await it.get('/api/test/broken'), down)
  it.plugins.push(plugin('another'))
  await it.reload()
  t.equal(scopes, before + 1, 'what is new is mounted')
})

t.test('a scope that will not close keeps nobody waiting for ever', async t => {
  const clock = new FakeClock()
  let scopes = 0
  const stubborn = definePlugin({
    name: 'stubborn',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => {
      ctx.configureScope(app => {
        app.get('/api/test/scope', () => ({ ok: 'scope' }))
        // the first is the dry run, the second serves
        if (++scopes === 2) app.addHook('onClose', () => new Promise<void>(() => {}))
      })
    }
  })
  const it = await rig(t, [stubborn], { clock })
  t.match(await it.get('/api/test/scope'), [200, { ok: 'scope' }])
  it.plugins.push(plugin('another'))
  let over = false
  const reloading = it.reload().then(() => { over = true })
  while (!over) await clock.advance(1_000)
  await reloading
  t.match(await it.get('/api/test/another'), [200, { ok: 'another' }])
  t.ok(it.logs.some(({ level, message }) => level === 'error' && /did not close its scope/.test(message)))
})

t.test('a scope has the schemas of Fastify, whose compilers are loaded with the first of them', async t => {
  const querystring = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
  const response = { 200: { type: 'object', properties: { n: { type: 'integer' } } } }
  const it = await rig(t, [definePlugin({
    name: 'schemas',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => {
      ctx.configureScope(app => {
        app.get('/api/test/schemas', { schema: { querystring, response }, attachValidation: true }, ({ query, validationError }) =>
          validationError === undefined ? { ...query as object, secret: 1 } : { n: -1 })
      })
    }
  })])
  t.strictSame(await it.get('/api/test/schemas?n=5'), [200, { n: 5 }], 'what the schema of the answer lacks is left out')
  t.strictSame(await it.get('/api/test/schemas?n=five'), [200, { n: -1 }], 'what does not fit is found')
})
