import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { authorHome, described, descriptor } from './author-home.js'

t.setTimeout(600_000)

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

/** Serves on one port and tells its health on the other. */
const twoPorts = `#!${process.execPath}
import { createServer } from 'node:http'
const [port, admin] = process.argv.slice(2)
createServer((request, response) => { response.writeHead(404).end() }).listen(Number(port), '127.0.0.1')
createServer((request, response) => { response.end('{}') }).listen(Number(admin), '127.0.0.1')
`

/** A port that slots may have and something listens on. */
async function portOfRange (t: Test): Promise<number> {
  for (let port = 8200; ; port--) {
    const server = createServer()
    const isMine = await once(server.listen(port, '127.0.0.1'), 'listening').then(() => true, () => false)
    if (!isMine) continue
    t.teardown(() => { server.close() })
    return port
  }
}

t.test('engines that do not come up: each is told with its reason and the mend', async t => {
  const elsewhere = await portOfRange(t)
  const { home, url, onHome, svc, pack, link } = await authorHome(t, `[server]\nport = ${elsewhere}\n` + '[slots]\nhealth_refused_s = 5\nhealth_timeout_s = 10\nautostart = false\n[runtime]\ndriver = "process"\n')
  const taken = await portOfRange(t)
  const slots: ReadonlyArray<readonly [mode: string, slot: string, says: RegExp]> = [
    ['exits', '', /exited during loading, with code 3[^]*no such model[^]*load\.py:42/],
    ['deaf', '', /does not become healthy.*nothing is listening there.*; check that its command makes it listen on the port/],
    ['ill', '', /timed out after 10 s .*GET \/health answered 500/],
    ['elsewhere', '', /GET \/health answered 404.*; check that the health path of its provider exists in the engine/],
    ['fine', `port = ${taken}\n`, /port \d+ .*(?:taken|in use|held)/]
  ]
  mkdirSync(join(home, 'etc/svc/slots'), { recursive: true })
  for (const [mode, more] of slots) {
    const folder = pack(`svc-plugin-${mode}`, { 'engine.mjs': engine, 'engine.toml': descriptor(`engine-${mode}`, '', `["./engine.mjs", "{port}", "${mode}"]`) }, described)
    chmodSync(join(folder, 'engine.mjs'), 0o755)
    if (mode === 'fine') t.match(await onHome('plugin', 'add', folder), { code: 0 })
    else link(folder)
    writeFileSync(join(home, `etc/svc/slots/${mode}.toml`), `provider = "engine-${mode}"\ndevice = "cpu"\n${more}`)
  }
  t.match(await svc('plugin', 'reload'), { code: 0 })
  await svc('config', 'reload')
  // at once: each has the time that a program may take to listen on a busy machine
  await Promise.all(slots.map(async ([mode, , says]) => {
    const loaded = await svc('slot', 'load', mode)
    t.equal(loaded.code, 1, mode)
    t.match(loaded.stderr, says, mode)
    t.comment(loaded.stderr)
  }))

  const ports = pack('svc-plugin-ports', {
    'engine.mjs': twoPorts,
    'engine.toml': descriptor('engine-ports', `ports = ["admin"]\n[about]\nlicense = "MIT"\nhomepage = "https://example.org/e"`, '["./engine.mjs", "{port}", "{port.admin}"]')
      .replace('path = "/health"', 'path = "/health"\nport = "admin"')
  }, described)
  chmodSync(join(ports, 'engine.mjs'), 0o755)
  const about = 'licence MIT, https://example.org/e'
  t.match((await onHome('plugin', 'add', ports)).stdout, `Engine engine-ports: ${about}`)
  t.match((await onHome('plugin', 'list')).stdout, about)
  const created = await svc('slot', 'create', 'ports', '--provider', 'engine-ports', '--hardware', 'cpu')
  t.match(created.stdout, `Its engine: ${about}.`)
  t.equal((await svc('slot', 'load', 'ports')).code, 0, 'its health is at the further port')
  const record = await (await fetch(`${url}/api/slots/ports`)).json() as { port: number, ports: { admin: number }, about: object }
  t.match(record, { about: { license: 'MIT' } })
  t.not(record.ports.admin, record.port)
  t.equal((await fetch(`http://127.0.0.1:${record.ports.admin}/health`)).status, 200)
  t.equal((await fetch(`http://127.0.0.1:${record.port}/health`)).status, 404)
  t.match((await svc('slot', 'show', 'ports')).stdout, new RegExp(`port admin +${record.ports.admin}`))

  t.match(await onHome('plugin', 'remove', 'svc-plugin-fine'), { code: 1, stderr: /slot fine depends on svc-plugin-fine; nothing was removed/ })
  t.equal((await onHome('plugin', 'remove', 'svc-plugin-fine', '--force')).code, 0)
  const asked = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'fine', messages: [] }) })
  t.equal(asked.status, 503)
  t.match(await asked.json(), { error: { code: 'slot.provider_gone' } })
  const listed = (await svc('slot', 'list')).stdout
  t.match(listed, /^fine +\S+ +(offline|ready) \(no provider\)/m, 'the list says what requests are told')
  t.match(listed, /^fine: no active plugin provides its engine 'engine-fine', so requests are refused: .*`(npx )?svc slot edit fine --provider/m)
  t.notMatch(listed, /^ports .*no provider/m)
  const doctor = (await onHome('doctor', '--plain')).stdout
  t.match(doctor, new RegExp(`^OK {3}ports +.*\\b${new URL(url).port}: free, or in use by svc`, 'm'), `not ${elsewhere}, which the file says`)
  t.match(doctor, /^WARN plugins .*slots\/fine\.toml: no such provider: 'engine-fine'/m)
  t.notMatch(doctor, /^FAIL config .*fine\.toml/m, 'the file is as good as ever')
})
