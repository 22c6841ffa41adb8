import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { api, chat, readStream } from '../e2e/live-gateway.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { eventually } from '../kernel/runtime/support.js'
import { FakeHub } from '../plugins/services/hub/fake-hub.js'
import { freePort } from '../ports.js'
import { firstWords } from './kubernetes/slots.js'
import { cluster } from './support/cluster.js'
import { ClusterGateway, deployCopy, ENGINES, NAMESPACE, readmeCommands, type GatewayPod } from './support/cluster-gateway.js'
import { ensureGatewayImage, GATEWAY_IMAGE } from './support/gateway-image.js'

t.setTimeout(1_800_000)
const LLAMA = process.env.SVC_TEST_LLAMA_IMAGE ?? 'svc-test/llama:latest'
/** This machine's end of the bridge of the pods. */
const HOST = '10.244.7.1'
const GRACE_S = 12

t.test('the gateway in the cluster', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const here = await cluster(t)
  if (here === null) return
  if (here.folder === null) return void t.pass('skipped', { skip: 'the images cannot be brought into the cluster of SVC_TEST_KUBECONFIG' })
  const gateway = new ClusterGateway(here)
  // an API server that is asked to stop waits a minute for those who watch
  t.teardown(() => gateway.remove())
  await ensureGatewayImage({ ...process.env, DOCKER_HOST: engine.host })
  await gateway.bring(engine.host, GATEWAY_IMAGE)
  await gateway.rename(GATEWAY_IMAGE, 'docker.io/library/svc:0.1.0')
  await gateway.rename(LLAMA, 'ghcr.io/ggml-org/llama.cpp:server')
  const { 'svc-models': models } = await gateway.volumes()

  await t.test('the commands of the README lead from nothing to the first answer, through the Service', t => firstAnswer(t, gateway))
  await t.test('what serves has no more than the level restricted allows, and engines neither', t => isRestricted(t, gateway))
  await writeFile(join(models, 'chat/endless.gguf'), bigramGguf({ cycle: true, contextLength: 32_768 }))
  await t.test('a gateway that dies is started again in its pod: no engine is, and the requests that were in line can be sent again', t => restarts(t, gateway))
  await t.test('a second gateway stands by, takes over from one that is killed, and adopts its engines', t => takesOver(t, gateway))
  await t.test('a pod that is deleted ends the streams that fit, and the others with an error, within its grace', t => endsGracefully(t, gateway))
  await t.test('a role that is too small is told by svc doctor, with what grants it', t => tellsRights(t, gateway))
})

/** As they stand there, but for the port of this machine, which may be taken. */
async function firstAnswer (t: Test, gateway: ClusterGateway): Promise<void> {
  const hub = await FakeHub.start(t, HOST)
  hub.add('Qwen/Qwen3-0.6B-GGUF', { license: 'apache-2.0', files: { 'Qwen3-0.6B-Q8_0.gguf': bigramGguf() } })
  const folder = await deployCopy(t, { env: { HF_ENDPOINT: hub.url }, settings: `[server]\nshutdown_grace_s = ${GRACE_S}\n` })
  const commands = (await readmeCommands()).replaceAll('8080', String(await freePort()))
  t.equal(commands.trim().split('\n').length, 5)
  const began = performance.now()
  // what goes on in the background ends with the group
  const shell = spawn('sh', ['-ec', commands], { cwd: folder, env: gateway.env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => { said += chunk.toString() })
  const [code] = await once(shell, 'exit') as [number | null]
  // none of them is left where they failed before
  if (code === 0) process.kill(-shell.pid!, 'SIGKILL')
  t.equal(code, 0, said)
  t.match(said, new RegExp(`"content":"${demoSentence.slice(0, 10)}`))
  t.comment(`from kubectl apply to the first answer: ${Math.round(performance.now() - began)} ms`)
  t.strictSame(hub.complaints, [])
}

async function isRestricted (t: Test, gateway: ClusterGateway): Promise<void> {
  const user = '{.items[*].spec.securityContext.runAsUser} {.items[*].spec.containers[*].securityContext}'
  t.match(await gateway.kubectl('get', 'pods', '-l', ENGINES, '-o', `jsonpath=${user}`), /^65532 .*"drop":\["ALL"\]/)
  const [serving] = await gateway.gateways()
  const options = { runtime: 'kubernetes', device: 'cpu', model: { default: 'qwen3-0.6b' }, runtime_options: { restricted: false } }
  t.match(await api({ url: serving!.address }, 'POST', '/api/slots', { name: 'rooted', ...options }), { status: 201 })
  t.match(await api({ url: serving!.address }, 'POST', '/api/slots/rooted/load', {}), {
    json: { error: { details: { reason: 'kubernetes.refused' }, message: /violates PodSecurity.*set restricted = true/ } }
  })
  t.match(await gateway.svc('slot', 'delete', 'rooted', '--force'), { code: 0 })
  const verbs = [
    'status', 'doctor', 'ps', 'probe', 'chat Hello', 'slot list', 'slot logs agent', 'model list', 'model scan', 'upstream list',
    'alias set gpt agent', 'config validate', 'config reload', 'memory enable', 'board add Try', 'stack list', 'plugin list', 'cluster manifest', 'agent list', 'mcp list'
  ]
  for (const verb of verbs) {
    const { code, said } = await gateway.svc(...verb.split(' '))
    t.equal(code, 0, `svc ${verb}: ${said.slice(0, 500)}`)
  }
}

interface Told { readonly text: string, readonly isWhole: boolean }

/** A stream whose first words are there; `over` resolves when it has ended, one way or the other. */
async function stream (url: string, tokens: number): Promise<{ readonly over: Promise<Told> }> {
  const response = await chat(url, { model: 'endless', stream: true, max_tokens: tokens })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = await firstWords(reader)
  const read = async (): Promise<Told> => {
    for (;;) {
      const part = await reader.read().catch(() => null)
      if (part === null || part.done) return { text, isWhole: part !== null }
      text += decoder.decode(part.value)
    }
  }
  return { over: read() }
}

/** One that says so itself: the cluster may not know yet that another one has ended. */
const ready = (gateway: ClusterGateway, other: string): Promise<GatewayPod> => eventually('another gateway serves', async () => {
  const found = (await gateway.gateways()).find(({ name, isReady }) => isReady && name !== other)
  return found !== undefined && (await fetch(`${found.address}/health/ready`)).ok ? found : null
})

const engineIds = async (gateway: ClusterGateway): Promise<readonly string[]> =>
  (await gateway.pods(ENGINES)).map(({ metadata: { uid }, status: { containerStatuses: [own] = [] } }) => `${uid} ${own?.containerID ?? ''}`).toSorted()

async function restarts (t: Test, gateway: ClusterGateway): Promise<void> {
  t.match(await gateway.svc('model', 'register', 'endless', '--path', '/models/chat/endless.gguf'), { code: 0 })
  const [first] = await gateway.gateways()
  t.match(await api({ url: first!.address }, 'POST', '/api/slots', {
    name: 'endless',
    runtime: 'kubernetes',
    device: 'cpu',
    workers: 24,
    model: { default: 'endless', context_size: 32_768 },
    // slow, so that a stream lasts on a fast machine, too
    runtime_options: { resources: { limits: { cpu: '500m' } } }
  }), { status: 201 })
  const engines = await engineIds(gateway)
  t.equal(engines.length, 1)
  const kill = await gateway.processOf(first!)
  // no engine comes up before they are all in line
  await gateway.kubectl('cordon', 'localhost')
  t.teardown(() => gateway.kubectl('uncordon', 'localhost'))
  // alike, they would be one
  const ask = (tokens: number): Promise<number | 'closed'> =>
    chat(first!.address, { model: 'endless', max_tokens: tokens }).then(({ status }) => status, () => 'closed' as const)
  const requests = [5, 6, 7, 8]
  const held = requests.map(ask)
  await eventually('they wait', async () => {
    const { metadata } = (await api({ url: first!.address }, 'GET', '/api/slots/endless')).json as { metadata: { waiting: number } }
    return metadata.waiting === held.length
  })
  kill()
  t.strictSame(await Promise.all(held), held.map(() => 'closed'), 'without an outcome: a client may send them again')
  await eventually('it serves again, in the same pod', async () =>
    (await gateway.gateways()).some(({ name, isReady, restarts: count }) => name === first!.name && isReady && count === 1))
  await gateway.kubectl('uncordon', 'localhost')
  t.strictSame(await Promise.all(requests.map(ask)), requests.map(() => 200))
  const now = await engineIds(gateway)
  t.ok(engines.every(id => now.includes(id)), 'no engine was started anew')
}

async function takesOver (t: Test, gateway: ClusterGateway): Promise<void> {
  const [first] = await gateway.gateways()
  await gateway.kubectl('scale', 'deployment/svc', '--replicas=2')
  const second = await eventually('a second one is there', async () => (await gateway.gateways()).find(({ name }) => name !== first!.name))
  await eventually('it waits', async () => /waiting to take over/.test(await gateway.kubectl('logs', second.name)))
  t.equal((await gateway.gateways()).find(({ name }) => name === second.name)!.isReady, false, 'it is not sent to')

  t.match(await api({ url: first!.address }, 'POST', '/api/slots/endless/load', {}), { status: 200 })
  const engines = await engineIds(gateway)
  t.equal(engines.length, 2)
  const kill = await gateway.processOf(first!)
  const streams = await Promise.all(Array.from({ length: 6 }, () => stream(first!.address, 3000)))
  const killed = performance.now()
  kill()
  const outcomes = await Promise.all(streams.map(({ over }) => over))
  t.ok(outcomes.every(({ isWhole, text }) => !isWhole && !text.includes('[DONE]')), 'each stream breaks')
  await ready(gateway, first!.name)
  t.comment(`from SIGKILL to the next one that serves: ${Math.round(performance.now() - killed)} ms`)
  const { address } = await ready(gateway, first!.name)
  t.match(await (await chat(address, { max_tokens: 5 })).json(), { choices: [{ message: { content: String } }] })
  const again = await stream(address, 5)
  t.match(readStream((await again.over).text), { done: true, error: null })
  t.strictSame(await engineIds(gateway), engines, 'no engine was started for it')
}

async function endsGracefully (t: Test, gateway: ClusterGateway): Promise<void> {
  const serving = await ready(gateway, '')
  const engines = await engineIds(gateway)
  const ten = (tokens: number): Promise<ReadonlyArray<{ readonly over: Promise<Told> }>> =>
    Promise.all(Array.from({ length: 10 }, () => stream(serving.address, tokens)))
  const [long, short] = await Promise.all([ten(3000), ten(60)])
  const ended = exitCode(gateway, serving.name)
  const deleted = performance.now()
  await gateway.kubectl('delete', 'pod', serving.name, '--wait=false')
  for (const { over } of short) t.match(readStream((await over).text), { done: true, error: null })
  t.comment(`from the deletion to the end of the streams that fit: ${Math.round(performance.now() - deleted)} ms`)
  for (const { over } of long) {
    const { text, isWhole } = await over
    t.equal(isWhole, true, 'its connection is closed in order')
    t.match(readStream(text), { done: false, error: String })
  }
  t.equal(await ended, 0)
  t.comment(`from the deletion to the end: ${Math.round(performance.now() - deleted)} ms, of which ${GRACE_S} s are the grace`)
  const next = await ready(gateway, serving.name)
  t.comment(`to the next one that serves: ${Math.round(performance.now() - deleted)} ms`)
  t.match(await (await chat(next.address, { max_tokens: 5 })).json(), { choices: [{ message: { content: String } }] })
  t.strictSame(await engineIds(gateway), engines, 'no engine was started anew')
  await eventually('the pod is gone', async () => (await gateway.gateways()).every(({ name }) => name !== serving.name))
}

/** Of the gateway's container, once its pod has ended. */
async function exitCode (gateway: ClusterGateway, pod: string): Promise<number> {
  const code = 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}{"\\n"}'
  const child = spawn('kubectl', ['-n', NAMESPACE, 'get', 'pod', pod, '--watch', '-o', code], {
    env: gateway.env, stdio: ['ignore', 'pipe', 'inherit']
  })
  let told = ''
  for await (const chunk of child.stdout) {
    told += String(chunk)
    if (/\d\n/.test(told)) break
  }
  child.kill()
  return Number.parseInt(told.trim(), 10)
}

async function tellsRights (t: Test, gateway: ClusterGateway): Promise<void> {
  await gateway.kubectl('patch', 'role', 'svc-gateway', '--type=json', '-p', '[{"op":"replace","path":"/rules/0/verbs","value":["get","list","watch"]}]')
  const lacking = /may not create pods \(engines\), patch pods \(engines\), delete pods \(engines\) in namespace 'svc'/
  const doctor = await eventually('the cluster refuses', async () => {
    const found = await gateway.svc('doctor')
    return lacking.test(found.said) ? found : null
  })
  t.equal(doctor.code, 1)
  t.match(doctor.said, /`svc cluster manifest` prints/)
  const { said: manifest } = await gateway.svc('cluster', 'manifest')
  const apply = spawn('kubectl', ['apply', '-f', '-'], { env: gateway.env, stdio: ['pipe', 'ignore', 'inherit'] })
  apply.stdin.end(manifest)
  t.strictSame(await once(apply, 'exit'), [0, null])
  await eventually('the cluster grants it', async () => (await gateway.svc('doctor')).code === 0)
}
