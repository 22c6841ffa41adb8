import t from 'tap'
import { createFakeEngine, FakeClock, settle, type EngineScript } from '../../../../kernel/testing/index.js'
import { askRow } from '../../../../plugins/v1/batches/row-call.js'
import { freePort } from '../../../ports.js'
import { until } from '../../../wire/wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const answer = (status: number, headers: Readonly<Record<string, string>> = {}): EngineScript =>
  ({ status, headers: { ...JSON_TYPE, ...headers }, chunks: [`{"status":${status}}`] })

t.test('what passes by itself is asked again, and what stays is not', async t => {
  const gateway = await createFakeEngine()
  t.teardown(() => gateway.close())
  const clock = new FakeClock()
  const ask = (): ReturnType<typeof askRow> => askRow(clock, {
    baseUrl: gateway.origin, path: '/v1/embeddings', body: { model: 'm' }, requestId: 'batch_req_a_1', agent: 'pi'
  }, new AbortController().signal)
  const cases: ReadonlyArray<readonly [scripts: readonly EngineScript[], status: number, calls: number]> = [
    [[answer(200)], 200, 1],
    [[answer(503, { 'retry-after': '2' }), answer(200)], 200, 2],
    [[answer(429), answer(503), answer(503), answer(503), answer(503), answer(503), answer(200)], 200, 7],
    [[answer(500)], 500, 5],
    [[answer(503, { 'x-should-retry': 'false' })], 503, 1],
    [[answer(404)], 404, 1],
    [[{ dieAfter: 0, chunks: ['x'] }, answer(200)], 200, 2]
  ]
  for (const [scripts, status, calls] of cases) {
    gateway.forget()
    const left = [...scripts]
    gateway.answer(() => left.length > 1 ? left.shift()! : left[0]!)
    let ended: Awaited<ReturnType<typeof askRow>> | null = null
    void ask().then(row => { ended = row })
    for (let n = 1; n <= calls; n++) {
      await until(() => gateway.requests.length >= n && gateway.active === 0, `call ${n}`)
      await until(() => ended !== null || clock.pending > 0, 'it waits, or is over')
      if (n < calls) await clock.advance(60_000)
    }
    await until(() => ended !== null, 'it is over')
    t.match(ended, { status, body: { status } }, `${status} after ${calls}`)
    t.equal(gateway.requests.length, calls)
  }
  t.match(gateway.requests[0]!.headers, { 'x-svc-priority': 'low', 'x-svc-agent': 'pi', 'x-request-id': 'batch_req_a_1' })
  await settle()
  t.equal(clock.pending, 0)
})

t.test('a gateway that takes no connections while it stops or starts costs a row none of its tries', async t => {
  const port = await freePort()
  const clock = new FakeClock()
  const row = { baseUrl: `http://127.0.0.1:${port}`, path: '/v1/embeddings', body: {}, requestId: 'batch_req_a_1', agent: null }
  let isOver = false
  const over = (): void => { isOver = true }
  const waits = async (): Promise<void> => {
    await until(() => isOver || clock.pending > 0, 'it waits')
    t.notOk(isOver)
  }
  const left = new AbortController()
  const leaving = askRow(clock, row, left.signal)
  leaving.then(over, over)
  for (let n = 0; n < 12; n++) {
    await waits()
    await clock.advance(60_000)
  }
  await waits()
  left.abort(new Error('the gateway stops'))
  await t.rejects(leaving, { message: 'the gateway stops' })

  isOver = false
  const answered = askRow(clock, row, new AbortController().signal)
  answered.then(over, over)
  await waits()
  const gateway = await createFakeEngine(port)
  t.teardown(() => gateway.close())
  gateway.answer(() => answer(200))
  await clock.advance(60_000)
  t.match(await answered, { status: 200 })
})
