import t from 'tap'
import { killed, spread } from './killed/series.js'
import { writes } from './killed/writes.js'

t.test('killed between any two steps of a write, nothing that was answered is lost and no text is without its index row', async t => {
  await killed(t, writes, spread(12))
})
