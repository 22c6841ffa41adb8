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

t.test('nobody starves: a low request goes before those that come half a minute after it', async t => {
  for (const [since, first] of [[LOW_WAITS_MS - 1, 'normal'], [LOW_WAITS_MS, 'low']] as const) {
    const line = new WaitingLine<InLine>()
    const [low, normal] = [worker(0, true), worker(since)]
    line.add(normal)
    line.add(low)
    t.equal(line.next(), first === 'low' ? low : normal, `${since} ms later`)
  }
})
