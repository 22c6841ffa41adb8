import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { authorHome, described, descriptor, type Files } from './author-home.js'

interface Mistake {
  readonly name: string
  readonly files: Files
  readonly manifest?: object
  /** Seen when it is added; the others are found in the home, as folders that are linked there, at one reload. */
  readonly added?: true
  /** What the command line says of it: the file, the line where there is one, and the mend. */
  readonly says: RegExp
}

const head = 'import { core, createServiceRef, definePlugin, defineProvider, defineRoute } from \'svc-gateway/plugin\'\n'
const plugin = (name: string, register: string, more = '', kind = 'routes'): string =>
  `${head}export default definePlugin({ name: '${name}', kind: '${kind}', apiVersion: 1, ${more}\nregister (ctx) {\n${register}\n} })\n`
/** As a compiler leaves it: each line of the code comes from the line ten further down in a source. */
const built = (code: string): Files => ({
  'index.js': `${code}//# sourceMappingURL=index.js.map\n`,
  'index.js.map': JSON.stringify({ version: 3, sources: ['src/index.ts'], names: [], mappings: `AAUA${';AACA'.repeat(code.split('\n').length)}` })
})
const route = (url: string): string => `ctx.addRoute(defineRoute({ method: 'GET', url: '${url}', summary: 'x', handler: () => ({ ok: true }) }))`

const mistakes: readonly Mistake[] = [
  { name: 'bad JSON', added: true, files: { 'package.json': '{\n  "name": "x",\n  "version": "1.0.0"\n  "type": "module"\n}\n' }, says: /package\.json:4: it is not valid JSON/ },
  { name: 'no default export', files: { 'index.js': 'export const a = 1\n' }, says: /there is no default export; write `export default definePlugin/ },
  { name: 'a plain object', files: { 'index.js': 'export default { name: "x" }\n' }, says: /it is a plain object; write `export default definePlugin/ },
  { name: 'a function', files: { 'index.js': 'export default () => {}\n' }, says: /it is a function; write .* the function is its `register`/ },
  { name: 'another contract', added: true, files: {}, manifest: { svc: { apiVersion: 2, kind: 'routes' } }, says: /written for version 2 of the plugin contract; this gateway has version 1; take a version of the package.*\(package\.json:1\)/ },
  { name: 'a TypeScript entry', files: { 'src/index.ts': 'export default 1 as number\n' }, manifest: { exports: './src/index.ts' }, says: /src\/index\.ts: it is TypeScript: build first \(npm run build\), and point the entry/ },
  { name: 'not built', added: true, files: {}, manifest: { exports: './dist/index.js' }, says: /package\.json: the entry dist\/index\.js is not there; run `npm run build`/ },
  { name: 'register throws', files: { 'index.js': plugin('throws', 'throw new Error(\'boom\')') }, says: /index\.js:4: boom/ },
  { name: 'built code throws', added: true, files: built(plugin('throws-built', 'throw new Error(\'boom\')')), says: /at register: src\/index\.ts:14: boom/ },
  { name: 'built code imports what is not there', files: built('import \'some-missing-package\'\n'), says: /src\/index\.ts:11: it imports the package/ },
  { name: 'a syntax error', files: { 'index.js': 'import \'./other.js\'\n', 'other.js': 'export const a = {\n  b: 1 2\n}\n' }, says: /other\.js:2: Unexpected number/ },
  { name: 'a name that is taken', files: { 'index.js': plugin('api-slots', '') }, says: /index\.js:2: there is a plugin named 'api-slots' already; give it another name/ },
  { name: 'an undeclared dependency', files: { 'index.js': 'import \'fs\'\nimport \'some-missing-package\'\n' }, says: /index\.js:2: it imports the package 'some-missing-package', .* declare it in "dependencies"/ },
  { name: 'a descriptor key', added: true, files: { 'engine.toml': descriptor('badkey', 'devises = ["cpu"]') }, manifest: described, says: /engine\.toml: devises .*did you mean.*devices.*\(line 7\)/ },
  { name: 'a placeholder', files: { 'engine.toml': descriptor('badplace', '', '["./engine.mjs", "{prt}"]') }, manifest: described, says: /engine\.toml: process\.1 .*prt.*did you mean.*port.*\(line 3\)/ },
  { name: 'a route that is taken', files: { 'index.js': plugin('collides', route('/api/slots')) }, says: /index\.js:4: GET \/api\/slots belongs to plugin 'api-slots'; choose another URL/ },
  { name: 'a schema that is none', files: { 'index.js': plugin('schema', '', 'configSchema: {},') }, says: /index\.js:2: its configSchema is not a zod schema/ },
  { name: 'a database that is none', files: { 'index.js': plugin('database', '', 'databases: [{ path: \'x.db\' }],') }, says: /index\.js:2: `databases` holds something without the functions `path` and `upgrade`/ },
  { name: 'a route schema that is none', files: { 'index.js': plugin('route-schema', 'ctx.addRoute(defineRoute({ method: \'POST\', url: \'/api/test/schema\', summary: \'x\', schema: { body: {} }, handler: () => ({}) }))') }, says: /index\.js:4: schema\.body of POST \/api\/test\/schema is not a zod schema/ },
  { name: 'a scope\'s route that is taken', added: true, files: { 'index.js': plugin('scoped', 'ctx.configureScope(app => { app.get(\'/api/slots\', () => 1) })') }, says: /index\.js:4: GET \/api\/slots belongs to plugin 'api-slots'/ },
  { name: 'a misspelt service', files: { 'index.js': plugin('core-slot', '', '\nrequires: { slots: core.slot },') }, says: /index\.js:3: core has no service 'slot'; did you mean core\.slots\?/ },
  { name: 'a method of another kind', files: { 'index.js': plugin('other-kind', 'ctx.addProvider({})') }, says: /index\.js:4: kind 'routes' has no addProvider; kinds that have it: 'provider'/ },
  { name: 'too new', added: true, files: {}, manifest: { peerDependencies: { 'svc-gateway': '>=2' } }, says: /needs svc-gateway >=2 .*and this is svc-gateway 0\.\d+\.\d+; take a version of the package.*\(package\.json:1\)/ },
  { name: 'too old', added: true, files: {}, manifest: { peerDependencies: { 'svc-gateway': '<0.0.5' } }, says: /needs svc-gateway <0\.0\.5 .*and this is svc-gateway 0\.\d+\.\d+/ }
]

t.test('mistakes that authors make: each is told with the file, the line and the mend', async t => {
  const { url, onHome, svc, pack, link, log } = await authorHome(t)
  const linked: Array<{ readonly names: readonly string[], readonly mistake: Mistake }> = []
  for (const [i, mistake] of mistakes.entries()) {
    const { name, files, manifest, says, added } = mistake
    const packageName = `svc-plugin-m${i}`
    const folder = pack(packageName, files, manifest)
    if (added === undefined) {
      link(folder)
      linked.push({ names: [packageName, ...Object.values(files).flatMap(text => /name(?: =|:) ['"]([\w-]+)/.exec(text)?.[1] ?? [])], mistake })
    } else {
      t.match(await onHome('plugin', 'add', folder), { code: 1, stderr: says }, name)
    }
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
  t.equal((await onHome('plugin', 'add', pack('svc-plugin-late', late))).code, 0)
  let listed = ''
  while (!listed.includes('late failure')) listed = (await onHome('plugin', 'list')).stdout
  t.match(listed, /! late: 1 late failure, the last: background work failed: src\/index\.ts:16: nobody waits/)

  const busy = built(plugin('busy', `ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/busy', summary: 'x', handler: () => {
  const end = Date.now() + 3000
  while (Date.now() < end) {}
  return {}
} }))`))
  t.equal((await onHome('plugin', 'add', pack('svc-plugin-busy', busy))).code, 0)
  while (!log().includes('busy blocked the gateway')) await (await fetch(`${url}/api/test/busy`)).text()
  t.match(log(), /plugin busy blocked the gateway for more than a second, at src\/index\.ts:1[56];/)
})

t.test('what a reload brings in force, and what it does not', async t => {
  const { home, url, onHome, svc, pack, log } = await authorHome(t)
  const engine = join(home, 'etc/svc/engines/mine.toml')
  mkdirSync(dirname(engine), { recursive: true })
  writeFileSync(engine, descriptor('mine', 'devises = ["cpu"]'))
  t.match(await svc('config', 'reload'), { code: 0, stdout: /Plugins that are not in force:\n {2}mine: plugin\.manifest_invalid at manifest: engines\/mine\.toml: devises/ })
  t.match(await svc('plugin', 'reload'), { code: 1, stderr: /plugins are not in force\n {2}mine: .*devises[^]*svc plugin reload <name>/ })
  writeFileSync(engine, descriptor('mine'))
  t.match(await svc('plugin', 'reload', '--json'), { code: 0, stdout: /"mine"/ })

  const source = `${head}import { z } from 'zod'
export default definePlugin({ name: 'greeter', kind: 'routes', apiVersion: 1, configSchema: z.strictObject({ word: z.string().default('hello') }),
register (ctx) {
const beat = setInterval(() => {}, 60_000)
ctx.signal.addEventListener('abort', () => { clearInterval(beat); ctx.log.info(\`the one that said \${ctx.config.word} is gone\`) })
ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/greeter', summary: 'x', handler: () => ({ word: ctx.config.word }) })) } })
`
  t.equal((await onHome('plugin', 'add', pack('svc-plugin-greeter', { 'index.js': source }, { dependencies: { zod: '*' } }))).code, 0)
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
  t.match(await onHome('plugin', 'add', lasting('0.1.0')), { code: 0, stdout: /Plugin lasting is active/ })
  const waits = /lasting: 0\.1\.0 active, 0\.2\.0 waits for a restart/
  t.match(await onHome('plugin', 'add', lasting('0.2.0')), { code: 0, stdout: waits })
  t.match((await onHome('plugin', 'list')).stdout, waits)
  t.match((await onHome('doctor', '--plain')).stdout, new RegExp(`^WARN plugins .*${waits.source}`, 'm'))
  t.match(await (await fetch(`${url}/api/plugins/lasting`)).json(), { state: 'active', version: '0.1.0', waiting: { version: '0.2.0', state: 'restart' } })

  const patched = await fetch(`${url}/api/settings`, {
    method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"plugins":{"config":{"greeter":{"word":"ahoj"}}}}'
  })
  t.equal(patched.status, 200)
  t.same(await greeting(), { word: 'ahoj' })
})
