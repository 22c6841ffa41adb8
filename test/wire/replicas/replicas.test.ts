import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { FakeEngineRuntime } from '../../../kernel/testing/index.js'
import slotRoutes from '../../../plugins/api/slots/index.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'
import { replicaGateway } from './replica-gateway.js'

t.test('a slot of several engines divides its requests: the one with the fewest gets the next, the others stand in one line', async t => {
  const gateway = await replicaGateway(t, 'replicas = 3\nworkers = 2\nscale_up_wait_s = 3600')
  await gateway.slots.load('agent')
  t.strictSame(gateway.states(), ['ready', 'ready', 'ready'])
  const users = Array.from({ length: 8 }, (_, i) => `u${i}`)
  const answers: Array<Promise<string>> = []
  for (const user of users) {
    answers.push(gateway.ask(user))
    await until(() => gateway.status().inFlight + gateway.status().waiting === answers.length, `${user} has come`)
  }
  await until(() => [1, 2, 3].every(index => gateway.asked(index).length === 2), 'each works on two')
  t.match([1, 2, 3].map(index => gateway.asked(index)), [['u0', 'u3'], ['u1', 'u4'], ['u2', 'u5']])
  t.match(gateway.status(), { state: 'serving', inFlight: 6, waiting: 2, workers: 6 })
  gateway.finish('u4')
  await until(() => gateway.asked(2).length === 3, 'the first of the line goes where one is free')
  t.equal(gateway.asked(2)[2], 'u6')
  for (const user of users) {
    await until(() => [1, 2, 3].some(index => gateway.asked(index).includes(user)), `${user} is at an engine`)
    gateway.finish(user)
  }
  t.strictSame(await Promise.all(answers), users)
  t.match(gateway.status(), { state: 'ready', inFlight: 0, waiting: 0 })
  t.equal(new Set(gateway.status().replicas!.map(({ port }) => port)).size, 3, 'each has a port of its own')
})

t.test('engines get the GPUs of replica_gpus in turn, whatever sees to it that they see no other', async t => {
  const gpus = [0, 1].map(index => ({ vendor: 'nvidia', name: 'GeForce', index }))
  const given = { process: ['0', '1', '0'], container: ['nvidia.com/gpu=0', 'nvidia.com/gpu=1', 'nvidia.com/gpu=0'] } as const
  for (const form of ['process', 'container'] as const) {
    const runtime = new FakeEngineRuntime({ form })
    t.teardown(() => runtime.destroy())
    const gateway = await wireGateway(t, {
      runtime,
      deviceNodes: ['/dev/nvidia0', '/dev/nvidia1'],
      files: {
        'etc/svc/hardware.json': JSON.stringify({ probed_at: '2026-01-01T00:00:00Z', gpus }),
        'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "gpu-cuda"\nreplicas = 3\nreplica_gpus = [0, 1]\n[model]\ndefault = "fake-model"\n'
      }
    })
    await gateway.slots.load('agent')
    const seen = runtime.started.map(({ slot, spec: { env, form } }) =>
      [slot, form.kind === 'container' ? form.cdiDevices.join() : env.CUDA_VISIBLE_DEVICES] as const)
    t.strictSame(seen.toSorted().map(([slot]) => slot), ['agent', 'agent.2', 'agent.3'])
    t.strictSame(seen.toSorted().map(([, gpu]) => gpu), given[form])
  }
})

t.test('a replica that dies costs the requests that it had, and no other', async t => {
  const gateway = await replicaGateway(t, 'replicas = 2\nworkers = 4')
  await gateway.slots.load('agent')
  const answers = ['a', 'b', 'c', 'd'].map(user => gateway.ask(user))
  await until(() => gateway.status().inFlight === 4 && gateway.asked(2).length === 2 && gateway.asked(1).length === 2, 'all are at work')
  const lost = gateway.asked(2)
  await gateway.runtime.crash('agent.2')
  await until(() => gateway.status().inFlight === 2, 'two are left')
  for (const user of gateway.asked(1)) gateway.finish(user)
  const told = await Promise.all(answers)
  for (const [i, user] of ['a', 'b', 'c', 'd'].entries()) {
    if (lost.includes(user)) t.match(told[i], /^502 dispatch\./, user)
    else t.equal(told[i], user)
  }
  const next = gateway.ask('next')
  await until(() => gateway.asked(1).includes('next'), 'the other goes on')
  gateway.finish('next')
  t.equal(await next, 'next')
})

t.test('a cold slot is brought up by its first request; a line brings up more, and what is not needed goes again', async t => {
  const clock = new FakeClock()
  const gateway = await replicaGateway(t, 'max_replicas = 3\nworkers = 1\nscale_up_wait_s = 2\nscale_down_wait_s = 60\nidle_timeout_s = 600', { clock })
  const answers = ['a', 'b', 'c', 'd'].map(user => gateway.ask(user))
  await until(() => gateway.asked(1).length === 1, 'one is up')
  t.strictSame(gateway.states(), ['serving', 'offline', 'offline'])
  await until(() => gateway.status().waiting === 3, 'three wait')
  await clock.advance(2_000)
  await until(() => gateway.asked(2).length === 1 && gateway.asked(3).length === 1, 'three are up')
  t.equal(gateway.status().waiting, 1)
  for (const user of ['a', 'b', 'c', 'd']) {
    await until(() => [1, 2, 3].some(index => gateway.asked(index).includes(user)), `${user} is at an engine`)
    gateway.finish(user)
  }
  await Promise.all(answers)
  t.strictSame(gateway.states(), ['ready', 'ready', 'ready'])
  await clock.advance(30_000)
  t.strictSame(gateway.states(), ['ready', 'ready', 'ready'], 'not at once')
  for (let i = 0; i < 10; i++) await clock.advance(5_000)
  await gateway.ready(1)
  t.strictSame(gateway.states(), ['ready', 'offline', 'offline'])
  for (let i = 0; i < 30; i++) await clock.advance(20_000)
  await until(() => gateway.status().state === 'offline', 'and to zero, as any slot')
  const { events } = gateway.gateway.kernel().events.list({ type: 'slot.scale', limit: 100 })
  t.strictSame(events.map(({ data }) => `${data['replica']} ${data['what']}`),
    ['1 started', '2 started', '3 started', '3 stopped', '2 stopped', '1 stopped'])
})

t.test('one that goes gets no new request and ends what it has', async t => {
  const clock = new FakeClock()
  const gateway = await replicaGateway(t, 'max_replicas = 2\nworkers = 1\nscale_up_wait_s = 0\nscale_down_wait_s = 60\nidle_timeout_s = 0', { clock })
  const [first, second] = [gateway.ask('short'), gateway.ask('long')]
  await clock.advance(1)
  await until(() => gateway.asked(1).length === 1 && gateway.asked(2).length === 1, 'both work')
  const [short, long] = gateway.asked(1)[0] === 'short' ? [1, 2] : [2, 1]
  gateway.finish('short')
  t.equal(await first, 'short')
  for (let i = 0; i < 20; i++) await clock.advance(6_000)
  t.equal(gateway.status().replicas!.filter(({ state }) => state === 'serving').length, 1, 'the one that works is not cut off')
  t.equal(gateway.status().replicas![short - 1]!.state, 'offline')
  gateway.finish('long')
  t.equal(await second, 'long')
  t.equal(gateway.status().replicas![long - 1]!.state, 'ready')
})

t.test('a replica that cannot come up leaves the line to those that are up', async t => {
  const clock = new FakeClock()
  const gateway = await replicaGateway(t, 'max_replicas = 2\nworkers = 1\nscale_up_wait_s = 0', {
    clock, onStart: ({ slot }) => { if (slot === 'agent.2') throw new Error('no memory left') }
  })
  await gateway.slots.load('agent')
  const answers = ['a', 'b'].map(user => gateway.ask(user))
  await until(() => gateway.status().replicas![1]!.state === 'error', 'the second does not come up')
  t.match(gateway.status(), { state: 'serving', waiting: 1, replicas: [{ index: 1, error: null }, { index: 2, state: 'error', error: /no memory left/ }] })
  for (const at of [0, 1]) {
    await until(() => gateway.asked(1).length === at + 1, 'the first takes one after the other')
    gateway.finish(gateway.asked(1)[at]!)
  }
  t.strictSame(await Promise.all(answers), ['a', 'b'])
})

t.test('verbs are about the whole slot: a restart goes from one to the next while the other answers, an unload ends all', async t => {
  const gateway = await replicaGateway(t, 'replicas = 2\nworkers = 4')
  await gateway.slots.load('agent')
  const before = gateway.status().replicas!.map(({ engineId }) => engineId)
  let served = 0
  const isOver = gateway.slots.restart('agent').then(() => true)
  let over = false
  void isOver.then(() => { over = true })
  while (!over) {
    const user = `during ${served}`
    const answer = gateway.ask(user)
    await until(() => [1, 2].some(index => gateway.asked(index).includes(user)), 'one of them takes it')
    gateway.finish(user)
    t.equal(await answer, user)
    served++
  }
  t.ok(served > 0)
  t.ok(gateway.status().replicas!.every(({ engineId }, i) => engineId !== null && engineId !== before[i]), 'both are new')
  await gateway.slots.unload('agent')
  t.strictSame(gateway.states(), ['offline', 'offline'])
  t.strictSame([...await gateway.runtime.list({})].map(({ state }) => state).filter(state => state === 'running'), [])
})

t.test('the number changes with the file: more come when they are needed, and those beyond it end their requests and go', async t => {
  const gateway = await replicaGateway(t, 'replicas = 3\nworkers = 1')
  await gateway.slots.load('agent')
  const answers = ['a', 'b', 'c'].map(user => gateway.ask(user))
  await until(() => [1, 2, 3].every(index => gateway.asked(index).length === 1), 'all three work')
  const third = gateway.asked(3)[0]!
  await gateway.slots.update('agent', { replicas: 1, max_replicas: 2 })
  t.equal(gateway.status().replicas!.length, 2)
  gateway.finish(third)
  await until(() => gateway.runtime.running === 2, 'the third is gone')
  await gateway.slots.update('agent', { replicas: null, max_replicas: null })
  t.equal(gateway.status().replicas, undefined, 'one engine is a plain slot')
  for (const user of ['a', 'b', 'c'].filter(each => each !== third)) gateway.finish(user)
  t.strictSame(await Promise.all(answers), ['a', 'b', 'c'])
  await until(() => gateway.runtime.running === 1, 'the second is gone')
  t.equal(gateway.status().state, 'ready')
})

t.test('the next gateway finds each engine at its place, and removes what is beyond the most', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-test-replicas-'))
  const runtime = new FakeEngineRuntime()
  t.teardown(async () => {
    await runtime.destroy()
    await rm(home, { recursive: true, force: true })
  })
  const files = (keys: string): Record<string, string> => ({
    'etc/svc/svc.toml': '[slots]\nautostart = false\n',
    'etc/svc/slots/agent.toml': `type = "llm"\nprovider = "fake"\ndevice = "cpu"\n${keys}\n[model]\ndefault = "fake-model"\n`
  })
  const first = await wireGateway(t, { runtime, home, files: files('replicas = 3') })
  await first.slots.load('agent')
  const engines = (gateway: WireGateway): Array<string | null> => gateway.slots.status('agent').replicas!.map(({ engineId }) => engineId)
  const had = engines(first)
  await first.close()
  t.equal(runtime.running, 3)
  const second = await wireGateway(t, { runtime, home, files: files('replicas = 2') })
  await until(() => second.slots.status('agent').replicas!.every(({ state }) => state === 'ready'), 'they are adopted')
  t.strictSame(engines(second), had.slice(0, 2))
  t.ok(second.slots.status('agent').adopted)
  t.equal(runtime.running, 2, 'the third is gone')
  await second.close()
})

t.test('engines that a line brought up are kept by the next gateway', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-test-replicas-'))
  const runtime = new FakeEngineRuntime()
  t.teardown(async () => {
    await runtime.destroy()
    await rm(home, { recursive: true, force: true })
  })
  const first = await replicaGateway(t, 'replicas = 2\nworkers = 1', { home, runtime })
  await first.slots.load('agent')
  await first.close()
  const second = await replicaGateway(t, 'max_replicas = 2\nworkers = 1\nscale_down_wait_s = 3600', { home, runtime })
  await second.ready(2)
  t.equal(runtime.running, 2)
  await second.close()
})

t.test('least number: it is up with the gateway, and an engine that crashes is started again', async t => {
  const gateway = await replicaGateway(t, 'replicas = 2\nmin_replicas = 2\nworkers = 1\nidle_timeout_s = 1')
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  await gateway.ready(2)
  const before = gateway.status().replicas![1]!.engineId
  await gateway.runtime.crash('agent.2')
  await until(() => ![null, before].includes(gateway.status().replicas![1]!.engineId), 'another engine is there')
  await gateway.ready(2)
  await gateway.slots.unload('agent')
  t.strictSame(gateway.states(), ['offline', 'offline'], 'an operator unloads it all the same')
})

t.test('the slot is one row with its replicas, its log names them, and a replica has no address of its own', async t => {
  const gateway = await replicaGateway(t, 'replicas = 2\nmax_replicas = 3\nworkers = 1', { plugins: [slotRoutes] })
  await gateway.slots.load('agent')
  const rows = await (await gateway.fetch('/api/slots')).json() as Array<Record<string, unknown>>
  t.equal(rows.length, 1)
  t.match(rows[0], {
    name: 'agent', state: 'ready', replicas_ready: 2,
    replicas: [{ index: 1, state: 'ready', in_flight: 0, error: null }, { index: 2, state: 'ready' }, { index: 3, state: 'offline', port: null, engine: null }]
  })
  const log = await (await gateway.fetch('/api/slots/agent/logs?lines=5')).text()
  t.match(log, /\[1\] a line of the fake engine/)
  t.match(log, /\[2\] a line of the fake engine/)
  for (const path of ['/api/slots/agent.2', '/api/slots/agent.2/state']) t.equal((await gateway.fetch(path)).status, 404, path)
  t.equal(await gateway.ask('x', { model: 'agent.2' }), '404 model.not_found')
})
