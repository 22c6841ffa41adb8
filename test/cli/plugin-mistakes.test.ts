import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import t from 'tap'
import { run, spawnSvc, type Finished } from './support.js'

type Files = Readonly<Record<string, string>>

interface Mistake {
  readonly name: string
  readonly files: Files
  readonly manifest?: object
  /** What the command line says of it: the file, the line where there is one, and the mend. */
  readonly says: RegExp
}

const head = 'import { core, createServiceRef, definePlugin, defineProvider, defineRoute } from \'svc-gateway/plugin\'\n'
const plugin = (name: string, register: string, more = '', kind = 'routes'): string =>
  `${head}export default definePlugin({ name: '${name}', kind: '${kind}', apiVersion: 1, ${more}\nregister (ctx) {\n${register}\n} })\n`
const route = (url: string): string => `ctx.addRoute(defineRoute({ method: 'GET', url: '${url}', summary: 'x', handler: () => ({ ok: true }) }))`
const descriptor = (name: string, more = '', process = '["./engine.mjs", "{port}"]'): string =>
  `name = "${name}"\napiVersion = 1\nprocess = ${process}\ndevices = ["cpu"]\nslot_types = ["llm"]\nneeds_model = false\n${more}\n[health]\npath = "/health"\n[surfaces.chat]\npath = "/v1/chat/completions"\n`
const described = { svc: { apiVersion: 1, kind: 'provider', descriptor: './engine.toml' } }

const mistakes: readonly Mistake[] = [
  { name: 'bad JSON', files: { 'package.json': '{\n  "name": "x",\n  "version": "1.0.0"\n  "type": "module"\n}\n' }, says: /package\.json:4: it is not valid JSON/ },
  { name: 'no default export', files: { 'index.js': 'export const a = 1\n' }, says: /there is no default export; write `export default definePlugin/ },
  { name: 'a plain object', files: { 'index.js': 'export default { name: "x" }\n' }, says: /it is a plain object; write `export default definePlugin/ },
  { name: 'a function', files: { 'index.js': 'export default () => {}\n' }, says: /it is a function; write .* the function is its `register`/ },
  { name: 'another contract', files: {}, manifest: { svc: { apiVersion: 2, kind: 'routes' } }, says: /written for version 2 of the plugin contract; this gateway has version 1; take a version of the package/ },
  { name: 'a TypeScript entry', files: { 'src/index.ts': 'export default 1 as number\n' }, manifest: { exports: './src/index.ts' }, says: /src\/index\.ts: it is TypeScript: build first \(npm run build\), and point the entry/ },
  { name: 'not built', files: {}, manifest: { exports: './dist/index.js' }, says: /package\.json: the entry dist\/index\.js is not there; run `npm run build`/ },
  { name: 'register throws', files: { 'index.js': plugin('throws', 'throw new Error(\'boom\')') }, says: /index\.js:4: boom/ },
  { name: 'a syntax error', files: { 'index.js': 'import \'./other.js\'\n', 'other.js': 'export const a = {\n  b: 1 2\n}\n' }, says: /other\.js:2: Unexpected number/ },
  { name: 'a name that is taken', files: { 'index.js': plugin('api-slots', '') }, says: /there is a plugin named 'api-slots' already; give it another name/ },
  { name: 'an undeclared dependency', files: { 'index.js': 'import \'fs\'\nimport \'some-missing-package\'\n' }, says: /index\.js:2: it imports the package 'some-missing-package', .* declare it in "dependencies"/ },
  { name: 'a descriptor key', files: { 'engine.toml': descriptor('badkey', 'devises = ["cpu"]') }, manifest: described, says: /engine\.toml: .*devises.*did you mean.*devices/ },
  { name: 'a placeholder', files: { 'engine.toml': descriptor('badplace', '', '["./engine.mjs", "{prt}"]') }, manifest: described, says: /engine\.toml: .*prt.*did you mean.*port/ },
  { name: 'a route that is taken', files: { 'index.js': plugin('collides', route('/api/slots')) }, says: /GET \/api\/slots belongs to plugin 'api-slots'; choose another URL/ },
  { name: 'a schema that is none', files: { 'index.js': plugin('schema', '', 'configSchema: {},') }, says: /its configSchema is not a zod schema/ },
  { name: 'a misspelt service', files: { 'index.js': plugin('core-slot', '', '\nrequires: { slots: core.slot },') }, says: /index\.js:3: core has no service 'slot'; did you mean core\.slots\?/ },
  { name: 'a method of another kind', files: { 'index.js': plugin('other-kind', 'ctx.addProvider({})') }, says: /index\.js:4: kind 'routes' has no addProvider; kinds that have it: 'provider'/ },
  { name: 'too new', files: {}, manifest: { peerDependencies: { 'svc-gateway': '>=2' } }, says: /needs svc-gateway >=2 .*and this is svc-gateway 0\.\d+\.\d+; take a version of the package/ },
  { name: 'too old', files: {}, manifest: { peerDependencies: { 'svc-gateway': '<0.0.5' } }, says: /needs svc-gateway <0\.0\.5 .*and this is svc-gateway 0\.\d+\.\d+/ }
]

const engine = `#!${process.execPath}
import { createServer } from 'node:http'
const [port, mode] = process.argv.slice(2)
if (mode === 'exits') {
  console.error('Error: no such model\\n    at load (/engine/load.py:42)')
  process.exit(3)
}
if (mode === 'deaf') setInterval(() => {}, 1000)
else createServer((request, response) => {
  response.writeHead(mode === 'ill' ? 500 : request.url === '/health' && mode === 'elsewhere' ? 404 : 200).end('{}')
}).listen(Number(port), '127.0.0.1')
`

t.test('mistakes that authors make: each is told with the file, the line and the mend', { timeout: 0 }, async t => {
  const root = t.testdir({ home: { etc: { svc: { 'svc.toml': '[slots]\nhealth_refused_s = 1\nhealth_timeout_s = 3\nautostart = false\n[runtime]\ndriver = "process"\n' } } }, src: {} })
  const home = join(root, 'home')
  const svc = (...args: readonly string[]): Promise<Finished> =>
    run([...args, '--home', home], { env: process.env as Record<string, string>, cwd: join(root, 'src') })
  const pack = (name: string, files: Files, manifest: object = {}): string => {
    const folder = join(root, 'src', name)
    const all: Files = { 'package.json': JSON.stringify({ name, version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'routes' }, ...manifest }), ...files }
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    return folder
  }
  const gateway = spawnSvc(['serve', '--ready-json', '--port', '0', '--home', home])
  let log = ''
  gateway.child.stderr?.on('data', (chunk: Buffer) => { log += chunk.toString('utf8') })
  t.teardown(async () => {
    gateway.child.kill('SIGTERM')
    await gateway.finished
  })
  const { url } = JSON.parse(await gateway.firstLine) as { url: string }

  for (const [i, { name, files, manifest, says }] of mistakes.entries()) {
    const { code, stderr } = await svc('plugin', 'add', pack(`svc-plugin-m${i}`, files, manifest))
    t.equal(code, 1, name)
    t.match(stderr, says, name)
    await svc('plugin', 'remove', `svc-plugin-m${i}`)
  }

  t.equal((await svc('plugin', 'add', pack('svc-plugin-late', { 'index.js': plugin('late', `${route('/api/test/late')}
ctx.onStart(() => { setTimeout(() => {
  Promise.reject(new Error('nobody waits'))
}, 10) })`) }))).code, 0)
  let listed = ''
  while (!listed.includes('late failure')) listed = (await svc('plugin', 'list')).stdout
  t.match(listed, /! late: 1 late failure, the last: work that nobody waits for failed: index\.js:\d+: nobody waits/)

  t.equal((await svc('plugin', 'add', pack('svc-plugin-busy', { 'index.js': plugin('busy', `ctx.addRoute(defineRoute({ method: 'GET', url: '/api/test/busy', summary: 'x', handler: () => {
  const end = Date.now() + 3000
  while (Date.now() < end) {}
  return {}
} }))`) }))).code, 0)
  while (!log.includes('busy kept the gateway')) await (await fetch(`${url}/api/test/busy`)).text()
  t.match(log, /plugin busy kept the gateway from everything else for more than a second, at index\.js:\d+/)

  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => { taken.close() })
  const slots: ReadonlyArray<readonly [mode: string, slot: string, says: RegExp]> = [
    ['exits', '', /exited while it was loading with code 3[^]*no such model[^]*load\.py:42/],
    ['deaf', '', /does not become healthy[^]*ECONNREFUSED/],
    ['ill', '', /does not become healthy|health[^]*500/],
    ['elsewhere', '', /health[^]*404/],
    ['fine', `port = ${(taken.address() as AddressInfo).port}\n`, /port \d+[^]*(taken|in use)/]
  ]
  for (const [mode, more, says] of slots) {
    const folder = pack(`svc-plugin-${mode}`, { 'engine.mjs': engine, 'engine.toml': descriptor(`engine-${mode}`, '', `["./engine.mjs", "{port}", "${mode}"]`) }, described)
    chmodSync(join(folder, 'engine.mjs'), 0o755)
    const added = await svc('plugin', 'add', folder)
    t.equal(added.code, 0, added.stderr)
    mkdirSync(join(home, 'etc/svc/slots'), { recursive: true })
    writeFileSync(join(home, `etc/svc/slots/${mode}.toml`), `provider = "engine-${mode}"\ndevice = "cpu"\n${more}`)
    await svc('config', 'reload')
    const loaded = await svc('slot', 'load', mode)
    t.equal(loaded.code, 1, mode)
    t.match(loaded.stderr, says, mode)
    process.stderr.write(`${mode}: ${loaded.stderr}\n`)
  }

  t.match(await svc('plugin', 'remove', 'svc-plugin-fine'), { code: 1, stderr: /slot fine depends on svc-plugin-fine; nothing was removed/ })
  t.equal((await svc('plugin', 'remove', 'svc-plugin-fine', '--force')).code, 0)
  const asked = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'fine', messages: [] }) })
  t.equal(asked.status, 503)
  t.match(await asked.json(), { error: { code: 'slot.provider_gone' } })
})
