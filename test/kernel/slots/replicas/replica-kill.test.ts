import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { oneFile } from '../../../one-file.js'
import { reservePorts } from '../../../ports.js'
import { someOf } from '../../../whole.js'
import { eventually } from '../../runtime/support.js'
import { processesOf, startDoomed, type DeathPoint, type DoomedGateway } from '../doomed-gateway.js'

// each death is a gateway and its engines, in processes of their own
t.setTimeout(600_000)

const program = await oneFile(fileURLToPath(new URL('../fixtures/doomed-replica-gateway.js', import.meta.url)))

/** All that is told between the first request of a burst and the end of the replica that it brought up. */
const points: readonly DeathPoint[] = [
  { type: 'slot.scale', message: 'replica 2 is started' },
  { type: 'slot.replica', message: 'replica 2: offline -> starting' },
  { type: 'slot.replica', message: 'replica 2: starting -> warming' },
  { type: 'slot.replica', message: 'replica 2: warming -> ' },
  { type: 'slot.scale', message: 'replica 2 is stopped' },
  { type: 'slot.replica', message: 'replica 2: ready -> unloading' },
  { type: 'slot.replica', message: 'replica 2: unloading -> offline' }
]

/** Engines that run, by the ports in their command lines. */
async function enginesOf (home: string): Promise<readonly string[]> {
  return (await processesOf(home)).flatMap(({ args }) => / (\d+) \S+$/.exec(args)?.[1] ?? [])
}

async function replicaHome (t: Test): Promise<string> {
  const ports = await reservePorts(t)
  const home = await mkdtemp(join(tmpdir(), 'svc-replica-kill-'))
  t.teardown(async () => {
    for (const { pid } of await processesOf(home)) process.kill(pid, 'SIGKILL')
    await rm(home, { recursive: true, force: true, maxRetries: 5 })
  })
  const files = {
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n${ports.toml}`,
    'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nworkers = 1\nmax_replicas = 2\nidle_timeout_s = 0\n' +
      'scale_up_wait_s = 0\nscale_down_wait_s = 1\n'
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), content)
  }
  return home
}

/** Statuses of four requests at once, which are more than one replica works on; 0 for a connection that broke. */
async function burst ({ url }: DoomedGateway): Promise<readonly number[]> {
  const headers = { 'content-type': 'application/json', 'x-svc-priority': 'normal' }
  return await Promise.all(Array.from({ length: 4 }, async (_, i) => {
    // equal ones would share a call
    const body = JSON.stringify({ model: 'agent', messages: [], user: String(i) })
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body }).catch(() => null)
    await response?.arrayBuffer().catch(() => null)
    return response?.status ?? 0
  }))
}

/** One after the other, each when what the one before brought up is gone again. */
async function diesUnderBursts (gateway: DoomedGateway, home: string): Promise<void> {
  let isGone = false
  void gateway.gone.then(() => { isGone = true })
  while (!isGone) {
    await burst(gateway)
    await eventually('it dies, or takes the replica down', async () => isGone || (await enginesOf(home)).length < 2)
  }
}

interface ReplicaRow { readonly state: string, readonly port: number | null }

async function replicas ({ url }: DoomedGateway): Promise<readonly ReplicaRow[]> {
  return (await (await fetch(`${url}/api/slots/agent`)).json() as { replicas: readonly ReplicaRow[] }).replicas
}

const portsOf = (rows: readonly ReplicaRow[]): string[] => rows.flatMap(({ port }) => port === null ? [] : String(port)).sort()

t.test('a gateway that is killed while it brings up a replica or takes it down leaves each engine its place', async t => {
  const home = await replicaHome(t)
  let gateway = await startDoomed(t, program, home)
  for (const point of someOf(points, 3)) {
    await t.test(`killed at ${point.message}`, async test => {
      await gateway.arm(point)
      await diesUnderBursts(gateway, home)
      const left = await enginesOf(home)
      test.ok(left.length <= 2 && new Set(left).size === left.length, `left: ${left.join(', ')}`)
      gateway = await startDoomed(t, program, home)
      test.strictSame(await burst(gateway), [200, 200, 200, 200], 'every request is answered')
      await eventually('what it brought up is not needed any more', async () => (await enginesOf(home)).length === 1)
      await eventually('its row says so', async () => (await replicas(gateway)).map(({ state }) => state).sort().join() === 'offline,ready')
      test.strictSame(portsOf(await replicas(gateway)), await enginesOf(home), 'and the one that is left is its')
    })
  }
  await gateway.kill('SIGTERM')
  t.strictSame(await enginesOf(home), [], 'nothing is left')
})
