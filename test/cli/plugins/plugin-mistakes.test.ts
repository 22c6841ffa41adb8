import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { authorHome, descriptor } from './author-home.js'
import { built, head, linkedMistakes, plugin, route, type Mistake } from './mistakes.js'

t.test('mistakes that authors make: each is told with the file, the line and the mend', async t => {
  const { url, onHome, svc, pack, link, log } = await authorHome(t)
  const linked: Array<{ readonly names: readonly string[], readonly mistake: Mistake }> = []
  for (const [i, mistake] of linkedMistakes.entries()) {
    const packageName = `svc-plugin-m${i}`
    link(pack(packageName, mistake.files, mistake.manifest))
    linked.push({ names: [packageName, ...Object.values(mistake.files).flatMap(text => /name(?: =|:) ['"]([\w-]+)/.exec(text)?.[1] ?? [])], mistake })
  }
  const { code, stderr } = await svc('plugin', 'reload')
  t.equal(code, 1)
  for (const { names, mistake: { name, says } } of linked) {
    t.match(stderr.split('\n').find(line => names.some(own => line.startsWith(`  ${own}: `))), says, name)
  }

  const get = async <T>(path: string): Promise<T> => await (await fetch(`${url}${path}`)).json() as T
  const { plugins } = await get<{ plugins: Array<{ name: string, state: string }> }>('/api/plugins')
  const failed = plugins.filter(({ state }) => state === 'failed').map(({ name }) => `plugin ${name}`)
  t.ok(failed.includes('plugin throws') && failed.includes('plugin svc-plugin-m1'), 'with the package\'s name where there is no other')
  const health = await get<{ status: string, degraded_by: string[] }>('/api/health')
  t.strictSame([health.status, health.degraded_by.sort()], ['degraded', failed.sort()], 'the gateway says what is unhealthy')
  const doctor = (await onHome('doctor', '--plain')).stdout
  t.match(doctor, /^OK {3}config /m, 'svc.toml is as good as ever')
  t.match(doctor, /^WARN plugins .*throws: plugin\.register_failed.*index\.js:4: boom/m)

  const late = built(plugin('late', `${route('/api/test/late')}
ctx.onStart(() => { setTimeout(() => {
  Promise.reject(new Error('nobody waits'))
}, 10) })`))
  link(pack('svc-plugin-late', late))
  await svc('plugin', 'reload')
  let listed = ''
  while (!listed.includes('late failure')) listed = (await onHome('plugin', 'list')).stdout
  t.match(listed, /! late: 1 late failure, the last: background work failed: src\/index\.ts:16: nobody waits/)

  const busy = built(plugin('busy', `ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/busy', summary: 'x', handler: () => {
  const end = Date.now() + 2000
  while (Date.now() < end) {}
  return {}
} }))`))
  link(pack('svc-plugin-busy', busy))
  await svc('plugin', 'reload')
  while (!log().includes('busy blocked the gateway')) await (await fetch(`${url}/api/test/busy`)).text()
  t.match(log(), /plugin busy blocked the gateway for more than a second, at src\/index\.ts:1[56];/)
})

t.test('what a reload brings in force, and what it does not', async t => {
  const { home, url, onHome, svc, pack, link, log } = await authorHome(t)
  const engine = join(home, 'etc/svc/engines/mine.toml')
  mkdirSync(dirname(engine), { recursive: true })
  writeFileSync(engine, descriptor('mine', 'devises = ["cpu"]'))
  t.match(await svc('config', 'reload'), { code: 0, stdout: /Plugins that are not active:\n {2}mine: plugin\.manifest_invalid at manifest: engines\/mine\.toml: devises/ })
  t.match(await svc('plugin', 'reload'), { code: 1, stderr: /some plugins are not active\n {2}mine: .*devises[^]*svc plugin reload <name>/ })
  writeFileSync(engine, descriptor('mine'))
  t.match(await svc('plugin', 'reload', '--json'), { code: 0, stdout: /"mine"/ })
  t.match(await svc('plugin', 'reload', 'mien'), { code: 1, stdout: /^$/, stderr: /there is no plugin mien\n.*svc plugin list/ })

  const source = `${head}import { z } from 'zod'
export default definePlugin({ name: 'greeter', kind: 'routes', apiVersion: 1, configSchema: z.strictObject({ word: z.string().default('hello') }),
register (ctx) {
const beat = setInterval(() => {}, 60_000)
ctx.signal.addEventListener('abort', () => { clearInterval(beat); ctx.log.info(\`the one that said \${ctx.config.word} is gone\`) })
ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/greeter', summary: 'x', handler: () => ({ word: ctx.config.word }) })) } })
`
  link(pack('svc-plugin-greeter', { 'index.js': source }, { dependencies: { zod: '*' } }))
  t.equal((await svc('plugin', 'reload')).code, 0)
  const greeting = async (): Promise<unknown> => await (await fetch(`${url}/api/test/greeter`)).json()
  const settings = (toml: string): void => writeFileSync(join(home, 'etc/svc/svc.toml'), `[plugins]\nallow = ["svc-plugin-greeter"]\n${toml}`)
  t.same(await greeting(), { word: 'hello' })
  settings('[plugins.config.greeter]\nword = "moin"\n')
  t.equal((await svc('config', 'reload')).code, 0)
  t.same(await greeting(), { word: 'moin' }, 'its settings are in force at once')
  t.match(log(), /the one that said hello is gone/, 'its signal ended what it had made itself')
  settings('[plugins.config.greeter]\nword = 1\n')
  const refused = await svc('plugin', 'reload')
  t.match(refused, { code: 1, stderr: /greeter: 1\.0\.0 active, a changed one failed: plugin\.config_invalid at config: .*word must be/ })
  t.same(await greeting(), { word: 'moin' }, 'what ran goes on')
  const lasting = (version: string): string => pack('svc-plugin-lasting', { 'index.js': plugin('lasting', '') }, { version, svc: { apiVersion: 1, kind: 'routes', reload: 'restart' } })
  link(lasting('0.1.0'))
  await svc('plugin', 'reload')
  lasting('0.2.0')
  await svc('plugin', 'reload')
  const waits = /lasting: 0\.1\.0 active, 0\.2\.0 waits for a restart/
  t.match((await onHome('plugin', 'list')).stdout, waits)
  t.match((await onHome('doctor', '--plain')).stdout, new RegExp(`^WARN plugins .*${waits.source}`, 'm'))
  t.match(await (await fetch(`${url}/api/plugins/lasting`)).json(), { state: 'active', version: '0.1.0', waiting: { version: '0.2.0', state: 'restart' } })

  const patched = await fetch(`${url}/api/settings`, {
    method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"plugins":{"config":{"greeter":{"word":"ahoj"}}}}'
  })
  t.equal(patched.status, 200)
  t.same(await greeting(), { word: 'ahoj' })
})
