import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LABEL_INSTANCE } from '../../../kernel/contract/provider/engine-runtime.js'
import { FakeClock, settle } from '../../../kernel/testing/index.js'
import { CredentialSource } from '../../../plugins/runtimes/kubernetes/api/credentials.js'
import { runExec, type ExecCommand } from '../../../plugins/runtimes/kubernetes/api/exec-command.js'
import { accessDoubts, clusterAccess } from '../../../plugins/runtimes/kubernetes/api/kubeconfig.js'
import { jsonLines } from '../../../plugins/runtimes/kubernetes/api/json-lines.js'
import { refusal } from '../../../plugins/runtimes/kubernetes/api/cluster-api.js'
import { newPodId } from '../../../plugins/runtimes/kubernetes/pod/pod-names.js'
import { surveyCluster } from '../../../plugins/runtimes/kubernetes/survey/survey.js'
import { clusterSettings } from '../../../plugins/runtimes/kubernetes/settings.js'
import { eventually, realClock } from '../../kernel/runtime/support.js'
import { badCertificateServer } from '../../wire/upstream/self-signed.js'
import { clusterOf, drive, HOME, quiet, specOf, started } from './driven-cluster.js'
import type { FakePod } from './fake-cluster.js'

t.test('a watch that is cut again and again loses no end, keeps its place, and asks for no list', async t => {
  const cluster = await clusterOf(t)
  const driven = await drive(t, cluster)
  await eventually('it watches', () => cluster.watches() === 1)
  const listed = cluster.lists()
  const ids: string[] = []
  for (let i = 0; i < 8; i++) {
    const before = cluster.watches()
    cluster.cut()
    ids.push(await started(driven, `slot-${i}`))
    cluster.ended(cluster.pods.get(ids[i]!)!, i)
    await eventually('it watches again', () => cluster.watches() > before)
  }
  await eventually('each end is told', () => driven.exits.length === 8)
  t.strictSame(driven.exits.map(({ id, exitCode }) => [id, exitCode]), ids.map((id, i) => [id, i]), 'once, in order')
  t.equal(cluster.lists(), listed, 'nothing was listed anew')
})

t.test('a server that ends every watch at once is asked at growing intervals', async t => {
  const cluster = await clusterOf(t)
  const clock = new FakeClock()
  cluster.judge = ({ query }) => query.get('watch') === 'true' ? { status: 500, message: 'broken' } : undefined
  await drive(t, cluster, {}, HOME, clock)
  const asked = (): number => cluster.requests.filter(({ query }) => query.get('watch') === 'true').length
  for (let i = 1; i <= 6; i++) {
    await eventually('it asks', () => asked() === i)
    await settle()
    await eventually('it waits', () => clock.pending > 0)
    await clock.advance(Math.min(5_000, 200 * 2 ** (i - 1)) - 1)
    await settle()
    t.equal(asked(), i)
    await clock.advance(1)
  }
  t.equal(cluster.lists(), 1)
})

t.test('a version that is too old lists anew, and tells what ended meanwhile', async t => {
  const cluster = await clusterOf(t)
  const driven = await drive(t, cluster)
  const [kept, gone] = [await started(driven, 'kept'), await started(driven, 'gone')]
  const listed = cluster.lists()
  cluster.cut()
  cluster.remove(gone)
  cluster.compact()
  await eventually('the end is told', () => driven.exits.length === 1)
  t.match(driven.exits, [{ id: gone, exitCode: null }])
  t.equal(cluster.lists(), listed + 1)
  t.match(await driven.runtime.inspect(kept), { state: 'running' })
})

t.test('homes with slots of the same name do not see each other\'s pods, and pods of others belong to none', async t => {
  const cluster = await clusterOf(t)
  const [mine, theirs] = [await drive(t, cluster), await drive(t, cluster, {}, 'that home')]
  const [id, other] = [await started(mine, 'chat'), await started(theirs, 'chat', 'that home')]
  t.match(await mine.runtime.list({ [LABEL_INSTANCE]: HOME }), [{ id }])
  t.match(await theirs.runtime.list({ [LABEL_INSTANCE]: 'that home' }), [{ id: other }])
  const forged: FakePod = structuredClone(cluster.pods.get(id)!)
  forged.metadata.name = 'svc-chat-0123456789ab'
  cluster.pods.set(forged.metadata.name, forged)
  t.equal((await mine.runtime.list({ [LABEL_INSTANCE]: HOME })).length, 1, 'a copy names another pod in its annotation')
  await mine.runtime.remove(forged.metadata.name)
  t.ok(cluster.pods.has(forged.metadata.name))
  await mine.runtime.remove(id)
  t.strictSame([...cluster.pods.keys()].sort(), [other, forged.metadata.name].sort())
  t.strictSame(theirs.exits, [])
})

t.test('a pod that nothing ends is deleted without its node, once that has said nothing for a minute', async t => {
  const cluster = await clusterOf(t)
  const clock = new FakeClock()
  const driven = await drive(t, cluster, {}, HOME, clock)
  const id = await started(driven, 'chat')
  const path = `/api/v1/namespaces/engines/pods/${id}`
  const pod = cluster.pods.get(id)!
  // without a node a deadline or a deletion in its time only stands in the pod
  cluster.answers.set(path, pod)
  const deletions: unknown[] = []
  cluster.judge = ({ method, path: of, query }) => {
    if (method !== 'DELETE' || of !== path) return undefined
    deletions.push(query.get('gracePeriodSeconds'))
    if (deletions.at(-1) === '0') cluster.answers.delete(path)
    return undefined
  }
  const looks = (): number => cluster.requests.filter(({ method, path: of }) => method === 'GET' && of === path).length
  /** Until it has looked at the pod again. */
  const pass = async (ms: number): Promise<void> => {
    await eventually('it waits', () => clock.pending > 0)
    const before = looks()
    await clock.advance(ms)
    await eventually('it looks', () => looks() > before)
  }
  const stop = driven.runtime.stop(id, 1)
  await pass(90_000)
  t.strictSame(deletions, [], 'a node that tells of the pod ends it when it can')
  pod.status.conditions = [{ type: 'Ready', status: 'False' }]
  await pass(2_000)
  await eventually('it is removed', () => deletions.length === 1)
  await pass(58_000)
  t.strictSame(deletions, ['1'])
  await pass(2_000)
  await stop
  t.strictSame(deletions, ['1', '0'])
  t.equal(cluster.pods.size, 0)
  t.match(driven.exits, [{ id, exitCode: null }])
  t.match(driven.log.lines.at(-1), /^warn the node of a pod no longer answers/)
})

t.test('a login that is missing is told, though its node says so a moment after the image could not be pulled', async t => {
  const cluster = await clusterOf(t)
  const clock = new FakeClock()
  const { runtime } = await drive(t, cluster, { registry_logins: ['absent'] }, HOME, clock)
  cluster.run = pod => {
    pod.status = { phase: 'Pending', containerStatuses: [{ name: 'engine', state: { waiting: { reason: 'ErrImagePull', message: '401 unauthorized' } } }] }
    cluster.changed(pod)
  }
  const id = await runtime.create(specOf('chat'), quiet)
  const start = runtime.start(id, quiet)
  start.catch(() => {})
  const events = '/api/v1/namespaces/engines/events'
  await eventually('the pod was looked at', () => cluster.requests.some(({ method, path }) => method === 'PATCH' && path.endsWith(id)) && clock.pending > 0)
  t.notOk(cluster.requests.some(({ path }) => path === events), 'nothing is judged before')
  cluster.answers.set(events, { metadata: {}, items: [{ metadata: { name: 'e' }, reason: 'FailedToRetrieveImagePullSecret', message: 'no secret (absent)' }] })
  const passing = setInterval(() => void clock.advance(1_000), 20)
  t.teardown(() => clearInterval(passing))
  await t.rejects(start, { code: 'kubernetes.object_missing', heals: true, message: /401 unauthorized: no secret \(absent\); make the Secret/ })
})

t.test('names of pods are names whatever slots are called, and no two are the same', async t => {
  const slots = ['a', 'A_b', '-', '_', 'x'.repeat(64), `${'y'.repeat(39)}-z`, 'ünïcode', 'a.b']
  const ids = [...slots, ...slots].map(newPodId)
  for (const id of ids) t.match(id, /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/)
  t.equal(new Set(ids).size, ids.length)
})

t.test('an answer that is lost leaves no pod behind, whichever side of the work it was lost on', async t => {
  for (const verdict of ['lost-before', 'lost-after'] as const) {
    const cluster = await clusterOf(t)
    const { runtime } = await drive(t, cluster)
    cluster.judge = ({ method }) => method === 'POST' ? verdict : undefined
    await t.rejects(runtime.create(specOf('chat'), quiet), { code: 'kubernetes.unavailable', heals: true })
    t.equal(cluster.pods.size, 0)
  }
})

t.test('a connection that breaks fails neither a launch nor an end: what can be asked twice is', async t => {
  for (const verdict of ['lost-before', 'lost-after'] as const) {
    const cluster = await clusterOf(t)
    const driven = await drive(t, cluster)
    await eventually('it watches', () => cluster.watches() === 1)
    const broken: string[] = []
    // each first answer of its kind
    cluster.judge = ({ method, path, query }) => {
      const what = `${method} ${path}`
      if (method === 'POST' || query.has('watch') || broken.includes(what)) return undefined
      broken.push(what)
      return verdict
    }
    const id = await started(driven, 'chat')
    t.match(await driven.runtime.inspect(id), { state: 'running' })
    await driven.runtime.remove(id)
    t.equal(cluster.pods.size, 0)
    t.strictSame(broken.map(what => what.split(' ')[0]).toSorted(), ['DELETE', 'GET', 'PATCH'])
  }
})

t.test('a start outlasts an API server that is away', async t => {
  const cluster = await clusterOf(t)
  const { runtime } = await drive(t, cluster)
  const id = await runtime.create(specOf('chat'), quiet)
  cluster.run = () => {}
  const lines: string[] = []
  const start = runtime.start(id, quiet, line => lines.push(line))
  await eventually('the gate is open', () => cluster.pods.get(id)!.spec.schedulingGates!.length === 0)
  cluster.judge = () => ({ status: 503, message: 'etcd is away' })
  cluster.changed(cluster.pods.get(id)!)
  await eventually('it says so', () => lines.some(line => line.includes('etcd is away')))
  cluster.judge = () => undefined
  cluster.running(cluster.pods.get(id)!)
  await start
})

t.test('rights that are taken away are said, and are no trouble once they are back', async t => {
  const cluster = await clusterOf(t)
  const driven = await drive(t, cluster)
  const id = await started(driven, 'chat')
  cluster.judge = ({ method }) => ({ status: 403, message: `pods is forbidden: User "u" cannot ${method === 'POST' ? 'create' : 'list'} resource "pods"` })
  cluster.cut()
  await t.rejects(driven.runtime.create(specOf('other'), quiet), { code: 'kubernetes.forbidden', heals: true, message: /cannot create resource "pods"; `svc cluster manifest`/ })
  await eventually('the log says it', () => driven.log.lines.some(line => line.startsWith('warn the cluster cannot be watched: pods is forbidden')))
  cluster.judge = () => undefined
  cluster.ended(cluster.pods.get(id)!, 3)
  await eventually('what ended meanwhile is told', () => driven.exits.length === 1)
  await started(driven, 'other')
})

t.test('what a rule of the cluster refuses is no want of a right', async t => {
  const call = { method: 'POST', path: '/api/v1/namespaces/n/pods' } as const
  const codeOf = (message: string): unknown => (refusal(403, { message }, call, 'n') as { code?: string }).code
  t.equal(codeOf('pods "svc-a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'), 'kubernetes.refused')
  t.match(refusal(403, { message: 'pods "svc-a" is forbidden: violates PodSecurity "restricted:latest": x' }, call, 'n').message, /set restricted = true/)
  t.equal(codeOf('pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "n"'), 'kubernetes.forbidden')
  t.equal(codeOf('pods "svc-a" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "n"'), 'kubernetes.forbidden')
  t.equal(codeOf('pods "svc-a" is forbidden: exceeded quota: gpus'), 'kubernetes.no_capacity')
})

t.test('a token file is read anew, and once more for a token that was refused', async t => {
  const folder = t.testdir({ token: 'first\n' })
  const cluster = await clusterOf(t, { tokenFile: join(folder, 'token') })
  writeFileSync(join(folder, 'token'), 'first\n')
  let valid = 'Bearer first'
  cluster.judge = ({ authorization }) => authorization === valid ? undefined : { status: 401, message: 'Unauthorized' }
  const driven = await drive(t, cluster)
  await started(driven, 'chat')
  valid = 'Bearer second'
  writeFileSync(join(folder, 'token'), 'second\n')
  const before = cluster.requests.length
  await started(driven, 'other')
  const refused = cluster.requests.slice(before).filter(({ authorization }) => authorization === 'Bearer first')
  t.equal(refused.length, 1, 'the old one was shown once more, and no request failed for it')
  writeFileSync(join(folder, 'token'), '')
  valid = 'Bearer third'
  await t.rejects(driven.runtime.create(specOf('third'), quiet), { code: 'kubernetes.credentials', heals: true, message: /it is empty/ })
})

function script (t: Test, text: string): ExecCommand & { readonly runs: () => number } {
  const folder = t.testdir({ exec: `#!/bin/sh\necho run >> "$0.runs"\n${text}\n` })
  const command = join(folder, 'exec')
  chmodSync(command, 0o755)
  const runs = (): number => readFileSync(`${command}.runs`, 'utf8').split('\n').length - 1
  return { command, args: ['a b', '$(touch never)'], env: {}, apiVersion: 'client.authentication.k8s.io/v1', installHint: 'get it', cluster: { server: 'https://c' }, runs }
}

t.test('a credential command is run by its words, told of the cluster, and asked again when what it gave is over', async t => {
  const clock = new FakeClock()
  const until = new Date(clock.now() + 90_000).toISOString()
  const exec = script(t, `printf '%s' "$1|$2|$KUBERNETES_EXEC_INFO" > "$0.seen"\necho '{"status":{"token":"abc","expirationTimestamp":"${until}"}}'`)
  const source = new CredentialSource({ kind: 'exec', exec }, clock, process.env, quiet)
  t.match(await Promise.all([source.show(), source.show()]), [{ authorization: 'Bearer abc' }, { authorization: 'Bearer abc' }])
  t.match(readFileSync(`${exec.command}.seen`, 'utf8'), /^a b\|\$\(touch never\)\|\{"apiVersion":"client\.authentication\.k8s\.io\/v1".*"cluster":\{"server":"https:\/\/c"\}/)
  t.equal(exec.runs(), 1)
  await clock.advance(59_000)
  await source.show()
  t.equal(exec.runs(), 1, 'kept until half a minute before its end')
  await clock.advance(2_000)
  const shown = await source.show()
  t.equal(exec.runs(), 2)
  source.forget(shown)
  await source.show()
  t.equal(exec.runs(), 2, 'one that is refused a moment after is not asked for again and again')
  await clock.advance(5_000)
  source.forget(await source.show())
  await source.show()
  t.ok(exec.runs() >= 3)
})

t.test('a clock of the command that is hours off neither runs it at every request nor keeps what it gave too long', async t => {
  const clock = new FakeClock()
  const exec = script(t, `echo '{"status":{"token":"abc","expirationTimestamp":"2001-01-01T00:00:00Z"}}'`)
  const source = new CredentialSource({ kind: 'exec', exec }, clock, process.env, quiet)
  for (let i = 0; i < 10; i++) await source.show()
  t.equal(exec.runs(), 1)
})

t.test('a credential command that fails, hangs or floods says so, and leaves nothing running', async t => {
  const run = (text: string, limitMs?: number): Promise<unknown> => runExec(script(t, text), process.env, quiet, limitMs)
  await t.rejects(run('echo first >&2; echo "log in first" >&2; exit 3'), { code: 'kubernetes.credentials', heals: true, message: /ended with 3: log in first$/ })
  await t.rejects(run('echo waiting for a browser >&2; sleep 1000 & sleep 1000', 300), { message: /took longer than 0\.3 s/ })
  await t.rejects(run('yes'), { message: /printed more than/ })
  const told = await run('echo secret-token').then(() => '', (error: Error) => error.message)
  t.match(told, /did not print an ExecCredential$/)
  await t.rejects(runExec({ ...script(t, ''), command: '/no/such/program' }, process.env, quiet), { message: /no such program: get it/ })
  const leaves = new AbortController()
  const left = runExec(script(t, 'sleep 1000'), process.env, leaves.signal)
  leaves.abort(new Error('the gateway stops'))
  await t.rejects(left, { message: 'the gateway stops' })
})

t.test('a kubeconfig that is a bomb, or wants what there is not, is refused with the reason', async t => {
  const read = async (text: string): Promise<unknown> => {
    const folder = t.testdir({ config: text })
    return await clusterAccess(clusterSettings.schema.parse({ kubernetes: { kubeconfig: join(folder, 'config') } }).kubernetes, {})
  }
  const config = (user: object, cluster: object = {}): string => JSON.stringify({
    'current-context': 'c', 'clusters': [{ name: 'c', cluster: { server: 'https://c', ...cluster } }], 'users': [{ name: 'u', user }], 'contexts': [{ name: 'c', context: { cluster: 'c', user: 'u' } }]
  })
  const laughs = Array.from({ length: 12 }, (_, i) => `a${i}: &a${i} [${i === 0 ? 'x' : Array(10).fill(`*a${i - 1}`).join(',')}]`).join('\n')
  await t.rejects(read(laughs), { code: 'kubernetes.config', message: /is not YAML: .*alias/i })
  await t.rejects(read('['.repeat(200_000)), { code: 'kubernetes.config' })
  await t.rejects(read('x'.repeat(5_000_000)), { code: 'kubernetes.config', message: /too long/ })
  const exec = { command: 'get-token', apiVersion: 'client.authentication.k8s.io/v1' }
  await t.rejects(read(config({ exec: { ...exec, interactiveMode: 'Always' } })), { message: /needs a terminal/ })
  await t.rejects(read(config({ exec: { ...exec, apiVersion: 'v1alpha1' } })), { message: /apiVersion: must be client\.authentication/ })
  t.match(await read(config({ exec: { ...exec, provideClusterInfo: true } })), { credentials: { exec: { command: 'get-token', cluster: { server: 'https://c' } } } })
  const access = await read(config({ token: 'x' }, { 'insecure-skip-tls-verify': true })) as Parameters<typeof accessDoubts>[0]
  t.match(accessDoubts(access), [/not checked/])
  t.strictSame(accessDoubts({ server: 'https://c', verifies: true }), [])
})

t.test('a context that is named wins over the current one, and one that is not there is refused with those that are', async t => {
  const named = (name: string): object => ({ name, context: { cluster: name, user: name, namespace: `of-${name}` } })
  const folder = t.testdir({ config: JSON.stringify({
    'current-context': 'home',
    'clusters': ['home', 'lab'].map(name => ({ name, cluster: { server: `https://${name}` } })),
    'users': ['home', 'lab'].map(name => ({ name, user: { token: `token-${name}` } })),
    'contexts': ['home', 'lab'].map(named)
  }) })
  const read = (said: object): ReturnType<typeof clusterAccess> =>
    clusterAccess(clusterSettings.schema.parse({ kubernetes: { kubeconfig: join(folder, 'config'), ...said } }).kubernetes, {})
  const of = (name: string): object =>
    ({ server: `https://${name}`, credentials: { token: `token-${name}` }, namespace: `of-${name}`, way: { connect: 'kubeconfig', context: name } })
  t.match(await read({}), of('home'))
  t.match(await read({ context: 'lab' }), of('lab'))
  t.match(await read({ context: 'lab', namespace: 'own' }), { ...of('lab'), namespace: 'own' })
  await t.rejects(read({ context: 'gone' }), { code: 'kubernetes.config', heals: false, message: /there is no context 'gone' in .*; there are: home, lab$/ })
})

t.test('a credential that is not accepted and a server that is not known may be in time', async t => {
  const cluster = await clusterOf(t)
  const { runtime } = await drive(t, cluster)
  cluster.judge = () => ({ status: 401, message: 'Unauthorized' })
  await t.rejects(runtime.create(specOf('chat'), quiet), { code: 'kubernetes.unauthorized', heals: true, message: /renew those of the kubeconfig/ })
  const text = readFileSync(cluster.kubeconfig, 'utf8').replace(cluster.url, await badCertificateServer(t))
  const kubeconfig = join(t.testdir({ config: text }), 'config')
  await t.rejects(drive(t, { kubeconfig }), { code: 'kubernetes.untrusted', heals: true, message: /cannot be verified \(DEPTH_ZERO_SELF_SIGNED_CERT\); check certificate-authority/ })
})

t.test('a connection that others may read is said in the log and by the survey, and no credential is', async t => {
  const cluster = await clusterOf(t, { token: 'very-secret' })
  cluster.judge = ({ path }) => path === '/version' ? undefined : { status: 403, message: 'nodes is forbidden: User "u" cannot list resource "nodes"' }
  const { log } = await drive(t, cluster)
  t.match(log.lines, [/^warn http:.* is not encrypted/])
  const { kubernetes: settings } = clusterSettings.schema.parse({ kubernetes: { kubeconfig: cluster.kubeconfig } })
  const survey = await surveyCluster({ settings, slots: [], places: [], env: process.env, clock: realClock })
  t.notMatch(JSON.stringify([log.lines, survey]), /very-secret/)
})

t.test('lines of a watch are bounded, and cheap however they are cut', async t => {
  async function* chunks (of: Buffer, size: number): AsyncIterable<Buffer> {
    for (let at = 0; at < of.length; at += size) yield of.subarray(at, at + size)
  }
  const read = async (text: string, size: number): Promise<unknown[]> => {
    const values: unknown[] = []
    for await (const value of jsonLines(chunks(Buffer.from(text), size))) values.push(value)
    return values
  }
  const lines = [{ a: 'ü'.repeat(100) }, { b: '\n' }, []]
  for (const size of [1, 7, 1000]) t.strictSame(await read(`${lines.map(line => JSON.stringify(line)).join('\n\n')}\n{"cut":`, size), lines)
  await t.rejects(read('x'.repeat(9 * 1024 * 1024), 65_536), { message: /longer than/ })
  await t.rejects(read('no json\n', 100))
})

t.test('an answer without end is given up', async t => {
  const cluster = await clusterOf(t)
  const { runtime, log } = await drive(t, cluster)
  const id = await started({ runtime, log, exits: [] }, 'chat')
  const pod = cluster.pods.get(id)!
  pod.metadata.annotations.flood = 'x'.repeat(70 * 1024 * 1024)
  await t.rejects(runtime.list({ [LABEL_INSTANCE]: HOME }), { code: 'kubernetes.unavailable', message: /longer than/ })
})

t.test('times of the cluster decide nothing: a pod of tomorrow is an engine like any other', async t => {
  const cluster = await clusterOf(t)
  const driven = await drive(t, cluster)
  for (const hours of [-48, 48]) {
    cluster.run = pod => cluster.running(pod, new Date(Date.now() + hours * 3_600_000).toISOString())
    const id = await started(driven, 'chat')
    t.match(await driven.runtime.inspect(id), { state: 'running', address: { port: 8081 } })
    await driven.runtime.stop(id, 1)
    await driven.runtime.remove(id)
  }
  t.equal(driven.exits.length, 2)
})
