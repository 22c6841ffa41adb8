import { check, collect, eventually, get, quiet, within, type BenchCheck } from './runtime-bench.js'

/** What an engine says is read whole, and as fast as it is read. */
export const logChecks: readonly BenchCheck[] = [
  check('logs: the last lines, then what follows, until the engine ends', async (t, { runtime, run }) => {
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
    await within(120_000, 'follow ends with the engine', following)
    t.equal(lines[0], 'ready')
    t.ok(lines.every(line => line.length <= 16_384), 'no line is longer than the bound')
    t.equal(lines.slice(1).filter(line => line.startsWith('ü')).join(''), 'ü'.repeat(40_000), 'and nothing is lost by it')
    t.equal(lines.at(-1), 'last')
    t.same(await tail(1), ['last'], 'an ended engine still has its output')
    const after = collect(runtime.logs(id, { tail: 1, follow: true, signal: quiet }))
    t.same(await within(120_000, 'following an ended engine ends', after), ['last'])
  }),
  check('logs: a follower leaves by its signal, or by not reading on', async (t, { runtime, run }) => {
    const { id, address } = await run()
    const leave = new AbortController()
    const following = collect(runtime.logs(id, { tail: 5, follow: true, signal: leave.signal }))
    await get(address, '/say?text=hello')
    leave.abort()
    await within(120_000, 'follow ends with the signal', following)
    for await (const line of runtime.logs(id, { tail: 1, follow: true, signal: quiet })) {
      t.ok(line)
      break
    }
    t.equal((await runtime.inspect(id))?.state, 'running', 'the engine does not care')
    t.same(await collect(runtime.logs(id, { tail: 5, follow: true, signal: AbortSignal.abort() })), [])
  }),
  check('an engine that ends at once is told of too', async (t, { runtime, make, exits }) => {
    const id = await make({ env: { EXIT_CODE: '3', SAY: 'cannot load the model' } })
    await runtime.start(id, quiet)
    await eventually('its end is told', () => exits.length === 1)
    t.match(exits, [{ id, exitCode: 3 }])
    t.same(await collect(runtime.logs(id, { tail: 5, follow: true, signal: quiet })), ['cannot load the model'])
  })
]
