import t from 'tap'
import { LOW_WAITS_MS, WaitingLine, type InLine } from '../../../kernel/slots/schedule/waiting-line.js'

const worker = (since: number, low = false): InLine => ({ wants: 'worker', low, since })

t.test('normal requests go first, the low ones behind them, and each class in the order it came', async t => {
  const line = new WaitingLine<InLine>()
  t.equal(line.next(), null)
  const [title, person, tags, other] = [worker(0, true), worker(1), worker(2, true), worker(3)]
  const ready: InLine = { wants: 'ready', low: false, since: 0 }
  for (const waiter of [title, person, tags, other, ready]) line.add(waiter)
  t.strictSame(line.others(), [ready])
  t.equal(line.all().length, 5)
  const order: Array<InLine | null> = []
  for (let next = line.next(); next !== null; next = line.next()) {
    order.push(next)
    line.delete(next)
  }
  t.ok([person, other, title, tags].every((waiter, i) => order[i] === waiter), 'in this order')
  t.strictSame(line.all(), [ready], 'who wants no worker never gets one')
})

t.test('one of the low class counts for what the line needs from the moment on in which it is equal to the others', async t => {
  const line = new WaitingLine<InLine>()
  t.strictSame([line.countsSince(), line.uncounted(0)], [null, 0])
  const normal = worker(50_000)
  for (const waiter of [worker(1_000, true), worker(2_000, true), normal]) line.add(waiter)
  t.equal(line.countsSince(), 1_000 + LOW_WAITS_MS)
  t.strictSame([LOW_WAITS_MS, 1_000 + LOW_WAITS_MS].map(now => line.uncounted(now)), [2, 0])
  line.add(worker(10, false))
  line.delete(normal)
  t.equal(line.countsSince(), 10)
})

t.test('nobody starves: a low request goes before those that come half a minute after it', async t => {
  for (const [since, first] of [[LOW_WAITS_MS - 1, 'normal'], [LOW_WAITS_MS, 'low']] as const) {
    const line = new WaitingLine<InLine>()
    const [low, normal] = [worker(0, true), worker(since)]
    line.add(normal)
    line.add(low)
    t.equal(line.next(), first === 'low' ? low : normal, `${since} ms later`)
  }
})
