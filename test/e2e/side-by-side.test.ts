import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LABEL_INSTANCE } from '../../kernel/contract/provider/engine-runtime.js'
import { openDocker, testEngine } from '../kernel/runtime/engines.js'
import { api, liveHome, startLive, type LiveGateway } from './live-gateway.js'

t.setTimeout(600_000)

const SERVER = 'const [port, host] = process.argv.slice(1); require("http").createServer((q, s) => {' +
  ' console.log(q.url); s.end(JSON.stringify({ pid: process.pid })) }).listen(+port, host)'
const SURFACE = '[surfaces.chat]\npath = "/v1/chat/completions"\n'

const words = (...list: string[]): string => JSON.stringify(list)

interface Shown {
  readonly state: string
}

t.test('Docker, Podman and processes at once: each engine is adopted, read, missed and ended by the driver that has it', async t => {
  const docker = await testEngine(t, 'docker')
  const podman = docker === null ? null : await testEngine(t, 'podman')
  if (docker === null || podman === null) return
  const program = words('node', '-e', SERVER, '{port}', '{host}')
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[slots]\nautostart = false\n',
    'etc/svc/engines/both.toml': `name = "both"\napiVersion = 1\nneeds_model = false\nimage = "${docker.nodeImage}"\ncommand = ${program}\nprocess = ${program}\n${SURFACE}`,
    'etc/svc/engines/bare.toml': `name = "bare"\napiVersion = 1\nneeds_model = false\nprocess = ${program}\n${SURFACE}`,
    'etc/svc/slots/boxed.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\n',
    'etc/svc/slots/chosen.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "process"\n',
    'etc/svc/slots/podded.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "podman"\n',
    'etc/svc/slots/only.toml': 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\n'
  })
  // where Podman's socket is looked for
  const own = join(home, 'run')
  await mkdir(join(own, 'podman'), { recursive: true })
  await symlink(podman.host.replace('unix://', ''), join(own, 'podman/podman.sock'))
  const env = { DOCKER_HOST: docker.host, XDG_RUNTIME_DIR: own }
  const names = ['boxed', 'chosen', 'only', 'podded'] as const
  const pods = await openDocker(podman.host)
  t.teardown(() => pods.close())
  const containers = await openDocker(docker.host)
  t.teardown(() => containers.close())
  const pidOf = async (gateway: LiveGateway, slot: string): Promise<number> =>
    ((await api(gateway, 'POST', '/v1/chat/completions', { model: slot, messages: [] })).json as { pid: number }).pid
  const slotOf = async (gateway: LiveGateway, slot: string): Promise<Shown> =>
    (await api(gateway, 'GET', `/api/slots/${slot}`)).json as Shown

  const first = await startLive(t, home, env)
  const instance = ((await api(first, 'GET', '/api/health')).json as { instance?: string }).instance
  for (const name of names) t.match(await api(first, 'POST', `/api/slots/${name}/load`, {}), { status: 200 }, name)
  const pids = await Promise.all(names.map(name => pidOf(first, name)))
  t.ok(pids[0]! < 10 && pids[3]! < 10, 'the first and the last are alone in containers')
  t.ok(pids[1]! > 10 && pids[2]! > 10, 'the others are processes of this host')
  t.match((await api(first, 'GET', '/api/status')).json, {
    runtimes: [{ name: 'docker', default: true }, { name: 'process' }, { name: 'podman', info: { driver: 'podman' }, problem: null }]
  })
  const inPodman = async (): Promise<string[]> => (await pods.list(instance === undefined ? {} : { [LABEL_INSTANCE]: instance }))
    .filter(({ state }) => state === 'running').map(({ labels }) => labels['svc.slot'] ?? '')
  t.ok((await inPodman()).includes('podded'), 'one of them is Podman\'s')
  await first.kill('SIGKILL')

  const second = await startLive(t, home, env)
  for (const [i, name] of names.entries()) {
    t.equal(await pidOf(second, name), pids[i], `${name} was adopted`)
    const logs = (await api(second, 'GET', `/api/slots/${name}/logs`)).json
    t.match(JSON.stringify(logs), '/v1/chat/completions', `the log of ${name}`)
  }
  process.kill(pids[1]!, 'SIGKILL')
  for (;;) {
    const { state } = await slotOf(second, 'chosen')
    if (state === 'error') break
  }
  t.match(await slotOf(second, 'boxed'), { state: 'ready' }, 'its end concerns nobody else')
  t.match(await slotOf(second, 'only'), { state: 'ready' })
  t.not(await pidOf(second, 'chosen'), pids[1], 'and the next request brings it back')

  t.match(await api(second, 'PUT', '/api/slots/chosen/config', { runtime: 'container' }), { status: 200 })
  t.match(await api(second, 'POST', '/api/slots/chosen/restart', {}), { status: 200 })
  t.ok(await pidOf(second, 'chosen') < 10, 'it moved into a container')
  t.equal(await second.kill('SIGTERM'), 0)
  t.match(await readFile(`/proc/${pids[2]!}/stat`, 'utf8').catch(() => 'gone'), /^gone$|\) [ZX] /, 'a process ends with its gateway')
  const left = (await containers.list(instance === undefined ? {} : { [LABEL_INSTANCE]: instance }))
    .filter(({ labels }) => names.includes(labels['svc.slot'] as typeof names[number]))
  t.equal(left.filter(({ state }) => state === 'running').length, 2, 'containers wait for the next gateway')

  t.ok((await inPodman()).includes('podded'), 'Podman\'s as well')
  await writeFile(join(home, 'etc/svc/slots/podded.toml'), 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "process"\n')
  const third = await startLive(t, home, { ...env })
  t.notOk((await inPodman()).includes('podded'), 'where no slot asks for Podman any more, its engines are ended')
  for (const name of names) await api(third, 'POST', `/api/slots/${name}/unload`, { force: true })
  t.equal(await third.kill('SIGTERM'), 0)
})
