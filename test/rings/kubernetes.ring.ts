import t, { type Test } from 'tap'
import type { ContainerRuntime } from '../../kernel/contract/provider/engine-runtime.js'
import { runtimeConformance, tinyContainer } from '../../kernel/testing/index.js'
import { openKubernetes } from '../../plugins/runtimes/kubernetes/open.js'
import { clusterSettings } from '../../plugins/runtimes/kubernetes/settings.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { run } from '../cli/support.js'
import { api, chat, readStream } from '../e2e/live-gateway.js'
import { eventually, realClock, recordingLogger } from '../kernel/runtime/support.js'
import { sideBySide } from './kubernetes/beside.js'
import { disagree } from './kubernetes/clocks.js'
import { changesHands } from './kubernetes/credentials.js'
import { breaks } from './kubernetes/faults.js'
import { serveMany } from './kubernetes/fleet.js'
import { freezes } from './kubernetes/frozen.js'
import { reaches } from './kubernetes/reach.js'
import { refuses } from './kubernetes/refusals.js'
import { replicates } from './kubernetes/replicas.js'
import { grows } from './kubernetes/scale.js'
import {
  clusterHome, drains, endlessStream, firstWords, loadError, NAMESPACE, podsOf, programOf, row, slotFile, slotOf, UP
} from './kubernetes/slots.js'
import { stores } from './kubernetes/storage.js'
import { cluster, type Cluster } from './support/cluster.js'

// eight minutes on two cores, and three times that where they are busy; the full size takes twenty more
t.setTimeout(process.env.SVC_TEST_KUBERNETES_SCALE === 'full' ? 3_600_000 : 1_800_000)

t.test('slots run, fail and recover in a real cluster', async t => {
  const here = await cluster(t)
  if (here === null) return
  await here.kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found')
  await here.kubectl('create', 'namespace', NAMESPACE)
  t.teardown(() => here.kubectl('delete', 'namespace', NAMESPACE, '--wait=false').catch(() => {}))
  await t.test('the driver is judged as those for Docker, Podman and processes are', t => conforms(t, here))
  if (here.folder !== null && process.env.SVC_TEST_DOCKER_HOST === undefined) {
    t.pass('skipped', { skip: 'no SVC_TEST_DOCKER_HOST has an image with llama-server; run: eval "$(test/engines/up.sh)"' })
    return
  }
  const skip = here.folder === null ? 'the cluster of SVC_TEST_KUBECONFIG is not ours to break, and reaches nothing of this machine' : false
  const alone = async (name: string, isOurs: boolean, work: (t: Test, here: Cluster) => Promise<void>): Promise<void> =>
    await row(t, here, name, work, isOurs && skip)
  await alone('a slot in the cluster, behind the real gateway', false, serves)
  await alone('local and cluster slots live in one gateway, and svc doctor says what the cluster lacks', false, sideBySide)
  await alone('a slot with several engines has a pod for each', false, replicates)
  await alone('an engine that hangs in its pod is replaced, and requests go to the other one', true, freezes)
  await alone('each way of a pod not to come up is a code of its own, with the next step', false, fails)
  await alone('what the API server, a rule of the cluster or the scheduler has against a pod is told with what to change, and leaves none', false, refuses)
  await alone('engines are reached by their pod, by a port of the node, and forwarded', false, reaches)
  await alone('models come from a claim and from downloads, images from registries that want a login', true, stores)
  await alone('credentials and rights change while slots run', false, changesHands)
  await alone('what runs engines breaks while they run', true, breaks)
  await alone('the clocks of gateway and cluster differ', true, disagree)
  await alone('many nodes, slots and pods', true, grows)
  await alone('many replicas of slots behind the real gateway', true, serveMany)
  await alone('a stream goes on while the API server is away, and ends of engines are told afterwards', true, survives)
})

/** Forwarded, since the suite asks for ports of this host. */
async function conforms (t: Test, { kubeconfig }: Cluster): Promise<void> {
  const open = async (): Promise<ContainerRuntime> => {
    const { kubernetes: settings } = clusterSettings.schema.parse({ kubernetes: { kubeconfig, namespace: NAMESPACE, reach: 'forward' } })
    const runtime = await openKubernetes({
      settings: () => settings,
      budgets: () => ({ startS: 120, pullS: 120, stopS: 3 }),
      clock: realClock,
      log: recordingLogger(),
      env: process.env
    }, AbortSignal.timeout(120_000))
    // as the gateway does: what runs is forwarded again from then on
    await runtime.list({})
    return runtime
  }
  // the host of a pod is its node, which is this machine: its loopback has the port that is forwarded
  const checks = runtimeConformance({ open, spec: wish => tinyContainer('svc-test/node:1', { ...wish, network: 'everywhere' }) })
  for (const { name, run: judge } of checks) await t.test(name, judge)
}

async function serves (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, {
    agent: slotFile(), endless: slotFile({ model: 'endless', extra: '[server]\nextra_args = "--context-shift"\n' })
  })
  let gateway = await start()
  t.match((await api(gateway, 'GET', '/api/status')).json, { runtimes: [{ name: 'process' }, { name: 'kubernetes', info: { version: /^v1\./ }, problem: null }] })
  t.strictSame(await podsOf(here), [], 'nothing runs yet')

  const began = performance.now()
  const cold = await chat(gateway.url, { stream: true, max_tokens: 60, temperature: 0 })
  const reader = cold.body!.getReader()
  let text = await firstWords(reader)
  t.comment(`from a cold request to its first token: ${Math.round(performance.now() - began)} ms`)
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += new TextDecoder().decode(part.value)
  t.match(readStream(text), { done: true, error: null })
  t.match(readStream(text).content, demoSentence.slice(0, 10), 'the model speaks')
  const [pod = ''] = await podsOf(here)
  t.match(await here.kubectl('-n', NAMESPACE, 'get', pod, '-o', 'yaml'), /automountServiceAccountToken: false/)

  const short = async (): Promise<ReturnType<typeof readStream>> =>
    readStream(await (await chat(gateway.url, { stream: true, max_tokens: 20, temperature: 0 })).text())
  const many = await Promise.all(Array.from({ length: 50 }, short))
  t.ok(many.every(({ done, error, content }) => done && error === null && content !== ''), 'fifty streams')

  const logs = await run(['slot', 'logs', 'agent', '--url', gateway.url])
  t.match(logs.stdout, /slot/, 'its log is read')

  const stream = await endlessStream(gateway)
  t.equal((await podsOf(here)).length, 2)
  await gateway.kill('SIGKILL')
  gateway = await start()
  await eventually('the engine is adopted', async () => UP.test((await slotOf(gateway, 'agent')).state))
  t.strictSame((await podsOf(here)).includes(pod), true, 'the engine is the one of before')
  t.match(await (await chat(gateway.url, { max_tokens: 20 })).json(), { choices: [{ message: { content: String } }] })
  t.equal((await podsOf(here)).length, 2, 'and nothing was started for it')
  stream.leave()

  const again = await endlessStream(gateway)
  await here.kubectl('-n', NAMESPACE, 'delete', ...(await podsOf(here)).filter(name => name.includes('-endless-')), '--grace-period=1')
  t.equal(await drains(again), false, 'a pod that is deleted by hand ends its streams')
  const next = await endlessStream(gateway)
  t.ok(await next.grows(), 'and the next request brings another one')
  next.leave()

  for (const name of ['agent', 'endless']) t.match(await api(gateway, 'POST', `/api/slots/${name}/unload`, { force: true }), { status: 200 })
  await eventually('the pods are gone', async () => (await podsOf(here)).length === 0)
  t.equal(await gateway.kill('SIGTERM'), 0)
}

async function fails (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, {
    'no-image': slotFile({ image: '127.0.0.1:5999/nothing/here:1' }),
    'no-claim': slotFile({ options: 'model_storage = "claim"\nmodel_claim = "absent"\n' }),
    'no-room': slotFile({ options: '' }).replace('requests = {', 'limits = { "nvidia.com/gpu" = "1" }, requests = {'),
    'no-folder': slotFile({ options: 'model_root = "/"\nmodel_path = "/no/such/folder"\n' }),
    'no-program': slotFile({ image: 'svc-test/node:1' }),
    'no-flag': slotFile({ extra: '[server]\nextra_args = "--no-such-flag"\n' }),
    // a million tokens of its cache are 128 MiB
    'no-memory': slotFile().replace('4096', '1048576').replace('memory = "32Mi" } }', 'memory = "32Mi" }, limits = { memory = "64Mi" } }')
  }, 'capacity_timeout_s = 30\n')
  const gateway = await start()
  const load = (name: string): ReturnType<typeof loadError> => loadError(gateway, name)
  const held = chat(gateway.url, { model: 'no-room', max_tokens: 5 })
  await eventually('the scheduler says why', async () => /waiting for capacity: .*nvidia\.com\/gpu/.test((await slotOf(gateway, 'no-room')).metadata.message))
  t.match(await load('no-image'), { details: { reason: 'kubernetes.image_pull' }, message: /127\.0\.0\.1:5999/ })
  t.match(await load('no-claim'), { details: { reason: 'kubernetes.claim_missing' }, message: /"absent" not found.*; create the claim, or set model_claim/ })
  t.match(await load('no-program'), { details: { reason: 'kubernetes.not_runnable' } })
  t.match(await load('no-folder'), { details: { reason: 'kubernetes.volume' }, message: /check model_storage/ })
  t.match(await load('no-flag'), { message: /code 1.*invalid argument: --no-such-flag/s }, 'with its exit code and its last lines')
  const answer = await held
  t.match([answer.status, await answer.json()], [502, {
    error: { code: 'slot.load_failed', details: { reason: 'kubernetes.no_capacity' }, message: /no node had room within 30 s .*nvidia\.com\/gpu/ }
  }], 'a request that waited for room is told why there was none')
  t.match(await load('no-memory'), { message: /out of memory/ })
  t.strictSame(await podsOf(here), [], 'nothing is left of them')
  t.equal(await gateway.kill('SIGTERM'), 0)
}

async function survives (t: Test, here: Cluster): Promise<void> {
  const { start } = await clusterHome(t, here, { endless: slotFile({ model: 'endless', extra: '[server]\nextra_args = "--context-shift"\n' }) })
  const gateway = await start()
  const stream = await endlessStream(gateway)
  const server = programOf(t, here.folder!, 'kube-apiserver')
  await server.kill()
  t.ok(await stream.grows(), 'the stream goes on')
  t.match(await slotOf(gateway, 'endless'), { state: UP })
  server.start()
  await eventually('the API server is back', () => here.kubectl('get', '--raw', '/readyz'))
  t.ok(await stream.grows(), 'and after it is back')
  await here.kubectl('-n', NAMESPACE, 'delete', ...await podsOf(here), '--grace-period=1')
  t.equal(await drains(stream), false)
  await eventually('its end is told', async () => !UP.test((await slotOf(gateway, 'endless')).state))
  t.equal(await gateway.kill('SIGTERM'), 0)
}
