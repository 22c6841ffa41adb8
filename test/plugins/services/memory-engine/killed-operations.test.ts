import t from 'tap'
import { operations } from './killed/operations.js'
import { killed, spread } from './killed/series.js'

t.test('an engine that is killed at any step of its background work loses nothing that it acknowledged and does nothing twice', async t => {
  await killed(t, operations, spread(6))
})
