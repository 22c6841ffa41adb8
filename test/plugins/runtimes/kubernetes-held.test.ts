import t, { type Test } from 'tap'
import { createFakeEngine } from '../../../kernel/testing/index.js'
import { LAUNCH_ANNOTATION } from '../../../plugins/runtimes/kubernetes/pod/pod-names.js'
import kubernetesRuntime from '../../../plugins/runtimes/kubernetes/index.js'
import { until, wireGateway, type WireGateway } from '../../wire/wire-gateway.js'
import { clusterOf } from './driven-cluster.js'
import type { FakePod } from './fake-cluster.js'

const FULL = '0/1 nodes are available: 1 Insufficient nvidia.com/gpu.'

interface Full {
  readonly gateway: WireGateway
  readonly pods: ReadonlyMap<string, FakePod>
  /** From now on each pod has a node, where an engine answers for it. */
  readonly makeRoom: () => void
}

/** A gateway with a slot `agent` in a cluster that has no room. */
async function fullCluster (t: Test, capacityS: number): Promise<Full> {
  const cluster = await clusterOf(t)
  cluster.run = pod => {
    pod.status = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: FULL }] }
    cluster.changed(pod)
  }
  const gateway = await wireGateway(t, {
    plugins: [kubernetesRuntime],
    svc: `[runtime.kubernetes]\nkubeconfig = "${cluster.kubeconfig}"\ncapacity_timeout_s = ${capacityS}\n`,
    files: { 'etc/svc/slots/agent.toml': 'provider = "fake"\nruntime = "kubernetes"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
  })
  const place = (pod: FakePod): void => {
    const { port } = JSON.parse(pod.metadata.annotations[LAUNCH_ANNOTATION]!) as { port: number }
    void createFakeEngine(port).then(engine => {
      t.teardown(() => engine.close())
      cluster.running(pod)
    })
  }
  const makeRoom = (): void => {
    cluster.run = place
    for (const pod of cluster.pods.values()) place(pod)
  }
  return { gateway, pods: cluster.pods, makeRoom }
}

t.test('a chat is held while the cluster has no room, and is answered once it has', async t => {
  const { gateway, makeRoom, pods } = await fullCluster(t, 600)
  const held = gateway.chat({})
  await until(() => gateway.slots.status('agent').message.includes(`waiting for capacity: ${FULL}`), 'the slot says what it waits for')
  t.match(gateway.slots.status('agent'), { state: 'starting', waiting: 1 })
  makeRoom()
  const answer = await held
  t.match([answer.status, await answer.json()], [200, { choices: [{ message: { content: String } }] }])
  t.equal(pods.size, 1)
})

t.test('a chat that there was no room for in its time ends with the reason of the scheduler, and the next one tries again', async t => {
  const { gateway, pods, makeRoom } = await fullCluster(t, 1)
  const answer = await gateway.chat({})
  const message = /no node had room within 1 s .*Insufficient nvidia\.com\/gpu/
  t.match([answer.status, await answer.json()], [502, { error: { code: 'slot.load_failed', message, details: { reason: 'kubernetes.no_capacity' } } }])
  t.equal(pods.size, 0, 'nothing is left of it')
  makeRoom()
  t.equal((await gateway.chat({})).status, 200)
})

t.test('chats with slots that ask for the same GPU are answered in the order in which they came, as it is freed', async t => {
  const cluster = await clusterOf(t)
  const names = ['one', 'two', 'three']
  const waiting: FakePod[] = []
  let isTaken = false
  // it takes the newest first, so that order is not its work
  const schedule = (): void => {
    const pod = isTaken ? undefined : waiting.pop()
    if (pod === undefined) return
    isTaken = true
    const { port } = JSON.parse(pod.metadata.annotations[LAUNCH_ANNOTATION]!) as { port: number }
    void createFakeEngine(port).then(engine => {
      t.teardown(() => engine.close())
      cluster.running(pod)
    })
  }
  cluster.run = pod => {
    waiting.push(pod)
    schedule()
    if (!waiting.includes(pod)) return
    pod.status = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: FULL }] }
    cluster.changed(pod)
  }
  const slot = 'provider = "fake"\nruntime = "kubernetes"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n[runtime_options]\nresources = { limits = { "nvidia.com/gpu" = "1" } }\n'
  const gateway = await wireGateway(t, {
    plugins: [kubernetesRuntime],
    svc: `[runtime.kubernetes]\nkubeconfig = "${cluster.kubeconfig}"\ncapacity_timeout_s = 600\n`,
    files: Object.fromEntries(names.map(name => [`etc/svc/slots/${name}.toml`, slot]))
  })
  const answered: string[] = []
  const chats = new Map<string, Promise<void>>()
  for (const name of names) {
    chats.set(name, gateway.chat({ model: `svc/${name}` }).then(async answer => {
      t.equal(answer.status, 200, await answer.text())
      answered.push(name)
    }))
    await until(() => name === 'one' ? answered.length === 1 : gateway.slots.status(name).message.includes('waiting for'), `${name} runs, or waits`)
  }
  for (const [i, name] of names.entries()) {
    await chats.get(name)
    t.same(answered, names.slice(0, i + 1))
    await gateway.slots.unload(name)
    isTaken = false
    schedule()
  }
})
