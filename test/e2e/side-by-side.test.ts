import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Docker from 'dockerode'
import t from 'tap'
import { LABEL_INSTANCE, LABEL_SLOT, type ContainerRuntime, type EngineInspection } from '../../kernel/contract/provider/engine-runtime.js'
import { openDocker, testEngine } from '../kernel/runtime/engines.js'
import { eventually } from '../kernel/runtime/support.js'
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
  const oursIn = async (engine: ContainerRuntime): Promise<readonly EngineInspection[]> =>
    await engine.list({ [LABEL_INSTANCE]: (await readFile(join(home, 'var/lib/svc/instance-id'), 'utf8')).trim() })
  t.teardown(async () => {
    for (const engine of [containers, pods]) {
      for (const { id } of await oursIn(engine).catch(() => [])) await engine.remove(id)
    }
  })
  const pidOf = async (gateway: LiveGateway, slot: string): Promise<number> =>
    ((await api(gateway, 'POST', '/v1/chat/completions', { model: slot, messages: [] })).json as { pid: number }).pid
  const slotOf = async (gateway: LiveGateway, slot: string): Promise<Shown> =>
    (await api(gateway, 'GET', `/api/slots/${slot}`)).json as Shown

  const first = await startLive(t, home, env)
  for (const name of names) t.match(await api(first, 'POST', `/api/slots/${name}/load`, {}), { status: 200 }, name)
  const pids = await Promise.all(names.map(name => pidOf(first, name)))
  t.ok(pids[0]! < 10 && pids[3]! < 10, 'the first and the last are alone in containers')
  t.ok(pids[1]! > 10 && pids[2]! > 10, 'the others are processes of this host')
  t.match((await api(first, 'GET', '/api/status')).json, {
    runtimes: [{ name: 'docker', default: true }, { name: 'process' }, { name: 'podman', info: { driver: 'podman' }, problem: null }]
  })
  const runningIn = async (engine: ContainerRuntime): Promise<ReadonlyMap<string, string>> =>
    new Map((await oursIn(engine)).filter(({ state }) => state === 'running').map(({ id, labels }) => [labels[LABEL_SLOT] ?? '', id]))
  t.strictSame([...(await runningIn(containers)).keys()], ['boxed'])
  t.strictSame([...(await runningIn(pods)).keys()], ['podded'], 'one of them is Podman\'s')
  await first.kill('SIGKILL')

  const second = await startLive(t, home, env)
  for (const [i, name] of names.entries()) {
    t.equal(await pidOf(second, name), pids[i], `${name} was adopted`)
    const logs = (await api(second, 'GET', `/api/slots/${name}/logs`)).json
    t.match(JSON.stringify(logs), '/v1/chat/completions', `the log of ${name}`)
  }
  for (const name of ['boxed', 'podded']) {
    t.match((await api(second, 'GET', `/api/slots/${name}`)).json, { image_mismatch: false }, `${name} runs its image, however its engine spells it`)
  }
  const kill = async (engine: ContainerRuntime, host: string, slot: string): Promise<void> => {
    await new Docker({ socketPath: new URL(host).pathname }).getContainer((await runningIn(engine)).get(slot)!).kill()
  }
  const ends: ReadonlyArray<readonly [typeof names[number], string, () => unknown]> = [
    // an adopted process is no child of this gateway
    ['chosen', 'the engine exited', () => process.kill(pids[1]!, 'SIGKILL')],
    ['boxed', 'the engine exited with code 137', () => kill(containers, docker.host, 'boxed')],
    ['podded', 'the engine exited with code 137', () => kill(pods, podman.host, 'podded')]
  ]
  for (const [name, message, end] of ends) {
    await end()
    await eventually(`the end of ${name} is seen`, async () => (await slotOf(second, name)).state === 'error')
    t.match(await slotOf(second, name), { state: 'error', metadata: { failure: { code: 'slot.load_failed', message } } })
    for (const other of names.filter(each => each !== name)) t.match(await slotOf(second, other), { state: 'ready' }, `${other} has nothing to do with it`)
    t.type(await pidOf(second, name), 'number', `and the next request brings ${name} back`)
  }

  t.match(await api(second, 'PUT', '/api/slots/chosen/config', { runtime: 'container' }), { status: 200 })
  t.match(await api(second, 'POST', '/api/slots/chosen/restart', {}), { status: 200 })
  t.ok(await pidOf(second, 'chosen') < 10, 'it moved into a container')
  t.equal(await second.kill('SIGTERM'), 0)
  t.match(await readFile(`/proc/${pids[2]!}/stat`, 'utf8').catch(() => 'gone'), /^gone$|\) [ZX] /, 'a process ends with its gateway')
  t.strictSame([...(await runningIn(containers)).keys()].toSorted(), ['boxed', 'chosen'], 'containers wait for the next gateway')
  t.strictSame([...(await runningIn(pods)).keys()], ['podded'], 'Podman\'s as well')

  await writeFile(join(home, 'etc/svc/slots/podded.toml'), 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "process"\n')
  const third = await startLive(t, home, { ...env })
  t.strictSame([...(await runningIn(pods)).keys()], [], 'where no slot asks for Podman any more, its engines are ended')
  for (const name of names) t.match(await api(third, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 }, name)
  t.equal(await third.kill('SIGTERM'), 0)
  for (const engine of [containers, pods]) t.strictSame((await oursIn(engine)).map(({ name }) => name), [], 'nothing is left in either')
})
