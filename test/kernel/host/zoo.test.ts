import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { PluginReport } from '../../../kernel/contract/index.js'
import { zoo } from './zoo.js'

const program = fileURLToPath(new URL('./zoo-gateway.js', import.meta.url))

async function writeHome (home: string): Promise<void> {
  const modules = join(home, 'var/lib/svc/plugins/node_modules')
  for (const [name, { svc = { apiVersion: 1, kind: 'routes' }, code }] of Object.entries(zoo)) {
    const kind = code.includes('kind: \'service\'') ? 'service' : 'routes'
    const manifest = (svc as { apiVersion?: number } | null)?.apiVersion === 1 ? { apiVersion: 1, kind } : svc
    await mkdir(join(modules, name), { recursive: true })
    await writeFile(join(modules, name, 'package.json'), JSON.stringify({
      name, version: '1.2.3', type: 'module', exports: './index.js', ...(manifest === null ? {} : { svc: manifest })
    }))
    await writeFile(join(modules, name, 'index.js'), code)
  }
  await mkdir(join(home, 'etc/svc/engines'), { recursive: true })
  await writeFile(join(home, 'etc/svc/svc.toml'), `
[plugins]
allow = ${JSON.stringify([...Object.keys(zoo), 'zoo-not-installed'])}
disabled = ["zoo-disabled"]
[plugins.config.zoo-bad-config]
limit = "many"
[plugins.config.zoo-bad-config.nested]
on = 1
`)
  await writeFile(join(home, 'etc/svc/engines/tiny.toml'), `
name = "tiny"
apiVersion = 1
image = "example.org/tiny:1"
command = ["--model", "{model_path}", "--port", "{port}"]
[surfaces.chat]
path = "/v1/chat/completions"
`)
  await writeFile(join(home, 'etc/svc/engines/broken.toml'), 'name = "broken"\napiVersion = 1\ncommand = "no list"\n')
}

/** Where each animal must fall; null stands. */
const expected: Readonly<Record<string, { phase: string, code: string, message: RegExp } | null>> = {
  'zoo-import-error': { phase: 'import', code: 'plugin.import_failed', message: /boom at import/ },
  'zoo-missing-import': { phase: 'import', code: 'plugin.import_failed', message: /a-package-that-is-not-there/ },
  'zoo-not-installed': { phase: 'manifest', code: 'plugin.import_failed', message: /not installed; run `svc plugin add/ },
  'zoo-no-plugin': { phase: 'shape', code: 'plugin.not_a_plugin', message: /definePlugin/ },
  'zoo-wrong-api': { phase: 'manifest', code: 'plugin.api_version', message: /version 99/ },
  'zoo-no-manifest': { phase: 'manifest', code: 'plugin.manifest_invalid', message: /"svc" field/ },
  'zoo-bad-config': {
    phase: 'config', code: 'plugin.config_invalid', message: /plugins\.config\.zoo-bad-config\.limit .*plugins\.config\.zoo-bad-config\.nested\.on/
  },
  'zoo-throws': { phase: 'register', code: 'plugin.register_failed', message: /after staging/ },
  'zoo-hangs': { phase: 'register', code: 'plugin.timeout', message: /5 s/ },
  'zoo-missing-service': { phase: 'order', code: 'plugin.missing_service', message: /nobody\.service/ },
  'zoo-consumer': null,
  'zoo-provider': null,
  'zoo-cycle-a': { phase: 'order', code: 'plugin.cycle', message: /zoo-cycle-a -> zoo-cycle-b -> zoo-cycle-a/ },
  'zoo-cycle-b': { phase: 'order', code: 'plugin.cycle', message: /zoo-cycle-a -> zoo-cycle-b -> zoo-cycle-a/ },
  'zoo-cycle-guest': { phase: 'order', code: 'plugin.dependency_failed', message: /zoo-cycle-a/ },
  'zoo-broken-promise': { phase: 'register', code: 'plugin.register_failed', message: /zoo\.never/ },
  'zoo-duplicate-route': null,
  'zoo-duplicate-scope': { phase: 'preflight', code: 'plugin.conflict', message: /zoo-duplicate-route/ },
  'zoo-invalid-url': { phase: 'conflicts', code: 'plugin.conflict', message: /'no-slash' is not valid/ },
  'zoo-bad-schema': { phase: 'preflight', code: 'plugin.preflight_failed', message: /schema\.body of POST \/api\/zoo\/bad-schema is not a zod schema/ },
  'zoo-bad-fastify-schema': { phase: 'preflight', code: 'plugin.preflight_failed', message: /schema/ },
  'zoo-late-call': { phase: 'start', code: 'plugin.late_call', message: /ctx\.addRoute after register had returned/ },
  'zoo-nested': { phase: 'register', code: 'plugin.background_failure', message: /nobody waits for me/ },
  'zoo-nested-scope': { phase: 'preflight', code: 'plugin.preflight_failed', message: /nested scope/ },
  'zoo-leaky': { phase: 'preflight', code: 'plugin.preflight_failed', message: /after the hook/ },
  'zoo-failing-start': { phase: 'start', code: 'plugin.start_failed', message: /no disk/ },
  'zoo-failing-stop': null,
  'zoo-uncaught': null,
  'zoo-watcher': null,
  'zoo-own-hook': null,
  'zoo-good': { phase: 'conflicts', code: 'plugin.conflict', message: /belongs to plugin 'zoo-duplicate-route'/ },
  'tiny': null,
  'broken': { phase: 'manifest', code: 'plugin.manifest_invalid', message: /engines\/broken\.toml: .*command/ }
}

t.test('thirty misbehaving plugins in one gateway: it serves, and says of each what is wrong', { timeout: 300_000 }, async t => {
  const home = t.testdir()
  await writeHome(home)
  const child = spawn(process.execPath, ['--enable-source-maps', program, home], { stdio: ['pipe', 'pipe', 'pipe'] })
  t.teardown(() => { child.kill('SIGKILL') })
  const exit = new Promise<number | null>(resolve => { child.once('exit', resolve) })
  let log = ''
  child.stderr.on('data', chunk => { log += String(chunk) })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const nextLine = async (): Promise<Record<string, unknown>> => {
    const line = await lines.next()
    if (line.done === true) throw new Error(`the gateway ended: ${log.slice(-2000)}`)
    return JSON.parse(line.value) as Record<string, unknown>
  }
  const { baseUrl } = await nextLine() as { baseUrl: string }

  const routes: Array<[string, string, number, unknown]> = [
    ['GET', '/api/zoo/good/1', 200, { ok: 'zoo-duplicate-route' }],
    ['GET', '/api/zoo/consumer', 200, { bell: 'ding' }],
    ['GET', '/api/zoo/failing-stop', 200, { ok: 'zoo-failing-stop' }],
    ['GET', '/api/zoo/uncaught', 200, { ok: 'zoo-uncaught' }],
    ['GET', '/api/zoo/watcher', 200, { ok: 'zoo-watcher' }],
    ['GET', '/api/zoo/own-hook', 200, { ok: 'zoo-own-hook' }],
    ['GET', '/api/zoo/throws', 404, { error: { code: 'system.http_404' } }],
    ['GET', '/api/zoo/hangs', 404, { error: { code: 'system.http_404' } }],
    ['GET', '/api/zoo/nested', 404, { error: { code: 'system.http_404' } }],
    ['GET', '/api/zoo/bad-config', 404, { error: { code: 'system.http_404' } }],
    ['GET', '/api/zoo/late', 404, { error: { code: 'system.http_404' } }],
    ['GET', '/api/zoo/failing-start', 503, { error: { code: 'plugin.unavailable', details: { plugin: 'zoo-failing-start' } } }],
    ['GET', '/api/zoo/invalid-url', 503, { error: { code: 'plugin.unavailable' } }],
    ['GET', '/api/zoo/nested-scope', 503, { error: { code: 'plugin.unavailable' } }],
    ['POST', '/api/zoo/bad-schema', 503, { error: { code: 'plugin.unavailable' } }]
  ]
  for (const [method, path, status, body] of routes) {
    const response = await fetch(`${baseUrl}${path}`, { method })
    t.equal(response.status, status, `${method} ${path}`)
    t.match(await response.json(), body as object, `${method} ${path}`)
    t.equal(response.headers.get('x-leak'), null, 'no hook leaked')
    t.equal(response.headers.get('x-should-retry'), status === 200 ? null : 'false', 'a plugin that fell stays down until somebody changes something')
    t.equal(response.headers.get('x-own-hook'), path === '/api/zoo/own-hook' ? '1' : null, 'a scope\'s hook stays in its scope')
  }

  child.stdin.end()
  const { report } = await nextLine() as { report: PluginReport[] }
  const byName = new Map(report.map(row => [row.name, row]))
  for (const [name, fall] of Object.entries(expected)) {
    const row = byName.get(name)
    const state = fall === null ? 'active' : fall.code === 'plugin.dependency_failed' ? 'skipped' : 'failed'
    t.match(row, { state, ...(fall ?? { code: null, message: null }) }, `${name}: ${row?.message ?? 'no report'}`)
    t.type(row?.ms, 'number')
  }
  t.match(byName.get('zoo-disabled'), { state: 'disabled', code: 'plugin.disabled' })
  t.equal(byName.get('zoo-consumer')!.origin, 'package:zoo-consumer@1.2.3')
  t.strictSame(byName.get('tiny')!.providers, ['tiny'])
  t.equal(byName.size, Object.keys(expected).length + 1, 'nothing else is there')
  t.equal(await exit, 0, 'a plugin that will not stop does not keep the gateway')
  t.match(log, /will not stop/)
  t.match(log, /from a timer/)
  t.match(log, /from a watcher/)
  const warned = log.split('\n').find(line => line.includes('one listener too many'))
  t.match(JSON.parse(warned ?? 'null'), { level: 'warn', msg: 'MaxListenersExceededWarning: one listener too many' }, 'a warning of Node is a line like the others')
})
