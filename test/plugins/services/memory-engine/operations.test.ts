import t from 'tap'
import { parentStatus, PermanentFailure, retryAfter, retryPauseMs } from '../../../../plugins/services/memory-engine/operations/operation.js'
import { openEngine } from './support.js'

t.test('an unknown operation is answered as the server does: found nowhere when asked for, 404 when acted on', async t => {
  const { call } = openEngine(t)
  await call('PUT', 'b', {})
  const id = '5d8b8a04-fefb-4312-b6f8-04b65e09f014'
  t.match(await call('GET', `b/operations/${id}`), {
    status: 200,
    body: { operation_id: id, id, status: 'not_found', operation_type: null, task_type: null, child_operations: null }
  })
  for (const [method, path] of [['DELETE', ''], ['POST', '/retry'], ['DELETE', '/delete']] as const) {
    t.match(await call(method, `b/operations/${id}${path}`), {
      status: 404, body: { detail: `Operation ${id} not found for bank b` }
    })
  }
  t.match(await call('GET', 'b/operations/x'), { status: 400, body: { detail: /^Invalid operation_id/ } })
  t.same((await call('GET', 'b/operations')).body, { bank_id: 'b', total: 0, limit: 20, offset: 0, operations: [] })
  t.match(await call('GET', 'b/operations?limit=101'), { status: 422 })
  t.match(await call('GET', 'none/operations'), { status: 404 })
})

t.test('a failed try is repeated three times after growing pauses, and at once over where a repetition is of no use', async t => {
  t.same([0, 1, 2, 3].map(retryCount => retryAfter({ retryCount }, new Error('x'))), [1, 2, 3, null])
  t.equal(retryAfter({ retryCount: 0 }, new PermanentFailure('x')), null)
  t.same([1, 2, 3].map(retryPauseMs), [5_000, 30_000, 180_000])
})

t.test('a parent is what its children are', async t => {
  const cases = [
    [['pending', 'pending'], 'pending'], [['completed', 'pending'], 'processing'], [['processing', 'failed'], 'processing'],
    [['completed', 'failed'], 'failed'], [['completed', 'cancelled'], 'completed'], [
      ['cancelled', 'cancelled'], 'cancelled'
    ], [['completed'], 'completed']
  ] as const
  for (const [children, status] of cases) t.equal(parentStatus(children), status, children.join(' '))
})
