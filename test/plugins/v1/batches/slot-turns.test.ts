import t from 'tap'
import type { RequestView, SlotStatus } from '../../../../kernel/contract/index.js'
import { SlotTurns } from '../../../../plugins/v1/batches/slot-turns.js'
import { FakeClock } from '../../../../kernel/testing/index.js'

t.test('a row that has left its slot, and is not read to its end yet, makes no room for another beside a client', async t => {
  const clock = new FakeClock()
  let [inFlight, requests] = [0, [] as string[]]
  const turns = new SlotTurns({
    clock,
    dispatch: { target: () => ({ slot: 'agent' }) as never },
    requests: { list: () => requests.map(id => ({ id, slot: 'agent' }) as RequestView) },
    slots: { status: () => ({ inFlight, waiting: 0, workers: 4, address: { host: '127.0.0.1', port: 1 } }) as SlotStatus }
  })
  const { signal } = new AbortController()
  const take = (id: string): Promise<() => void> => turns.take(id, 'agent', ['chat'], Buffer.from('{}'), signal)
  const over = await take('row 1')
  ;[inFlight, requests] = [1, ['row 1']]
  const second = await take('row 2')
  t.type(second, 'function', 'rows go out together while nobody else is there')
  second()
  ;[inFlight, requests] = [1, ['a person']]
  let isOut = false
  const third = take('row 3').then(() => { isOut = true })
  await clock.advance(1_000)
  t.equal(isOut, false, 'what the slot is busy with is the client')
  ;[inFlight, requests] = [0, []]
  await clock.advance(1_000)
  await third
  over()
})
