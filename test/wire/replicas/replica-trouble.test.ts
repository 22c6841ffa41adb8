import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LABEL_GENERATION } from '../../../kernel/contract/index.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { until } from '../wire-gateway.js'
import { replicaGateway, type ReplicaGateway } from './replica-gateway.js'

/** Lets each of them answer once it is at an engine. */
async function finishAll (gateway: ReplicaGateway, users: readonly string[], places: readonly number[]): Promise<void> {
  for (const user of users) {
    await until(() => places.some(index => gateway.asked(index).includes(user)), `${user} is at an engine`)
    gateway.finish(user)
  }
}

t.test('a number that goes up, down and up again under requests costs none of them, and leaves no replica behind', async t => {
  const gateway = await replicaGateway(t, 'workers = 1\nscale_up_wait_s = 0\nidle_timeout_s = 0')
  const users = Array.from({ length: 6 }, (_, i) => `u${i}`)
  const answers = users.map(user => gateway.ask(user))
  for (const most of [4, 1, 4, null, 4]) await gateway.slots.update('agent', { max_replicas: most })
  await finishAll(gateway, users, [1, 2, 3, 4])
  t.strictSame(await Promise.all(answers), users)
  const burst = ['a', 'b', 'c', 'd'].map(user => gateway.ask(user))
  await until(() => [1, 2, 3, 4].every(index => ['a', 'b', 'c', 'd'].some(user => gateway.asked(index).includes(user))), 'all four work')
  await finishAll(gateway, ['a', 'b', 'c', 'd'], [1, 2, 3, 4])
  t.strictSame(await Promise.all(burst), ['a', 'b', 'c', 'd'])
  await gateway.slots.update('agent', { max_replicas: null })
  await until(() => gateway.runtime.running === 1, 'one is left')
})

t.test('a file with numbers that cannot be leaves the slot as it runs, and says what is wrong', async t => {
  const gateway = await replicaGateway(t, 'replicas = 2\nworkers = 1')
  await gateway.slots.load('agent')
  const path = join(gateway.home, 'etc/svc/slots/agent.toml')
  const good = await readFile(path, 'utf8')
  for (const [line, word] of [
    ['replicas = -1', /replicas/], ['replicas = 1e9', /replicas/], ['replicas = 2.5', /replicas/], ['replicas = "2"', /replicas/],
    ['replicas = 2\nscale_up_wait_s = nan', /scale_up_wait_s/], ['replicas = 2\nmax_replicas = 0', /max_replicas/]
  ] as const) {
    await writeFile(path, good.replace('replicas = 2', line))
    await gateway.gateway.kernel().config.reload().catch(() => undefined)
    const { diagnostics } = gateway.gateway.kernel().config.snapshot
    t.ok(diagnostics.some(({ path: key, message }) => word.test(`${key} ${message}`)), `${line}: ${JSON.stringify(diagnostics)}`)
    t.equal(gateway.runtime.running, 2, 'the engines run on')
  }
  await writeFile(path, good)
  await gateway.gateway.kernel().config.reload()
  await gateway.ready(2)
  const answers = ['a', 'b'].map(user => gateway.ask(user))
  await finishAll(gateway, ['a', 'b'], [1, 2])
  t.strictSame(await Promise.all(answers), ['a', 'b'])
  t.equal(gateway.runtime.started.length, 2, 'none was started anew')
})

/** How long after the first try each further one comes at the earliest: distances of 0, 5, 10, 20, 40, 80, 160 and 300 s. */
const EARLIEST_S = [0, 0, 5, 15, 35, 75, 155, 315, 615]

t.test('a replica that never comes up is tried at growing distances while the others answer, and its row says why', async t => {
  const clock = new FakeClock()
  const launches = new Map<string | undefined, number>()
  const gateway = await replicaGateway(t, 'replicas = 3\nmin_replicas = 3\nworkers = 1\nidle_timeout_s = 0', {
    clock,
    onStart: ({ slot, spec: { labels } }) => {
      if (slot !== 'agent.2') return
      // one that lost its port to a test beside this one is run again on another, and is the same launch
      const launch = labels[LABEL_GENERATION]
      if (!launches.has(launch)) launches.set(launch, clock.monotonic())
      throw new Error('no memory left')
    }
  })
  await gateway.slots.load('agent')
  for (let i = 0; i < 40; i++) {
    await clock.advance(20_000)
    clock.setWall(clock.now() + (i % 2 === 0 ? 1 : -1) * 86_400_000 * i)
  }
  await until(() => gateway.states()[1] === 'error', 'the last one is over')
  // a try takes files and sockets, which the clock does not wait for: it may be late, and never early
  const tries = [...launches.values()]
  const after = tries.map(at => Math.round((at - tries[0]!) / 1_000))
  t.ok(after.length >= 4 && after.length <= EARLIEST_S.length, `${after.length} tries in 800 s`)
  t.ok(after.every((s, i) => s >= EARLIEST_S[i]!), `whatever the wall clock does: after ${after.join(', ')} s`)
  t.strictSame(gateway.states(), ['idle', 'error', 'idle'])
  t.match(gateway.status().replicas![1]!.error, /replica 2\): no memory left/)
  const answers = ['a', 'b', 'c'].map(user => gateway.ask(user))
  await finishAll(gateway, ['a', 'b', 'c'], [1, 3])
  t.strictSame(await Promise.all(answers), ['a', 'b', 'c'])
})

t.test('a replica that freezes costs the requests that it has, and the others answer the rest', async t => {
  const clock = new FakeClock()
  const gateway = await replicaGateway(t, 'replicas = 2\nworkers = 1\nidle_timeout_s = 0', { clock, svc: 'unresponsive_s = 60\n' })
  await gateway.slots.load('agent')
  const [frozen, other] = [gateway.ask('frozen'), gateway.ask('other')]
  await until(() => [1, 2].every(index => gateway.asked(index).length === 1), 'each has one')
  const stuck = gateway.asked(1)[0] === 'frozen' ? 1 : 2
  gateway.runtime.engine(stuck === 1 ? 'agent' : 'agent.2').health(500)
  gateway.finish('other')
  t.equal(await other, 'other')
  const users = Array.from({ length: 5 }, (_, i) => `u${i}`)
  const answers = users.map(user => gateway.ask(user))
  await finishAll(gateway, users, [3 - stuck])
  t.strictSame(await Promise.all(answers), users)
  for (let i = 0; i < 10; i++) await clock.advance(10_000)
  t.match(await frozen, /^50\d /, 'it is lost, and said so')
  await gateway.ready(2)
})
