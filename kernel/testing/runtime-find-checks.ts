import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { LABEL_INSTANCE, LABEL_SLOT } from '../contract/provider/engine-runtime.js'
import { STOP_S, answering, check, collect, eventually, get, quiet, uniqueName, within, type BenchCheck } from './runtime-bench.js'

/** Ports, labels and ids: engines are found where they are, also by the next gateway. */
export const findChecks: readonly BenchCheck[] = [
  ...(['host', 'everywhere'] as const).map(network => check(`a further port is reached where inspect says, also by the next gateway: ${network}`, async (t, { instance, run, reopen, freePort }) => {
    const ports = { metrics: await freePort() }
    const { id, address } = await run({ ports, network })
    t.same(address.ports, ports)
    t.match(await get({ ...address, port: ports.metrics }, '/env'), { MORE: String(ports.metrics) })
    const [found] = await (await reopen()).list({ [LABEL_INSTANCE]: instance })
    t.same(found?.address, address)
    t.equal(found?.id, id)
  })),
  check('a further port that something listens on is told before the start', async (t, { runtime, make, freePort, spec }) => {
    const server = createServer()
    server.unref()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const taken = spec({ name: uniqueName('svc-test'), port: await freePort(), ports: { metrics: port }, labels: {}, env: {} })
    // a driver that cannot know beforehand has none, and is told by the start
    if (runtime.assertPortFree !== undefined) await t.rejects(runtime.assertPortFree(taken), { code: 'slot.port_conflict', details: { port } })
    const id = await make({ ports: { metrics: port } })
    await t.rejects(runtime.start(id, quiet), { code: 'slot.port_conflict' })
    server.close()
  }),
  check('list finds by all labels together', async (t, { runtime, instance, make }) => {
    const one = await make({ labels: { [LABEL_SLOT]: 'one' } })
    const two = await make({ labels: { [LABEL_SLOT]: 'two', extra: 'a=b, "c"' } })
    const ids = async (labels: Record<string, string>): Promise<string[]> => (await runtime.list(labels)).map(e => e.id).sort()
    t.same(await ids({ [LABEL_INSTANCE]: instance }), [one, two].sort())
    t.same(await ids({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'two' }), [two])
    t.same(await ids({ [LABEL_INSTANCE]: instance, extra: 'a=b, "c"' }), [two], 'values hold any character')
    t.same(await ids({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'three' }), [])
    const [found] = await runtime.list({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'two' })
    t.match(found, { labels: { [LABEL_SLOT]: 'two', extra: 'a=b, "c"' }, state: 'created', name: /^svc-test-/ })
  }),
  check('a port that is taken is named', async (t, { runtime, make, run, freePort }) => {
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
  }),
  check('ids that do not exist', async (t, { runtime }) => {
    for (const id of ['0'.repeat(64), 'proc-000000000000000000000000', '../../etc']) {
      t.equal(await runtime.inspect(id), null)
      await runtime.stop(id, STOP_S)
      await runtime.remove(id)
      await t.rejects(runtime.start(id, quiet), { code: 'runtime.not_found' })
      await t.rejects(collect(runtime.logs(id, { tail: 1, follow: true, signal: quiet })), { code: 'runtime.not_found' })
    }
  }),
  check('signals that are aborted', async (t, { runtime, instance, make, freePort, spec }) => {
    const reason = new Error('changed my mind')
    const aborted = AbortSignal.abort(reason)
    const wish = { name: uniqueName('svc-test'), port: await freePort(), env: {}, labels: { [LABEL_INSTANCE]: instance } }
    await t.rejects(runtime.create(spec(wish), aborted), reason)
    const late = new AbortController()
    const creating = runtime.create(spec(wish), late.signal)
    late.abort(reason)
    await creating.catch((error: unknown) => t.equal(error, reason))
    const id = await make()
    await t.rejects(runtime.start(id, aborted), reason)
    t.equal((await runtime.inspect(id))?.state, 'created', 'not started')
  }),
  check('the next gateway finds the engine and hears of its end', async (t, { run, reopen, exits, instance, freePort }) => {
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
  }),
  check('close is idempotent and leaves engines alone', async (t, { runtime, run, reopen }) => {
    const { id, address } = await run()
    const following = collect(runtime.logs(id, { tail: 1, follow: true, signal: quiet }))
    const next = await reopen()
    await runtime.close()
    await within(120_000, 'followers end', following)
    t.ok(await get(address, '/env'))
    t.equal((await next.inspect(id))?.state, 'running')
  })
]

function conflict (port: number): { code: string, message: RegExp, details: object } {
  return { code: 'slot.port_conflict', message: new RegExp(String(port)), details: { port } }
}
