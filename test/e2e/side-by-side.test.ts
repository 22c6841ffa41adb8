import { readFile } from 'node:fs/promises'
import t from 'tap'
import { LABEL_INSTANCE } from '../../kernel/runtime/container-runtime.js'
import { openDocker, testEngine } from '../kernel/runtime/engines.js'
import { liveHome, startLive, type LiveGateway } from './live-gateway.js'

t.setTimeout(180_000)

const SERVER = 'const [port, host] = process.argv.slice(1); require("http").createServer((q, s) => {' +
  ' console.log(q.url); s.end(JSON.stringify({ pid: process.pid })) }).listen(+port, host)'
const SURFACE = '[surfaces.chat]\npath = "/v1/chat/completions"\n'

const words = (...list: string[]): string => JSON.stringify(list)

interface Shown {
  readonly state: string
}

async function api (
  gateway: LiveGateway, method: string, path: string, body?: object
): Promise<{ status: number, json: unknown }> {
  const response = await fetch(`${gateway.url}${path}`, {
    method, ...body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  })
  return { status: response.status, json: await response.json().catch(() => null) as unknown }
}

t.test('processes stand beside containers: each is adopted, read, missed and ended by the driver that has it', async t => {
  const docker = await testEngine(t, 'docker')
  if (docker === null) return
  const program = words('node', '-e', SERVER, '{port}', '{host}')
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[slots]\nautostart = false\n',
    'etc/svc/engines/both.toml': `name = "both"\napiVersion = 1\nneeds_model = false\nimage = "${docker.nodeImage}"\ncommand = ${program}\nprocess = ${program}\n${SURFACE}`,
    'etc/svc/engines/bare.toml': `name = "bare"\napiVersion = 1\nneeds_model = false\nprocess = ${program}\n${SURFACE}`,
    'etc/svc/slots/boxed.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\n',
    'etc/svc/slots/chosen.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "process"\n',
    'etc/svc/slots/only.toml': 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\n'
  })
  const env = { DOCKER_HOST: docker.host }
  const names = ['boxed', 'chosen', 'only'] as const
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
  t.ok(pids[0]! < 10, 'the first is alone in a container')
  t.ok(pids[1]! > 10 && pids[2]! > 10, 'the others are processes of this host')
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

  const third = await startLive(t, home, { ...env })
  for (const name of names) await api(third, 'POST', `/api/slots/${name}/unload`, { force: true })
  t.equal(await third.kill('SIGTERM'), 0)
})
