import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { api, chat, type LiveGateway } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import type { Cluster } from '../support/cluster.js'
import { cuttable } from './faults.js'
import { clusterHome, ENGINES, NAMESPACE, podsOf, slotFile, UP } from './slots.js'

const isFull = process.env.SVC_TEST_KUBERNETES_SCALE === 'full'
const SIZE = isFull ? { slots: 500, replicas: 4, cuts: 60 } : { slots: 6, replicas: 5, cuts: 3 }
const ALL = SIZE.slots * SIZE.replicas
/** What is waited for where all engines come or go. */
const ALL_MS = isFull ? 1_200_000 : undefined
/** Between looks at all of them: one of thousands takes the gateway longer than what is looked for. */
const LOOK_MS = ALL
/** Of the pods that kwok plays. */
const PODS = '10.245.0.0/16'
const execute = promisify(execFile)

interface Replica { readonly index: number, readonly state: string, readonly engine: string | null }
interface Row { readonly state: string, readonly replicas_ready: number, readonly replicas: readonly Replica[] }
interface Usage { readonly cpuMs: number, readonly mib: number }

/** Slots of the real gateway with many replicas on nodes that kwok plays; one engine of this machine answers for all. */
export async function serveMany (t: Test, here: Cluster): Promise<void> {
  await answersForPods(t)
  const way = await cuttable(t, 16_443)
  const kubeconfig = join(t.testdir(), 'kubeconfig')
  await writeFile(kubeconfig, (await readFile(here.kubeconfig, 'utf8')).replace(/127\.0\.0\.1:16443/, `127.0.0.1:${way.port}`))
  const options = 'node_selector = { ring = "many" }\ntolerations = [{ key = "kwok.x-k8s.io/node" }]\n'
  const many = `replicas = ${SIZE.replicas}\nmin_replicas = ${SIZE.replicas}\n${slotFile({ image: 'engine:1', options })}`
  const names = Array.from({ length: SIZE.slots }, (_, i) => `many-${i}`)
  const { home, start } = await clusterHome(t, { kubeconfig }, Object.fromEntries(names.map(name => [name, many])))
  await appendFile(join(home, 'etc/svc/svc.toml'), 'port_range_start = 20000\nport_range_end = 24999\n')
  let gateway = await start()
  const idle = await usage(gateway)
  const loading = await told(t, gateway, `${names.length} slots loaded, ${ALL} engines`, ALL, async () => {
    const loads = Promise.all(names.map(name => api(gateway, 'POST', `/api/slots/${name}/load`, {})))
    // the answer of a load that takes five minutes is given up here, and the load goes on
    if (isFull) loads.catch(() => {})
    else t.strictSame((await loads).filter(({ status }) => status !== 200), [])
    await allReady(gateway, 'all are up')
  })
  t.equal((await podsOf(here)).length, ALL)
  const { mib } = await usage(gateway)
  t.comment(`resident ${idle.mib} MiB before, ${mib} MiB after`)
  t.ok(mib - idle.mib < 60 + ALL / 2, 'half a MiB for each, and what any load takes')

  await told(t, gateway, 'a list of them, with their replicas', 1, () => api(gateway, 'GET', '/api/slots'))
  await told(t, gateway, 'a request to each slot', names.length, async () => {
    const answers = await Promise.all(names.map(model => chat(gateway.url, { model, max_tokens: 5 })))
    t.ok(answers.every(({ status }) => status === 200))
  })
  const changes = await told(t, gateway, `${ALL} changes, and the end of one, which is told behind them`, ALL, async () => {
    await here.kubectl('-n', NAMESPACE, 'annotate', 'pods', '-l', ENGINES, 'ring=changed', '--overwrite')
    await loses(here, gateway, 'many-0')
  })
  // kubectl takes its time for thousands, in which the health of as many engines is asked for
  t.ok(changes.cpuMs < loading.cpuMs / 2, 'together they take less than half of what bringing the engines up took')
  await allReady(gateway, 'it comes back')

  const timer = setInterval(way.cut, 1000)
  t.teardown(() => clearInterval(timer))
  const done = way.cuts() + SIZE.cuts
  let ends = 0
  await told(t, gateway, `the watch cut every second for ${SIZE.cuts} s`, SIZE.cuts, async () => {
    for (; way.cuts() < done; ends++) await loses(here, gateway, `many-${ends % names.length}`)
  })
  clearInterval(timer)
  t.comment(`${ends} ends, each told; ${way.opened()} connections`)
  await allReady(gateway, 'all come back')
  await looked('and there are no others', async () => (await podsOf(here)).length === ALL)

  const before = await podsOf(here)
  await gateway.kill('SIGKILL')
  gateway = await start()
  await allReady(gateway, 'all are adopted')
  t.comment(`adopted: ${(await usage(gateway)).cpuMs} ms of the processor from the start on, ${(await usage(gateway)).mib} MiB`)
  t.strictSame((await podsOf(here)).toSorted(), before.toSorted(), 'by the next gateway')
  await told(t, gateway, 'unloaded', ALL, async () => {
    const unloads = Promise.all(names.map(name => api(gateway, 'POST', `/api/slots/${name}/unload`, { force: true })))
    // as with the loads
    if (isFull) unloads.catch(() => {})
    await endAsked(here)
    if (!isFull) t.ok((await unloads).every(({ status }) => status === 200))
    await looked('all are down', async () => (await rows(gateway)).every(({ state }) => state === 'offline'))
  })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

/** Every port of every pod that kwok plays leads to one engine here. */
async function answersForPods (t: Test): Promise<void> {
  const answer = JSON.stringify({ object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: 'here' }, finish_reason: 'stop' }] })
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(request.url === '/health' ? '{"status":"ok"}' : answer))
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const redirect = (what: string): string[] => ['-t', 'nat', what, 'OUTPUT', '-d', PODS, '-p', 'tcp', '-j', 'REDIRECT', '--to-ports', String((server.address() as AddressInfo).port)]
  await execute('ip', ['route', 'replace', 'local', PODS, 'dev', 'lo'])
  t.teardown(() => execute('ip', ['route', 'del', 'local', PODS, 'dev', 'lo']))
  await execute('iptables', redirect('-I'))
  t.teardown(() => execute('iptables', redirect('-D')))
}

/** kwok ends no pod whose deadline has come: once all are asked to end, they are taken away in its place. */
async function endAsked ({ kubectl }: Cluster): Promise<void> {
  const deadlines = 'jsonpath={.items[*].spec.activeDeadlineSeconds}'
  await looked('all are asked to end', async () =>
    (await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', ENGINES, '-o', deadlines)).split(' ').length === ALL)
  await kubectl('-n', NAMESPACE, 'delete', 'pods', '-l', ENGINES, '--wait=false', '--grace-period=0', '--force')
}

const rows = async (gateway: LiveGateway): Promise<readonly Row[]> => (await api(gateway, 'GET', '/api/slots')).json as Row[]

async function looked (what: string, attempt: () => Promise<boolean>): Promise<void> {
  await eventually(what, async () => {
    const isThere = await attempt()
    if (!isThere) await setTimeout(LOOK_MS)
    return isThere
  }, ALL_MS)
}

const allReady = (gateway: LiveGateway, what: string): Promise<void> => looked(what, async () => await ready(gateway) === ALL)

async function ready (gateway: LiveGateway): Promise<number> {
  return (await rows(gateway)).reduce((sum, { replicas_ready: count }) => sum + count, 0)
}

/** Deletes one pod of a slot and resolves when the gateway has its end. */
async function loses (here: Cluster, gateway: LiveGateway, name: string): Promise<void> {
  const replicas = async (): Promise<readonly Replica[]> => ((await api(gateway, 'GET', `/api/slots/${name}`)).json as Row).replicas
  const { index, engine } = await eventually('one is up', async () => (await replicas()).find(({ state }) => UP.test(state)))
  await here.kubectl('-n', NAMESPACE, 'delete', 'pod', engine!, '--grace-period=0', '--force')
  await eventually('its end is told', async () => (await replicas()).find(replica => replica.index === index)!.engine !== engine)
}

/** Of the gateway since its start. */
async function usage ({ pid }: LiveGateway): Promise<Usage> {
  const [stat, status] = await Promise.all(['stat', 'status'].map(name => readFile(`/proc/${pid}/${name}`, 'utf8')))
  const [, rest = ''] = /^.*\) (.*)$/s.exec(stat!)!
  const [user, system] = rest.split(' ').slice(11, 13).map(Number)
  return { cpuMs: (user! + system!) * 10, mib: Math.round(Number(/VmRSS:\s+(\d+)/.exec(status!)![1]) / 1024) }
}

/** Prints what some work took of the gateway, in all and for each of so many. */
async function told (t: Test, gateway: LiveGateway, what: string, count: number, work: () => Promise<unknown>): Promise<Usage> {
  const [began, before] = [performance.now(), await usage(gateway)]
  await work()
  const { cpuMs, mib } = await usage(gateway)
  const cost = cpuMs - before.cpuMs
  t.comment(`${what}: ${Math.round(performance.now() - began)} ms, ${cost} ms of the gateway's processor, ${(cost / count).toFixed(2)} for each; resident ${mib} MiB`)
  return { cpuMs: cost, mib }
}
