import t, { type Test } from 'tap'
import { createFakeEngine, type FakeEngine } from '../../kernel/testing/index.js'
import { INSTANCE_LABEL, LAUNCH_ANNOTATION } from '../../plugins/runtimes/kubernetes/pod/pod-names.js'
import { api, type LiveGateway } from '../e2e/live-gateway.js'
import { eventually } from '../kernel/runtime/support.js'
import { fakeCluster, type FakeCluster, type FakePod, type Verdict } from '../plugins/runtimes/fake-cluster.js'
import { isStep, stepName } from './kubernetes/kills.js'
import { clusterHome, slotFile } from './kubernetes/slots.js'

t.setTimeout(1_800_000)

t.test('a gateway that is killed before or after any request of a launch or an end leaves one engine, and then none', async t => {
  const cluster = await clusterOfEngines(t)
  const { start } = await clusterHome(t, cluster, { agent: slotFile({ image: 'engine:1' }) })
  let gateway: LiveGateway = await start()
  const load = async (): Promise<number> => (await api(gateway, 'POST', '/api/slots/agent/load', {}).catch(() => ({ status: 0 }))).status
  const unload = async (): Promise<number> => (await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }).catch(() => ({ status: 0 }))).status

  /** The steps of a launch or an end, as they are without a kill. */
  const stepsOf = async (work: () => Promise<number>): Promise<string[]> => {
    const steps: string[] = []
    cluster.judge = request => {
      if (isStep(request)) steps.push(stepName(request))
      return undefined
    }
    t.equal(await work(), 200)
    cluster.judge = () => undefined
    return steps
  }
  const launch = await stepsOf(load)
  const [mine] = [...cluster.pods.values()]
  const others = [otherHome(mine!), forged(mine!)]
  for (const pod of others) cluster.pods.set(pod.metadata.name, pod)
  const engines = (): string[] => [...cluster.pods.keys()].filter(name => others.every(pod => pod.metadata.name !== name))
  const end = await stepsOf(unload)
  t.comment(`a launch: ${launch.join(', ')}; an end: ${end.join(', ')}`)
  t.strictSame(engines(), [])

  for (const [work, steps] of [[load, launch], [unload, end]] as const) {
    for (let at = 0; at < steps.length; at++) {
      // what only reads changes nothing: before it and after it are the same
      const sides = steps[at]!.startsWith('GET') ? ['lost-before'] as const : ['lost-before', 'lost-after'] as const
      for (const side of sides) {
        if (work === unload) t.equal(await load(), 200)
        let [left, isDead] = [at, false]
        cluster.judge = async (request): Promise<Verdict> => {
          if (isDead || !isStep(request) || left-- > 0) return undefined
          isDead = true
          await gateway.kill('SIGKILL')
          return side
        }
        await work()
        await eventually('it is killed', () => isDead)
        cluster.judge = () => undefined
        await gateway.ended
        gateway = await start()
        const what = `${steps[at]!}, ${side === 'lost-before' ? 'before it' : 'before its answer'}`
        t.equal(await load(), 200, what)
        t.equal(engines().length, 1, what)
        t.equal(await unload(), 200, what)
        t.strictSame(engines(), [], what)
      }
    }
  }
  for (const pod of others) t.equal(cluster.pods.get(pod.metadata.name), pod, 'pods of others are as they were')
  t.equal(await gateway.kill('SIGTERM'), 0)
})

t.test('an API server that is away when the gateway starts keeps no other slot, and its engine is found later', async t => {
  const cluster = await clusterOfEngines(t)
  const { start } = await clusterHome(t, cluster, { agent: slotFile({ image: 'engine:1' }) })
  let gateway = await start()
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 })
  const [pod] = [...cluster.pods.keys()]
  await gateway.kill('SIGKILL')
  cluster.judge = () => ({ status: 503, message: 'away' })
  gateway = await start()
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 502, json: { error: { message: /away/ } } })
  cluster.judge = () => undefined
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 })
  t.equal(cluster.pods.size, 1, 'there is one engine')
  t.comment(`the engine of before ${cluster.pods.has(pod!) ? 'was adopted' : 'was replaced'}`)
  t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
  t.equal(cluster.pods.size, 0)
  t.equal(await gateway.kill('SIGTERM'), 0)
})

t.test('a changed [runtime.kubernetes] marks the engines that it would start otherwise', async t => {
  const cluster = await clusterOfEngines(t)
  const { start } = await clusterHome(t, cluster, { agent: slotFile({ image: 'engine:1' }) })
  const gateway = await start()
  t.match(await api(gateway, 'POST', '/api/slots/agent/load', {}), { status: 200 })
  const drift = async (): Promise<unknown> => ((await api(gateway, 'GET', '/api/slots/agent')).json as { config_drift: boolean }).config_drift
  t.equal(await drift(), false)
  t.match(await api(gateway, 'PATCH', '/api/settings', { runtime: { kubernetes: { capacity_timeout_s: 20 } } }), { status: 200 })
  t.equal(await drift(), false, 'what is no part of an engine marks none')
  t.match(await api(gateway, 'PATCH', '/api/settings', { runtime: { kubernetes: { node_selector: { zone: 'b' } } } }), { status: 200 })
  await eventually('it is marked', drift)
  t.match(await api(gateway, 'PUT', '/api/slots/agent/config', { runtime_options: { model_storage: 'clam' } }), { status: 400, json: { error: { param: 'runtime_options.model_storage' } } })
  t.match(await api(gateway, 'PUT', '/api/slots/agent/config', { runtime: 'kubernets' }), { status: 400, json: { error: { param: 'runtime', message: /which no plugin provides; there are .*kubernetes/ } } })
  t.match(await api(gateway, 'POST', '/api/slots', { name: 'more', runtime: 'kubernetes', runtime_options: { nodes: 1 } }), { status: 400, json: { error: { param: 'runtime_options.nodes' } } })
  t.match(await api(gateway, 'POST', '/api/slots/agent/restart', {}), { status: 200 })
  t.equal(await drift(), false)
  t.match([...cluster.pods.values()], [{ spec: { nodeSelector: { zone: 'b' } } }])
  t.match(await api(gateway, 'POST', '/api/slots/agent/unload', { force: true }), { status: 200 })
  t.equal(await gateway.kill('SIGTERM'), 0)
})

/** Pods whose gate is opened have an engine on this host, at the port of their launch. */
async function clusterOfEngines (t: Test): Promise<FakeCluster> {
  const cluster = await fakeCluster(t.testdir())
  t.teardown(() => cluster.close())
  const engines = new Map<FakePod, Promise<FakeEngine>>()
  const sweep = async (): Promise<void> => {
    const over = [...engines].filter(([pod]) => cluster.pods.get(pod.metadata.name) !== pod)
    for (const [pod] of over) engines.delete(pod)
    for (const [, engine] of over) await (await engine).close()
  }
  t.teardown(async () => {
    cluster.pods.clear()
    await sweep()
  })
  cluster.run = pod => {
    const { port } = JSON.parse(pod.metadata.annotations[LAUNCH_ANNOTATION]!) as { port: number }
    const engine = sweep().then(() => createFakeEngine(port))
    engines.set(pod, engine)
    void engine.then(() => cluster.running(pod))
  }
  return cluster
}

/** A pod of another home, of a slot with the same name. */
function otherHome (pod: FakePod): FakePod {
  const other = structuredClone(pod)
  const name = 'svc-agent-0123456789ab'
  Object.assign(other.metadata, { name, labels: { ...other.metadata.labels, [INSTANCE_LABEL]: 'f'.repeat(32) } })
  const renamed = ([key, value]: [string, string]): [string, string] => [key, value.replaceAll(pod.metadata.name, name)]
  other.metadata.annotations = Object.fromEntries(Object.entries(other.metadata.annotations).map(renamed))
  return other
}

/** One with every label of ours, which names another pod in its annotation. */
function forged (pod: FakePod): FakePod {
  const other = structuredClone(pod)
  other.metadata.name = 'svc-agent-ba9876543210'
  return other
}
