import { readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { FakeClock, settle } from '../../../kernel/testing/index.js'
import { ClusterApi } from '../../../plugins/runtimes/kubernetes/api/cluster-api.js'
import { clusterAccess } from '../../../plugins/runtimes/kubernetes/api/kubeconfig.js'
import { watchList } from '../../../plugins/runtimes/kubernetes/api/watched-list.js'
import { clusterSettings } from '../../../plugins/runtimes/kubernetes/settings.js'
import { eventually, realClock, recordingLogger } from '../../kernel/runtime/support.js'
import { selfSigned } from '../../wire/upstream/self-signed.js'
import { clusterOf, drive, HOME, quiet, specOf, started } from './driven-cluster.js'

t.test('an end outlasts an API server that is away in each of its steps', async t => {
  for (const away of ['GET', 'PATCH', 'DELETE']) {
    const cluster = await clusterOf(t)
    const clock = new FakeClock()
    const driven = await drive(t, cluster, {}, HOME, clock)
    const id = await started(driven, 'chat')
    let refused = 0
    cluster.judge = ({ method, path }) => {
      if (method !== away || !path.endsWith(id) || refused === 3) return undefined
      refused++
      return { status: 503, message: 'etcd is away' }
    }
    const passing = setInterval(() => void clock.advance(500), 5)
    await driven.runtime.stop(id, 1)
    t.match(await driven.runtime.inspect(id), { state: 'exited', exitCode: 143 })
    await driven.runtime.remove(id)
    clearInterval(passing)
    t.equal(refused, 3, `${away} was refused`)
    t.equal(cluster.pods.size, 0)
    t.match(driven.exits, [{ id, exitCode: 143 }])
  }
})

t.test('an engine whose end an earlier gateway has begun is none to take over, though it runs for a moment yet', async t => {
  const cluster = await clusterOf(t)
  const driven = await drive(t, cluster)
  const ids = [await started(driven, 'stopped'), await started(driven, 'deleted'), await started(driven, 'running')] as const
  cluster.pods.get(ids[0])!.spec.activeDeadlineSeconds = 1
  Object.assign(cluster.pods.get(ids[1])!.metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' })
  const found = await driven.runtime.list({})
  const stateOf = (id: string): unknown => found.find(each => each.id === id)
  for (const id of ids.slice(0, 2)) t.match(stateOf(id), { state: 'exited', address: null })
  t.match(stateOf(ids[2]), { state: 'running', address: Object })
  for (const id of ids) t.match(await driven.runtime.inspect(id), { state: 'running' }, 'it ends when its container has')
})

t.test('an end that no API server answers for a minute says so, and leaves the pod to the next try', async t => {
  const cluster = await clusterOf(t)
  const clock = new FakeClock()
  const driven = await drive(t, cluster, {}, HOME, clock)
  const id = await started(driven, 'chat')
  cluster.judge = () => ({ status: 503, message: 'etcd is away' })
  const began = clock.monotonic()
  const passing = setInterval(() => void clock.advance(500), 5)
  await t.rejects(driven.runtime.remove(id), { code: 'kubernetes.unavailable', message: /etcd is away/ })
  clearInterval(passing)
  const tookMs = clock.monotonic() - began
  t.ok(tookMs >= 60_000 && tookMs < 90_000, `${tookMs} ms`)
  cluster.judge = () => undefined
  await driven.runtime.remove(id)
  t.equal(cluster.pods.size, 0)
})

t.test('an end that waits for an API server is given up when the gateway stops', async t => {
  const cluster = await clusterOf(t)
  const clock = new FakeClock()
  const driven = await drive(t, cluster, {}, HOME, clock)
  const id = await started(driven, 'chat')
  let asked = 0
  cluster.judge = ({ path }) => {
    if (path.endsWith(id)) asked++
    return { status: 503, message: 'etcd is away' }
  }
  const removal = driven.runtime.remove(id)
  removal.catch(() => {})
  await eventually('it has asked', () => asked > 0)
  await driven.runtime.close()
  await t.rejects(removal, { code: 'gateway.stopping' })
})

t.test('a token of the kubeconfig that was renewed is read again by the request that is refused, and by the watch', async t => {
  const cluster = await clusterOf(t, { token: 'first' })
  const clock = new FakeClock()
  let valid = 'Bearer first'
  cluster.judge = ({ authorization }) => authorization === valid ? undefined : { status: 401, message: 'Unauthorized' }
  const driven = await drive(t, cluster, {}, HOME, clock)
  const id = await started(driven, 'chat')
  const text = readFileSync(cluster.kubeconfig, 'utf8')
  const renew = (token: string): void => writeFileSync(cluster.kubeconfig, text.replace('first', token))
  valid = 'Bearer second'
  renew('second')
  t.match(await driven.runtime.inspect(id), { state: 'running' }, 'no request fails for it')
  cluster.cut()
  cluster.ended(cluster.pods.get(id)!, 3)
  const passing = setInterval(() => void clock.advance(100), 5)
  await eventually('the watch goes on with it', () => driven.exits.length === 1)
  clearInterval(passing)
  valid = 'Bearer third'
  await t.rejects(driven.runtime.create(specOf('other'), quiet), { code: 'kubernetes.unauthorized' }, 'nothing was renewed')
  renew('third')
  await t.rejects(driven.runtime.create(specOf('other'), quiet), { code: 'kubernetes.unauthorized' }, 'it was looked at a moment ago')
  await clock.advance(5_000)
  await driven.runtime.create(specOf('other'), quiet)
  writeFileSync(cluster.kubeconfig, text.replace('first', 'fourth').replace(cluster.url, 'http://127.0.0.1:1'))
  valid = 'Bearer fourth'
  await clock.advance(5_000)
  await t.rejects(driven.runtime.create(specOf('third'), quiet), { code: 'kubernetes.unauthorized' }, 'another server is another place')
})

t.test('an authority of the kubeconfig that was renewed is taken by the request that does not trust the server', async t => {
  const [first, second] = [selfSigned('127.0.0.1'), selfSigned('127.0.0.1')]
  const server = createServer(first, (_request, response) => response.setHeader('content-type', 'application/json').end('{"gitVersion":"v1.37.0"}'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const kubeconfig = join(t.testdir(), 'kubeconfig')
  const write = ({ cert }: { cert: string }): void => writeFileSync(kubeconfig, JSON.stringify({
    'current-context': 'c',
    'clusters': [{ name: 'c', cluster: {
      'server': `https://127.0.0.1:${(server.address() as AddressInfo).port}`, 'tls-server-name': '127.0.0.1', 'certificate-authority-data': Buffer.from(cert).toString('base64')
    } }],
    'users': [{ name: 'u', user: { token: 'x' } }],
    'contexts': [{ name: 'c', context: { cluster: 'c', user: 'u' } }]
  }))
  write(second)
  const { kubernetes: settings } = clusterSettings.schema.parse({ kubernetes: { kubeconfig } })
  const read = (): ReturnType<typeof clusterAccess> => clusterAccess(settings, {})
  const clock = new FakeClock()
  const api = new ClusterApi(await read(), clock, {}, read)
  t.teardown(() => api.close())
  const untrusted = { code: 'kubernetes.untrusted', heals: true }
  await t.rejects(api.json({ path: '/version' }), untrusted)
  write(first)
  await clock.advance(5_000)
  const renewed = await api.json({ path: '/version' }).then(() => 'trusted', (error: { message: string }) => error.message)
  // whether its name fits is another matter, which comes after the trust
  t.notMatch(renewed, /SELF_SIGNED|UNABLE_TO_VERIFY/)
})

t.test('a watch from which nothing comes is opened anew where it was, and one that says something is not', async t => {
  const bodies: PassThrough[] = []
  const closing = new AbortController()
  const versions: Array<string | undefined> = []
  const api = {
    json: () => Promise.resolve({ metadata: { resourceVersion: '7' }, items: [] }),
    stream: ({ query, signal }: { readonly query?: Readonly<Record<string, string>>, readonly signal: AbortSignal }) => {
      const body = new PassThrough()
      signal.addEventListener('abort', () => body.destroy(signal.reason as Error))
      versions.push(query?.resourceVersion)
      bodies.push(body)
      return Promise.resolve(body)
    }
  }
  const nothing = (): void => {}
  const watching = watchList({
    api: api as never, clock: realClock, log: recordingLogger(), path: '/pods', query: {}, listing: nothing, listed: nothing,
    changed: nothing, gone: nothing, signal: closing.signal, silentMs: 500
  })
  await eventually('it watches', () => bodies.length === 1)
  const bookmark = (version: string): string => `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: version } } })}\n`
  let said = 0
  const speaking = setInterval(() => {
    bodies[0]!.write(bookmark('8'))
    said++
  }, 50)
  await eventually('it was told for longer than it may be silent', () => said > 15)
  t.equal(bodies.length, 1, 'bookmarks are enough')
  clearInterval(speaking)
  await eventually('it is opened anew', () => bodies.length === 2)
  t.strictSame(versions, ['7', '8'])
  closing.abort()
  await watching
  await settle()
})
