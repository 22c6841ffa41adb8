import t from 'tap'
import { Throughput } from '../../../kernel/slots/life/engine/throughput.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

t.test('throughput is the mean of the last ten seconds, and totals stay', async t => {
  const clock = new FakeClock(5_000_000)
  const meter = new Throughput(clock)
  t.strictSame(meter.read(), { tokensPerSec: 0, ttftMs: null, requestCount: 0, tokenCount: 0 })
  meter.request()
  meter.firstToken(120)
  for (let second = 0; second < 10; second++) {
    meter.addTokens(10)
    await clock.advance(second < 9 ? 1_000 : 0)
  }
  t.strictSame(meter.read(), { tokensPerSec: 10, ttftMs: 120, requestCount: 1, tokenCount: 100 })
  await clock.advance(5_000)
  t.equal(meter.read().tokensPerSec, 5, 'the older half has left the window')
  meter.addTokens(30)
  t.equal(meter.read().tokensPerSec, 8)
  await clock.advance(3_600_000)
  t.equal(meter.read().tokensPerSec, 0)
  t.equal(meter.read().tokenCount, 130, 'totals stay')
})
