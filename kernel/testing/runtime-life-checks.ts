import { LABEL_SLOT } from '../contract/provider/engine-runtime.js'
import type { EngineExit } from '../contract/provider/engine-runtime.js'
import { STOP_S, answering, check, collect, eventually, get, quiet, uniqueName, within, type BenchCheck } from './runtime-bench.js'

/** From its creation to its end, an engine does what it is told. */
export const lifeChecks: readonly BenchCheck[] = [
  check('create starts nothing; start makes it answer where inspect says', async (t, { runtime, make, freePort }) => {
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
  }),
  check('stop asks first, and waits for the end', async (t, { runtime, run, exits }) => {
    const { id } = await run()
    const start = performance.now()
    await runtime.stop(id, 120)
    t.ok(performance.now() - start < 110_000, 'an engine that obeys is not waited for')
    t.match(await runtime.inspect(id), { state: 'exited', exitCode: 0, address: null })
    t.equal((await collect(runtime.logs(id, { tail: 1, follow: false, signal: quiet })))[0], 'asked to stop')
    await eventually('its end is told', () => exits.length === 1)
    t.match(exits, [{ id, exitCode: 0, labels: { [LABEL_SLOT]: 'one' } }])
    await runtime.stop(id, STOP_S)
  }),
  check('stop kills an engine that does not obey', async (t, { runtime, run, exits }) => {
    const { id, address } = await run({ env: { STUBBORN: '1' } })
    const start = performance.now()
    await runtime.stop(id, 1)
    t.ok(performance.now() - start >= 900, 'not before its time')
    t.match(await runtime.inspect(id), { state: 'exited', exitCode: 137 })
    await t.rejects(get(address, '/env'), undefined, 'and the port is closed when stop resolves')
    await eventually('its end is told', () => exits.length === 1)
  }),
  check('a crash is told once, with its code', async (t, { runtime, run, exits, instance }) => {
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
  }),
  check('remove is thorough, patient and idempotent', async (t, { runtime, run, make }) => {
    const { id, address } = await run({ env: { STUBBORN: '1' } })
    await within(120_000, 'all of them', Promise.all([
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
  }),
  check('an engine on all addresses is reached on this host', async (t, { run, freePort }) => {
    const port = await freePort()
    const { address } = await run({ port, network: 'everywhere' })
    t.same(address, { host: '127.0.0.1', port })
  })
]
