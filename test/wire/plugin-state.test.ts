import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { definePlugin, defineRoute, type AnyPlugin, type PluginTable } from '../../kernel/contract/index.js'
import { createFakeProvider, createTestGateway, FakeEngineRuntime } from '../../kernel/testing/index.js'

interface Kept {
  readonly plugin: AnyPlugin
  table: PluginTable
  folder: string
}

function keeper (name: string): Kept {
  const kept: Kept = {
    table: undefined as never,
    folder: '',
    plugin: definePlugin({
      name,
      kind: 'service',
      apiVersion: 1,
      register: ctx => {
        kept.table = ctx.table
        kept.folder = ctx.stateDir
      }
    })
  }
  return kept
}

t.test('what a plugin keeps is there at the next start, and is its own', async t => {
  const home = t.testdir()
  const [one, two] = [keeper('one'), keeper('two')]
  const first = await createTestGateway({ home, plugins: [one.plugin, two.plugin] })
  one.table.set('visits', 3)
  one.table.set('last/seen', { by: 'äöü', at: null })
  one.table.set('last/%', true)
  two.table.set('visits', 'other')
  await writeFile(join(one.folder, 'large.bin'), 'bytes')
  t.equal((await stat(one.folder)).mode & 0o777, 0o700)
  t.not(one.folder, two.folder)
  await first.close()

  const second = await createTestGateway({ home, plugins: [one.plugin, two.plugin] })
  t.teardown(() => second.close())
  t.strictSame([one.table.get('visits'), one.table.get('last/seen'), two.table.get('visits')], [3, { by: 'äöü', at: null }, 'other'])
  t.strictSame([one.table.keys(), one.table.keys('last/'), one.table.keys('%')], [['last/%', 'last/seen', 'visits'], ['last/%', 'last/seen'], []])
  t.equal(await readFile(join(one.folder, 'large.bin'), 'utf8'), 'bytes')
  one.table.set('visits', 4)
  t.strictSame([one.table.get('visits'), one.table.delete('visits'), one.table.delete('visits'), one.table.get('visits')], [4, true, false, undefined])
  t.equal(two.table.get('visits'), 'other')
})

t.test('a table refuses what it cannot hold, and says what to do', async t => {
  const one = keeper('one')
  const gateway = await createTestGateway({ plugins: [one.plugin] })
  t.teardown(() => gateway.close())
  const cases: Array<[key: string, value: unknown, message: RegExp]> = [
    ['', 1, /1 to 200 characters/], ['k'.repeat(201), 1, /1 to 200 characters/], ['k', undefined, /'k' must be JSON data, got undefined; `delete` removes/],
    ['k', () => 1, /got function/], ['k', 'x'.repeat(64 * 1024), /takes 65538 bytes.*use a file in ctx\.stateDir/]
  ]
  for (const [key, value, message] of cases) t.throws(() => one.table.set(key, value), { code: 'plugin.state_invalid', message })
  t.strictSame(one.table.keys(), [])
})

t.test('a plugin may bring an engine and its routes', async t => {
  const provider = createFakeProvider({ name: 'twofold', family: 'twofold' })
  const plugin = definePlugin({
    name: 'twofold',
    kind: ['provider', 'routes'],
    apiVersion: 1,
    register: ctx => {
      ctx.addProvider(provider)
      ctx.addRoute(defineRoute({ method: 'GET', url: '/api/twofold', summary: 'Its own route', handler: () => ({ ok: provider.name }) }))
    }
  })
  const gateway = await createTestGateway({
    plugins: [plugin], runtime: new FakeEngineRuntime(), files: { 'etc/svc/slots/a.toml': 'type = "llm"\nprovider = "twofold"\ndevice = "cpu"\n' }
  })
  t.teardown(() => gateway.close())
  t.strictSame(await (await gateway.fetch('/api/twofold')).json(), { ok: 'twofold' })
  t.equal(gateway.slots.provider('a')?.name, 'twofold')
  t.match(gateway.gateway.report()[0], { state: 'active', kind: 'provider, routes' })
  definePlugin({
    name: 'narrow',
    kind: ['provider', 'service'],
    apiVersion: 1,
    // @ts-expect-error neither of its kinds has routes
    register: ctx => ctx.addRoute
  })
})
