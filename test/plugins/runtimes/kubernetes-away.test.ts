import t from 'tap'
import { FakeClock } from '../../../kernel/testing/index.js'
import { eventually } from '../../kernel/runtime/support.js'
import { clusterOf, drive, HOME, started } from './driven-cluster.js'

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
