import { connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { api, chat, type LiveGateway } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { diesInSteps } from './kills.js'
import { moves } from './places.js'
import {
  apply, clusterHome, drains, endlessStream, ENGINES, engineProcess, NAMESPACE, podsOf, programOf, row, slotFile, slotOf, UP
} from './slots.js'
import type { Cluster } from '../support/cluster.js'

const ENDLESS = slotFile({ model: 'endless', extra: '[server]\nextra_args = "--context-shift"\n' })
const CUTS = process.env.SVC_TEST_KUBERNETES_SCALE === 'full' ? 60 : 12

/** The node goes away for a while, is drained, the gateway dies in the middle of a start, the watch is cut again and again. */
export async function breaks (t: Test, here: Cluster): Promise<void> {
  const { kubectl } = here
  await apply(here, t.testdir(), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'bystander', namespace: NAMESPACE, labels: { 'app.kubernetes.io/managed-by': 'svc-gateway' } },
    spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'svc-test/busybox:1', command: ['sleep', '100000'] }] }
  })
  const uid = (): Promise<string> => kubectl('-n', NAMESPACE, 'get', 'pod', 'bystander', '-o', 'jsonpath={.metadata.uid} {.status.containerStatuses[0].restartCount}')
  await kubectl('-n', NAMESPACE, 'wait', '--for=condition=Ready', 'pod/bystander', '--timeout=300s')
  const before = await uid()
  await row(t, here, 'a kubelet that is killed and comes back is not noticed by a stream', loseKubelet)
  await row(t, here, 'a node that is gone keeps no slot from going offline, and no pod', loseNode)
  await row(t, here, 'an API server that restarts in the middle of a launch and of an end costs neither', restartServer)
  await row(t, here, 'a node that is drained ends its engines; the next one waits for a node, says so, and comes up where there is one', drainNode)
  await row(t, here, 'a gateway that is killed while a request waits for a start leaves one engine, which answers the request that is sent again', dieInStart)
  await row(t, here, 'a gateway that is killed before or after any step of a launch or an end leaves one engine, and then none', diesInSteps)
  await row(t, here, 'another namespace in svc.toml takes the pods away from the former one', moves)
  await row(t, here, 'a watch that is cut every second loses no end', cutWatch)
  t.equal(await uid(), before, 'a pod of others with the same label was left alone')
  await kubectl('-n', NAMESPACE, 'delete', 'pod', 'bystander', '--grace-period=0', '--force')
}

async function loseKubelet (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { endless: ENDLESS })
  const gateway = await start()
  const stream = await endlessStream(gateway)
  const kubelet = programOf(t, here.folder!, 'kubelet')
  await kubelet.kill()
  const ready = 'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end}'
  const told = (): Promise<string> => here.kubectl('get', 'node', 'localhost', '-o', ready)
  const last = await told()
  t.ok(await stream.grows(), 'the stream goes on')
  kubelet.start()
  await eventually('the kubelet tells of itself', async () => {
    const now = await told()
    return now.startsWith('True') && now !== last
  })
  t.ok(await stream.grows())
  t.match(await slotOf(gateway, 'endless'), { state: UP })
  stream.leave()
  t.match(await api(gateway, 'POST', '/api/slots/endless/unload', { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

/** The kubelet stays away for longer than the cluster waits for it: nothing on the node ends the pod. */
async function loseNode (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { agent: slotFile() })
  const gateway = await start()
  t.match(await chat(gateway.url, { max_tokens: 5 }), { status: 200 })
  const [pod = ''] = await podsOf(here)
  const process = await engineProcess(here, pod)
  const kubelet = programOf(t, here.folder!, 'kubelet')
  await kubelet.kill()
  const ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
  await eventually('the cluster takes the node for gone', async () => await here.kubectl('-n', NAMESPACE, 'get', pod, '-o', ready) === 'False', 300_000)
  const began = performance.now()
  await unloads(gateway, 'agent')
  t.comment(`unloaded after ${Math.round((performance.now() - began) / 1000)} s`)
  t.match(await slotOf(gateway, 'agent'), { state: 'offline' })
  t.strictSame(await podsOf(here), [], 'the pod is gone without its node')
  t.match(gateway.log(), /the node of a pod no longer answers/)
  kubelet.start()
  await eventually('a kubelet that comes back ends what it has left', () => !existsSync(`/proc/${process}`), 300_000)
  await eventually('the next request brings another one', async () => (await chat(gateway.url, { max_tokens: 5 })).status === 200, 300_000)
  await unloads(gateway, 'agent')
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

async function restartServer (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { agent: slotFile() })
  const gateway = await start()
  const restart = async (): Promise<void> => {
    const server = programOf(t, here.folder!, 'kube-apiserver')
    await server.kill()
    server.start()
  }
  const asked = chat(gateway.url, { max_tokens: 5 })
  await eventually('a pod is made', async () => (await podsOf(here)).length === 1)
  await restart()
  t.match(await asked, { status: 200 }, 'the request that waited is answered')
  const server = programOf(t, here.folder!, 'kube-apiserver')
  await server.kill()
  const unloaded = unloads(gateway, 'agent')
  await eventually('it is on its way', async () => (await slotOf(gateway, 'agent')).state === 'unloading')
  server.start()
  await unloaded
  t.match(await slotOf(gateway, 'agent'), { state: 'offline' })
  await eventually('the API server is back', () => here.kubectl('get', '--raw', '/readyz'))
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

/** With an outcome, however long the cluster takes for it. */
async function unloads (gateway: LiveGateway, name: string): Promise<void> {
  const answer = await fetch(`${gateway.url}/api/slots/${name}/unload`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"force":true}', signal: AbortSignal.timeout(280_000)
  })
  if (!answer.ok) throw new Error(`${name} was not unloaded: ${await answer.text()}`)
}

async function drainNode (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { endless: ENDLESS })
  const gateway = await start()
  const stream = await endlessStream(gateway)
  const ended = drains(stream)
  t.teardown(() => here.kubectl('uncordon', 'localhost'))
  await here.kubectl('drain', 'localhost', '--force', '--ignore-daemonsets', '--delete-emptydir-data', '--grace-period=2', `--pod-selector=${ENGINES}`)
  t.equal(await ended, false, 'the stream ends')
  await eventually('its end is told', async () => !UP.test((await slotOf(gateway, 'endless')).state))
  await eventually('with its reason', () => /the cluster ended an engine/.test(gateway.log()) && /EvictionByEvictionAPI/.test(gateway.log()))
  await schedulerKnows(t, here)
  const held = chat(gateway.url, { model: 'endless', max_tokens: 5 })
  const waits = eventually('it waits for a node', async () => /waiting for capacity: .*unschedulable/.test((await slotOf(gateway, 'endless')).metadata.message))
  const early = await Promise.race([waits.then(() => null), held])
  if (early !== null) t.fail(`the request that should wait was answered ${early.status}: ${await early.text()}`)
  await here.kubectl('uncordon', 'localhost')
  t.match(await held, { status: 200 }, 'and the request that waited is answered once there is one')
  t.match(await api(gateway, 'POST', '/api/slots/endless/unload', { force: true }), { status: 200 })
  t.strictSame(await podsOf(here), [])
  t.equal(await gateway.kill('SIGTERM'), 0)
}

/**
 * That no node takes pods. Its lists are watched apart, each again after a time of its own when the API server was away: until
 * then a pod can get a node that is closed.
 */
async function schedulerKnows (t: Test, here: Cluster): Promise<void> {
  const { kubectl } = here
  await eventually('the scheduler has no node for a pod', async () => {
    await apply(here, t.testdir(), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'probe', namespace: NAMESPACE },
      spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'svc-test/busybox:1', command: ['sleep', '100000'] }] }
    })
    const scheduled = 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].status}'
    const told = await eventually('it tells', async () => await kubectl('-n', NAMESPACE, 'get', 'pod', 'probe', '-o', scheduled) || null)
    await kubectl('-n', NAMESPACE, 'delete', 'pod', 'probe', '--grace-period=0', '--force')
    return told === 'False'
  })
}

/** The steps one by one are those of `diesInSteps`, and of the ring `kubernetes-kill`. */
async function dieInStart (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { agent: ENDLESS })
  const pod = (path: string): Promise<string> => here.kubectl('-n', NAMESPACE, 'get', 'pods', '-l', ENGINES, '-o', `jsonpath=${path}`)
  const isThere = async (): Promise<boolean> => await pod('{.items[*].metadata.name}') !== ''
  const answers = async (): Promise<boolean> => (await fetch(`http://${await pod('{.items[0].status.podIP}:{.items[0].spec.containers[0].ports[0].containerPort}')}/health`)).ok
  for (const [name, isReached] of [['the pod is there', isThere], ['the engine answers', answers]] as const) {
    let gateway = await start()
    // an engine that is up before the kill does not end it
    const waiting = chat(gateway.url, { max_tokens: 10_000_000 }).then(() => 'answered', () => 'closed')
    await eventually(name, isReached)
    const before = await podsOf(here)
    await gateway.kill('SIGKILL')
    t.equal(await waiting, 'closed', 'without an outcome: a client may send it again')
    gateway = await start()
    t.match(await chat(gateway.url, { max_tokens: 5 }), { status: 200 }, name)
    const after = await eventually('one is left', async () => {
      const pods = await podsOf(here)
      return pods.length === 1 ? pods : null
    })
    if (isReached === answers) t.strictSame(after, before, 'the engine is adopted')
    t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
    t.strictSame(await podsOf(here), [])
    t.equal(await gateway.kill('SIGTERM'), 0)
  }
}

async function cutWatch (t: Test, here: Cluster): Promise<void> {
  const way = await cuttable(t, 16_443)
  const kubeconfig = join(t.testdir(), 'kubeconfig')
  writeFileSync(kubeconfig, readFileSync(here.kubeconfig, 'utf8').replace(/127\.0\.0\.1:16443/, `127.0.0.1:${way.port}`))
  const { start } = await clusterHome(t, { kubeconfig }, { agent: slotFile() })
  const gateway = await start()
  const memory = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))![1]) / 1024
  const at = memory()
  const timer = setInterval(way.cut, 1000)
  t.teardown(() => clearInterval(timer))
  const done = way.cuts() + CUTS
  let ends = 0
  while (way.cuts() < done) {
    await eventually('it comes up', async () => (await api(gateway, 'POST', '/api/slots/agent/load', {})).status === 200)
    await here.kubectl('-n', NAMESPACE, 'delete', 'pods', '-l', ENGINES, '--grace-period=0', '--force')
    await eventually('its end is told', async () => !UP.test((await slotOf(gateway, 'agent')).state))
    ends++
  }
  clearInterval(timer)
  t.comment(`${way.cuts()} cuts, ${ends} ends, each told; ${way.opened()} connections; resident ${Math.round(at)} to ${Math.round(memory())} MiB`)
  t.ok(way.opened() < way.cuts() * 12, 'there is no storm of connections')
  t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
  t.equal(await gateway.kill('SIGTERM'), 0)
}

export interface Way {
  readonly port: number
  readonly cut: () => void
  readonly cuts: () => number
  readonly opened: () => number
}

/** Another door to a port of this host, whose connections can be broken. */
export async function cuttable (t: Test, to: number): Promise<Way> {
  const open = new Set<Socket>()
  let [cuts, opened] = [0, 0]
  const server = createServer(socket => {
    opened++
    const other = connect(to, '127.0.0.1')
    open.add(socket)
    for (const [one, two] of [[socket, other], [other, socket]] as const) {
      one.on('error', () => {}).on('close', () => two.destroy()).pipe(two)
    }
    socket.on('close', () => open.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const cut = (): void => {
    cuts++
    for (const socket of open) socket.destroy()
  }
  return { port: (server.address() as AddressInfo).port, cut, cuts: () => cuts, opened: () => opened }
}
