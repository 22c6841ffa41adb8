import { once } from 'node:events'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { LABEL_INSTANCE, LABEL_PORT, type EngineInspection } from '../../kernel/contract/provider/engine-runtime.js'
import { openDocker, testEngine } from '../kernel/runtime/engines.js'
import { eventually } from '../kernel/runtime/support.js'
import { reservePorts } from '../ports.js'
import { api, liveHome, startLive, type LiveGateway } from './live-gateway.js'

t.setTimeout(600_000)

/** Says where it listens, and which of all that ever ran it is. */
const SERVER = 'const [port, host] = process.argv.slice(1), own = require("crypto").randomUUID();' +
  ' require("http").createServer((q, s) => s.end(JSON.stringify({ own, port: +port }))).listen(+port, host)'
const NAMES = ['boxed', 'podded'] as const

interface Answer {
  readonly own: string
  readonly port: number
}

t.test('containers whose launch is not recorded, as their gateway was killed in that moment, are adopted at the ports that they have', async t => {
  const docker = await testEngine(t, 'docker')
  const podman = docker === null ? null : await testEngine(t, 'podman')
  if (docker === null || podman === null) return
  const range = await reservePorts(t)
  const slot = 'type = "llm"\nprovider = "tiny"\ndevice = "cpu"\nidle_timeout_s = 0\n'
  const home = await liveHome(t, {
    'etc/svc/svc.toml': `[slots]\nautostart = false\n${range.toml}`,
    'etc/svc/engines/tiny.toml': `name = "tiny"\napiVersion = 1\nneeds_model = false\nimage = "${docker.nodeImage}"\n` +
      `command = ${JSON.stringify(['node', '-e', SERVER, '{port}', '{host}'])}\n[surfaces.chat]\npath = "/v1/chat/completions"\n`,
    'etc/svc/slots/boxed.toml': slot,
    'etc/svc/slots/podded.toml': `${slot}runtime = "podman"\n`
  })
  // where Podman's socket is looked for
  const own = join(home, 'run')
  await mkdir(join(own, 'podman'), { recursive: true })
  await symlink(podman.host.replace('unix://', ''), join(own, 'podman/podman.sock'))
  const start = (): Promise<LiveGateway> => startLive(t, home, { DOCKER_HOST: docker.host, XDG_RUNTIME_DIR: own })
  const engines = await Promise.all([docker, podman].map(({ host }) => openDocker(host)))
  const mine = async (): Promise<EngineInspection[]> => {
    const instance = (await readFile(join(home, 'var/lib/svc/instance-id'), 'utf8')).trim()
    return (await Promise.all(engines.map(each => each.list({ [LABEL_INSTANCE]: instance })))).flat()
  }
  t.teardown(async () => {
    const left = await mine()
    await Promise.all(engines.map(async each => {
      for (const { id } of left) await each.remove(id).catch(() => undefined)
      await each.close()
    }))
  })
  const ask = async (gateway: LiveGateway, name: string): Promise<Answer> =>
    (await api(gateway, 'POST', '/v1/chat/completions', { model: name, messages: [] })).json as Answer
  const each = <T>(work: (name: string) => Promise<T>): Promise<T[]> => Promise.all(NAMES.map(work))
  const record = (name: string): string => join(home, 'var/lib/svc/slots', name, 'state.json')

  const first = await start()
  const load = async (name: string): Promise<void> => { t.match(await api(first, 'POST', `/api/slots/${name}/load`, {}), { status: 200 }, name) }
  await each(load)
  const before = await each(name => ask(first, name))
  const behind = await each(name => eventually('its launch is recorded', async () => {
    const text = await readFile(record(name), 'utf8')
    return text.includes(String(before[NAMES.indexOf(name as typeof NAMES[number])]!.port)) ? text : null
  }))
  await each(async name => { t.match(await api(first, 'POST', `/api/slots/${name}/unload`, {}), { status: 200 }) })
  // the port of the record is taken by now
  for (const { port } of before) {
    const other = createServer().listen(port, '127.0.0.1')
    await once(other, 'listening')
    t.teardown(() => other.close())
  }
  await each(load)
  const had = await each(name => ask(first, name))
  await first.kill('SIGKILL')
  const left = await mine()
  // it is written within a second: the test decides whether it was by now
  await Promise.all(NAMES.map((name, i) => writeFile(record(name), behind[i]!)))
  for (const [i, { port }] of had.entries()) t.not(port, before[i]!.port, 'the second launch had another port')
  t.strictSame(left.map(({ labels }) => Number(labels[LABEL_PORT])).sort(), had.map(({ port }) => port).sort())

  const second = await start()
  t.strictSame(await each(name => ask(second, name)), had, 'each is asked where it listens, and is the one that ran')
  for (const [i, name] of NAMES.entries()) {
    t.match((await api(second, 'GET', `/api/slots/${name}`)).json, { state: 'ready', port: had[i]!.port, config_drift: false, metadata: { adopted: true } })
  }
  t.strictSame((await mine()).map(({ id }) => id).sort(), left.map(({ id }) => id).sort(), 'nothing was started beside them')
  await each(async name => { t.match(await api(second, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 }) })
  t.strictSame(await mine(), [])
  t.equal(await second.kill('SIGTERM'), 0)
})
