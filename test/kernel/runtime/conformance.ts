import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { request } from 'undici'
import type { EngineAddress } from '../../../kernel/contract/index.js'
import {
  LABEL_INSTANCE, LABEL_SLOT, type ContainerRuntime, type EngineExit, type EngineSpec
} from '../../../kernel/runtime/container-runtime.js'
import { freePort } from '../../ports.js'
import { collect, eventually, uniqueName, within } from './support.js'

export interface EngineWish {
  readonly name: string
  readonly port: number
  readonly ports?: Readonly<Record<string, number>>
  readonly labels: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  /** `host`: the host's network (containers). `everywhere`: reachable on all addresses. */
  readonly network?: 'host' | 'everywhere'
}

/** One driver under test. */
export interface ConformanceSubject {
  /** Opens the driver over the same engines each time, as a restarted gateway does. */
  readonly open: () => Promise<ContainerRuntime>
  /** A launch of tiny-engine.ts. */
  readonly spec: (wish: EngineWish) => EngineSpec
}

const quiet = new AbortController().signal // never aborts
const STOP_S = 5

/** What every driver must do, whatever runs the engines. */
export function runtimeConformance (t: Test, subject: ConformanceSubject): void {
  interface Bench {
    readonly runtime: ContainerRuntime
    readonly instance: string
    readonly exits: EngineExit[]
    make (wish?: Partial<EngineWish>): Promise<string>
    /** Makes, starts and waits until it answers. */
    run (wish?: Partial<EngineWish>): Promise<{ id: string, address: EngineAddress }>
    /** As a restarted gateway: closes the driver and opens it again. */
    reopen (): Promise<ContainerRuntime>
  }

  const bench = (title: string, body: (t: Test, bench: Bench) => Promise<void>): void => {
    t.test(title, async t => {
      const instance = uniqueName('test')
      let runtime = await subject.open()
      const exits: EngineExit[] = []
      runtime.onExit(instance, exit => { exits.push(exit) })
      t.teardown(async () => {
        for (const { id } of await runtime.list({ [LABEL_INSTANCE]: instance })) await runtime.remove(id)
        const left = await runtime.list({ [LABEL_INSTANCE]: instance })
        await runtime.close()
        if (left.length > 0) throw new Error(`left behind: ${left.map(engine => engine.name).join(', ')}`)
      })
      const make = async (wish: Partial<EngineWish> = {}): Promise<string> => runtime.create(subject.spec({
        name: uniqueName('svc-test'), port: await freePort(), env: {}, ...wish,
        labels: { [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'one', ...wish.labels }
      }), quiet)
      const run = async (wish?: Partial<EngineWish>): Promise<{ id: string, address: EngineAddress }> => {
        const id = await make(wish)
        await runtime.start(id, quiet)
        return { id, address: await answering(runtime, id) }
      }
      const reopen = async (): Promise<ContainerRuntime> => {
        await runtime.close()
        runtime = await subject.open()
        runtime.onExit(instance, exit => { exits.push(exit) })
        return runtime
      }
      await body(t, { get runtime () { return runtime }, instance, exits, make, run, reopen })
    })
  }

  bench('create starts nothing; start makes it answer where inspect says', async (t, { runtime, make }) => {
    const port = await freePort()
    const id = await make({ port, env: { COLOUR: 'blue and "green"', EMPTY: '' } })
    t.match(await runtime.inspect(id), { id, state: 'created', exitCode: null, address: null, startedAt: null })
    const before = Date.now()
    await runtime.start(id, quiet)
    const address = await answering(runtime, id)
    t.same(address, { host: '127.0.0.1', port }, 'published on loopback under the same number')
    const found = await runtime.inspect(id)
    t.match(found, { id, state: 'running', exitCode: null, oomKilled: false })
    t.ok(found!.startedAt! >= before - 2000 && found!.startedAt! <= Date.now() + 2000, 'startedAt is now, in milliseconds')
    t.match(await get(address, '/env'), { COLOUR: 'blue and "green"', EMPTY: '', PORT: String(port) }, 'environment arrives as given')
    await runtime.start(id, quiet)
    t.pass('starting what runs is no error')
  })

  for (const network of ['host', 'everywhere'] as const) {
    bench(`a further port is reached where inspect says, also by the next gateway: ${network}`, async (t, { instance, run, reopen }) => {
      const ports = { metrics: await freePort() }
      const { id, address } = await run({ ports, network })
      t.same(address.ports, ports)
      t.match(await get({ ...address, port: ports.metrics }, '/env'), { MORE: String(ports.metrics) })
      const [found] = await (await reopen()).list({ [LABEL_INSTANCE]: instance })
      t.same(found?.address, address)
      t.equal(found?.id, id)
    })
  }

  bench('a further port that something listens on is told before the start', async (t, { runtime, make }) => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    t.teardown(() => { server.close() })
    const spec = subject.spec({ name: uniqueName('svc-test'), port: await freePort(), ports: { metrics: port }, labels: {}, env: {} })
    await t.rejects(runtime.assertPortFree!(spec), { code: 'slot.port_conflict', details: { port } })
    const id = await make({ ports: { metrics: port } })
    await t.rejects(runtime.start(id, quiet), { code: 'slot.port_conflict' })
  })

  bench('list finds by all labels together', async (t, { runtime, instance, make }) => {
    const one = await make({ labels: { [LABEL_SLOT]: 'one' } })
    const two = await make({ labels: { [LABEL_SLOT]: 'two', extra: 'a=b, "c"' } })
    const ids = async (labels: Record<string, string>): Promise<string[]> => (await runtime.list(labels)).map(e => e.id).sort()
    t.same(await ids({ [LABEL_INSTANCE]: instance }), [one, two].sort())
    t.same(await ids({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'two' }), [two])
    t.same(await ids({ [LABEL_INSTANCE]: instance, extra: 'a=b, "c"' }), [two], 'values hold any character')
    t.same(await ids({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'three' }), [])
    const [found] = await runtime.list({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'two' })
    t.match(found, { labels: { [LABEL_SLOT]: 'two', extra: 'a=b, "c"' }, state: 'created', name: /^svc-test-/ })
  })

  bench('logs: the last lines, then what follows, until the engine ends', async (t, { runtime, run }) => {
    const { id, address } = await run({ env: { SAY: 'first\nzweite: grüße 🚀\nthird' } })
    const tail = (count: number): Promise<string[]> => collect(runtime.logs(id, { tail: count, follow: false, signal: quiet }))
    await eventually('four lines', async () => (await tail(10)).length === 4)
    t.same(await tail(10), ['first', 'zweite: grüße 🚀', 'third', 'ready'])
    t.same(await tail(2), ['third', 'ready'])
    t.same(await tail(0), [])
    const lines: string[] = []
    const following = (async () => {
      for await (const line of runtime.logs(id, { tail: 1, follow: true, signal: quiet })) lines.push(line)
    })()
    await eventually('the last line so far', () => lines.length > 0)
    await get(address, `/say?times=40000&text=${encodeURIComponent('ü')}`)
    await get(address, '/complain?text=trouble')
    // two pipes: only now is the order certain
    await eventually('stderr is there too', () => lines.includes('trouble'))
    await get(address, '/say?text=last')
    await get(address, '/exit?code=0')
    await within(20_000, 'follow ends with the engine', following)
    t.equal(lines[0], 'ready')
    t.ok(lines.every(line => line.length <= 16_384), 'no line is longer than the bound')
    t.equal(lines.slice(1).filter(line => line.startsWith('ü')).join(''), 'ü'.repeat(40_000), 'and nothing is lost by it')
    t.equal(lines.at(-1), 'last')
    t.same(await tail(1), ['last'], 'an ended engine still has its output')
    const after = collect(runtime.logs(id, { tail: 1, follow: true, signal: quiet }))
    t.same(await within(20_000, 'following an ended engine ends', after), ['last'])
  })

  bench('logs: a follower leaves by its signal, or by not reading on', async (t, { runtime, run }) => {
    const { id, address } = await run()
    const leave = new AbortController()
    const following = collect(runtime.logs(id, { tail: 5, follow: true, signal: leave.signal }))
    await get(address, '/say?text=hello')
    leave.abort()
    await within(20_000, 'follow ends with the signal', following)
    for await (const line of runtime.logs(id, { tail: 1, follow: true, signal: quiet })) {
      t.ok(line)
      break
    }
    t.equal((await runtime.inspect(id))?.state, 'running', 'the engine does not care')
    t.same(await collect(runtime.logs(id, { tail: 5, follow: true, signal: AbortSignal.abort() })), [])
  })

  bench('stop asks first, and waits for the end', async (t, { runtime, run, exits }) => {
    const { id } = await run()
    const start = performance.now()
    await runtime.stop(id, 20)
    t.ok(performance.now() - start < 15_000, 'an engine that obeys is not waited for')
    t.match(await runtime.inspect(id), { state: 'exited', exitCode: 0, address: null })
    t.equal((await collect(runtime.logs(id, { tail: 1, follow: false, signal: quiet })))[0], 'asked to stop')
    await eventually('its end is told', () => exits.length === 1)
    t.match(exits, [{ id, exitCode: 0, labels: { [LABEL_SLOT]: 'one' } }])
    await runtime.stop(id, STOP_S)
    t.pass('stopping what has ended is no error')
  })

  bench('stop kills an engine that does not obey', async (t, { runtime, run, exits }) => {
    const { id, address } = await run({ env: { STUBBORN: '1' } })
    const start = performance.now()
    await runtime.stop(id, 1)
    t.ok(performance.now() - start >= 900, 'not before its time')
    t.match(await runtime.inspect(id), { state: 'exited', exitCode: 137 })
    await t.rejects(get(address, '/env'), 'and the port is closed when stop resolves')
    await eventually('its end is told', () => exits.length === 1)
  })

  bench('a crash is told once, with its code', async (t, { runtime, run, exits, instance }) => {
    const silenced: EngineExit[] = []
    const unsubscribe = runtime.onExit(instance, exit => { silenced.push(exit) })
    const elsewhere: EngineExit[] = []
    runtime.onExit(uniqueName('other'), exit => { elsewhere.push(exit) })
    runtime.onExit(instance, () => { throw new Error('a listener that fails') })
    const { id, address } = await run()
    unsubscribe()
    await get(address, '/exit?code=7')
    await eventually('its end is told', () => exits.length === 1)
    t.match(exits, [{ id, exitCode: 7 }])
    t.match(await runtime.inspect(id), { state: 'exited', exitCode: 7 })
    await runtime.remove(id)
    const short = await run()
    await runtime.remove(short.id)
    await eventually('the end of the next is told', () => exits.length > 1)
    t.same(exits.map(exit => exit.id), [id, short.id], 'each once, also when it is removed while it runs')
    t.same([silenced, elsewhere], [[], []], 'and only to those who listen for it')
  })

  bench('an engine that ends at once is told of too', async (t, { runtime, make, exits }) => {
    const id = await make({ env: { EXIT_CODE: '3', SAY: 'cannot load the model' } })
    await runtime.start(id, quiet)
    await eventually('its end is told', () => exits.length === 1)
    t.match(exits, [{ id, exitCode: 3 }])
    t.same(await collect(runtime.logs(id, { tail: 5, follow: true, signal: quiet })), ['cannot load the model'])
  })

  bench('remove is thorough, patient and idempotent', async (t, { runtime, run, make }) => {
    const { id, address } = await run({ env: { STUBBORN: '1' } })
    await within(30_000, 'all of them', Promise.all([
      runtime.stop(id, 10), runtime.remove(id), runtime.stop(id, STOP_S), runtime.remove(id)
    ]))
    t.equal(await runtime.inspect(id), null)
    await t.rejects(get(address, '/env'))
    await runtime.remove(id)
    await runtime.stop(id, STOP_S)
    const unused = await make()
    await runtime.stop(unused, STOP_S)
    await runtime.remove(unused)
    t.equal(await runtime.inspect(unused), null, 'one that never ran goes as well')
  })

  bench('a port that is taken is named', async (t, { runtime, make, run }) => {
    const port = await freePort()
    const squatter = createServer().listen(port, '127.0.0.1')
    await once(squatter, 'listening')
    const id = await make({ port })
    await t.rejects(runtime.start(id, quiet), conflict(port))
    squatter.close()
    await once(squatter, 'close')
    await runtime.start(id, quiet)
    t.ok(await answering(runtime, id), 'and once it is free the same engine starts')
    const rival = await make({ port })
    await t.rejects(runtime.start(rival, quiet), conflict(port), 'by an engine of ours just as well')
    await runtime.remove(id)
    await runtime.remove(rival)
    const next = await run({ port })
    t.ok(next.address, 'a removed engine has let go of its port')
  })

  bench('ids that nobody has', async (t, { runtime }) => {
    for (const id of ['0'.repeat(64), 'proc-000000000000000000000000', '../../etc']) {
      t.equal(await runtime.inspect(id), null)
      await runtime.stop(id, STOP_S)
      await runtime.remove(id)
      await t.rejects(runtime.start(id, quiet), { code: 'runtime.not_found' })
      await t.rejects(collect(runtime.logs(id, { tail: 1, follow: true, signal: quiet })), { code: 'runtime.not_found' })
    }
  })

  bench('signals that are aborted', async (t, { runtime, instance, make }) => {
    const reason = new Error('changed my mind')
    const aborted = AbortSignal.abort(reason)
    const wish = { name: uniqueName('svc-test'), port: await freePort(), env: {}, labels: { [LABEL_INSTANCE]: instance } }
    await t.rejects(runtime.create(subject.spec(wish), aborted), reason)
    const late = new AbortController()
    const creating = runtime.create(subject.spec(wish), late.signal)
    late.abort(reason)
    await creating.catch((error: unknown) => t.equal(error, reason))
    const id = await make()
    await t.rejects(runtime.start(id, aborted), reason)
    t.equal((await runtime.inspect(id))?.state, 'created', 'not started')
  })

  bench('an engine on all addresses is reached on this host', async (t, { run }) => {
    const port = await freePort()
    const { address } = await run({ port, network: 'everywhere' })
    t.same(address, { host: '127.0.0.1', port })
  })

  bench('the next gateway finds the engine and hears of its end', async (t, { run, reopen, exits, instance }) => {
    const port = await freePort()
    const first = await run({ port, env: { SAY: 'from the first life' } })
    const second = await run()
    const runtime = await reopen()
    const found = await runtime.list({ [LABEL_INSTANCE]: instance })
    t.same(found.map(engine => engine.id).sort(), [first.id, second.id].sort())
    const mine = found.find(engine => engine.id === first.id)
    t.match(mine, { state: 'running', address: { host: '127.0.0.1', port }, labels: { [LABEL_SLOT]: 'one' } })
    await get(mine!.address!, '/say?text=adopted')
    await eventually('its output goes on', async () =>
      (await collect(runtime.logs(first.id, { tail: 9, follow: false, signal: quiet }))).includes('adopted'))
    t.equal((await collect(runtime.logs(first.id, { tail: 9, follow: false, signal: quiet })))[0], 'from the first life')
    await get(mine!.address!, '/exit?code=5').catch(() => undefined)
    await eventually('its end is told', () => exits.length === 1)
    t.equal(exits[0]?.id, first.id)
    t.ok([5, null].includes(exits[0]!.exitCode), 'with its code where that can be known')
    t.equal((await runtime.inspect(first.id))?.state, 'exited')
    await runtime.stop(second.id, STOP_S)
    await eventually('the end of the other is told', () => exits.length === 2)
    t.equal(exits[1]?.id, second.id)
  })

  bench('close is idempotent and leaves engines alone', async (t, { runtime, run, reopen }) => {
    const { id, address } = await run()
    const following = collect(runtime.logs(id, { tail: 1, follow: true, signal: quiet }))
    const next = await reopen()
    await runtime.close()
    await within(20_000, 'followers end', following)
    t.ok(await get(address, '/env'))
    t.equal((await next.inspect(id))?.state, 'running')
  })
}

async function answering (runtime: ContainerRuntime, id: string): Promise<EngineAddress> {
  return eventually('the engine answers', async () => {
    const address = (await runtime.inspect(id))?.address
    if (address === undefined || address === null) throw new Error('it has no address')
    await get(address, '/env')
    return address
  }, 20_000)
}

export async function get (address: EngineAddress, path: string): Promise<unknown> {
  // not the fetch of Node 20: when docker-proxy closes a fresh connection, that waits for ever (undici 6.24)
  const { body } = await request(`http://${address.host}:${address.port}${path}`, { signal: AbortSignal.timeout(10_000), reset: true })
  return body.json()
}

function conflict (port: number): { code: string, message: RegExp, details: object } {
  return { code: 'slot.port_conflict', message: new RegExp(String(port)), details: { port } }
}
