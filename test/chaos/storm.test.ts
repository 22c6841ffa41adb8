import t from 'tap'
import { someOf } from '../whole.js'
import { storm } from './storm.js'
import { replay } from './replay.js'

t.setTimeout(600_000)

for (const seed of someOf([1, 2], 2)) {
  t.test(`a storm with seed ${seed}`, async t => {
    const report = await storm({ seed, requests: 800, seconds: 30, least: 500, clients: 24, calm: 10 })
    t.comment(JSON.stringify(report.outcomes), JSON.stringify(report.codes))
    t.strictSame(report.violations, [], 'every request has one outcome, and every outcome is one of those that are promised')
    t.strictSame(report.open, [], 'no request is open')
    t.strictSame(report.left, [], 'no engine, socket or timer is left')
    t.ok(report.requests >= 500 && report.steps > 20, `${report.requests} requests, ${report.steps} state changes`)
  })
}

t.test('the replay finds what does not fit', async t => {
  const event = (id: number, from: string, to: string) => ({
    id, ts: '', type: 'slot.state', severity: 'info' as const, source: 'slot:a', message: '', data: { slot: 'a', from, to }
  })
  t.strictSame(replay([event(1, 'offline', 'starting'), event(2, 'starting', 'warming'), event(3, 'warming', 'ready'), event(4, 'serving', 'idle')]), [])
  t.equal(replay([event(1, 'offline', 'serving')]).length, 1, 'no such transition')
  t.equal(replay([event(1, 'offline', 'starting'), event(2, 'ready', 'idle')]).length, 1, 'a step is missing')
})
