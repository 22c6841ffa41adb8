import t from 'tap'
import { parentStatus, PermanentFailure, retryAfter, retryPauseMs } from '../../../../plugins/services/memory-engine/operations/operation.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { openWithChat, over } from './models-support.js'
import { noModels, openEngine } from './support.js'

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

t.test('an asynchronous retain is a parent with children, survives a repetition, and leaves no text in its rows', async t => {
  const { call } = openEngine(t)
  const id = '515f785b-fb8e-410c-82a8-c9768aa58cc4'
  const items = [{ content: 'Dave likes tea.', document_id: 'd' }]
  const { body: first } = await call('POST', 'b/memories', { items, async: true, operation_id: id })
  t.match(first, { success: true, items_count: 1, async: true, operation_id: id, operation_ids: null, usage: null })
  t.equal((await call('POST', 'b/memories', { items, async: true, operation_id: id })).body.operation_id, id, 'a repetition is the same one')
  const parent = await over(call, 'b', id)
  t.match(parent, {
    status: 'completed', operation_type: 'batch_retain', task_type: 'batch_retain', error_message: null, retry_count: 0, completed_at: String,
    result_metadata: { is_parent: true, document_id: 'd', items_count: 1, total_tokens: 4, num_sub_batches: 1, unit_ids_count: 1, extraction_errors_count: 0 },
    child_operations: [{ status: 'completed', sub_batch_index: 1, items_count: 1, error_message: null }],
    progress: { stage: 'retaining', at: String, processed: 1, total: 1, detail: null }
  })
  const { body: list } = await call('GET', 'b/operations')
  t.match(list, { total: 2, operations: [{ task_type: 'retain', operation_type: 'retain', progress: { processed: 1, total: 1 } }, { id, task_type: 'batch_retain' }] })
  t.match((await call('GET', 'b/operations?exclude_parents=true')).body, { total: 1, operations: [{ task_type: 'retain' }] })
  t.match((await call('GET', 'b/operations?type=batch_retain&status=failed')).body, { total: 0 })
  const child = parent.child_operations[0].operation_id
  t.equal((await call('GET', `b/operations/${child}?include_payload=true`)).body.task_payload, null, 'its text went when it was done')
  t.match((await call('GET', 'b/memories/list')).body, { total: 1, items: [{ text: 'Dave likes tea.', document_id: 'd' }] })
  t.match(await call('POST', `b/operations/${id}/retry`), { status: 409, body: { detail: /no incomplete sub-batches to retry/ } })
  t.match(await call('DELETE', `b/operations/${id}`), { status: 409, body: { detail: /status is 'completed'/ } })
  await call('PUT', 'c', {})
  t.match(await call('POST', 'c/memories', { items, async: true, operation_id: id }), { status: 409 }, 'it is another bank’s')
  t.match(await call('GET', `c/operations/${id}`), { body: { status: 'not_found' } }, 'which another bank does not see')
  t.match(await call('DELETE', `c/operations/${id}/delete`), { status: 404 })
  t.match((await call('DELETE', `b/operations/${id}/delete`)).body, { success: true, message: `Operation ${id} deleted`, operation_id: id })
  t.match((await call('GET', 'b/operations')).body, { total: 0 }, 'its children go with it')
})

t.test('a large asynchronous retain is worked off in parts, and a document that goes on in a later one stays whole', async t => {
  const { call } = openEngine(t)
  const sentence = (n: number): string => `Part ${n} of the story goes on and on. `.repeat(600)
  const items = [1, 2, 3].map(n => ({ content: sentence(n), document_id: 'story' }))
  const { body: { operation_id: id } } = await call('POST', 'b/memories', { items, async: true })
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { num_sub_batches: 3 }, child_operations: { length: 3 } })
  const { body: document } = await call('GET', 'b/documents/story')
  for (const n of [1, 2, 3]) t.ok(document.original_text.includes(`Part ${n} of`), `part ${n} is there`)
  const { body: { operation_id: none } } = await call('POST', 'b/memories', { items: [], async: true })
  t.match(await over(call, 'b', none), { status: 'completed', child_operations: null })
})

t.test('what waits in many banks for a model that hangs holds up no other bank, nor what is written in its own', async t => {
  const { call } = openWithChat(t, () => new Promise<string>(() => {}), {
    abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts: true })
  })
  const items = Array.from({ length: 100 }, (_, i) => ({ content: `Fact ${i}.`, document_id: `d${i}` }))
  await call('POST', 'a/memories', { items })
  t.match((await call('GET', 'a/operations?type=graph_maintenance')).body, { total: 100 })
  for (let i = 0; i < 100; i++) await call('POST', `hung${i}/memories`, { items: [{ content: 'Fact.' }] })
  for (const bank of ['b', 'a']) {
    const { body: { operation_id: id } } = await call('POST', `${bank}/memories`, { items: [{ content: 'Tea.' }], async: true })
    t.match(await over(call, bank, id), { status: 'completed' }, bank)
  }
})

t.test('the parts of a retain come in their order and none is left out, where one fails in passing or for good and is tried again', async t => {
  const { call, path } = openEngine(t)
  const items = [1, 2, 3].map(n => ({ content: `Part ${n} of the story goes on and on. `.repeat(600), document_id: 'story' }))
  const begun = async (bank: string): Promise<{ readonly id: string, readonly first: string }> => {
    const { body: { operation_id: id } } = await call('POST', `${bank}/memories`, { items, async: true })
    return { id, first: (await call('GET', `${bank}/operations/${id}`)).body.child_operations[0].operation_id }
  }
  const whole = async (bank: string, id: string): Promise<void> => {
    t.match(await over(call, bank, id), { status: 'completed', progress: { processed: 3, total: 3 } }, bank)
    const { original_text: text } = (await call('GET', `${bank}/documents/story`)).body
    t.same([1, 2, 3].filter(n => text.includes(`Part ${n} of`)), [1, 2, 3], bank)
  }
  await call('PUT', 'passing', {})
  const store = openStore(path)
  t.teardown(() => store.close())
  store.exec(`CREATE TRIGGER fails BEFORE UPDATE OF status ON operations WHEN NEW.status = 'completed' AND NEW.sub_batch_index = 1
    AND NEW.type = 'retain' AND NEW.document_id = 'story' BEGIN SELECT RAISE(ABORT, 'not now'); END`)
  const passing = await begun('passing')
  t.match(await over(call, 'passing', passing.first), { status: 'pending', retry_count: 1, error_message: /not now/ })
  t.match((await call('GET', `passing/operations/${passing.id}`)).body.progress, { stage: 'retaining', processed: 0, total: 3 })
  const { body: { operation_id: other } } = await call('POST', 'passing/memories', { items: [{ content: 'Tea.' }], async: true })
  t.match(await over(call, 'passing', other), { status: 'completed' }, 'what is no part of it goes on')
  t.match((await call('GET', `passing/operations/${passing.id}`)).body.child_operations.map(({ status }: { status: string }) => status), ['pending', 'pending', 'pending'])

  store.exec('CREATE TRIGGER last_try AFTER INSERT ON operations WHEN NEW.sub_batch_index = 1 BEGIN UPDATE operations SET retry_count = 3 WHERE id = NEW.id; END')
  const lasting = await begun('lasting')
  const failed = await over(call, 'lasting', lasting.id)
  t.match(failed, { status: 'failed', progress: { processed: 0, total: 3 } })
  t.match(failed.child_operations, [{ status: 'failed', error_message: /not now/ }, { status: 'failed', error_message: /an earlier part/ }, { status: 'failed' }])
  store.exec('DROP TRIGGER fails; DROP TRIGGER last_try')
  t.equal((await call('POST', `passing/operations/${passing.first}/retry`)).status, 200)
  await whole('passing', passing.id)
  t.equal((await call('POST', `lasting/operations/${lasting.id}/retry`)).status, 200)
  await whole('lasting', lasting.id)

  store.exec(`CREATE TRIGGER fails BEFORE UPDATE OF status ON operations WHEN NEW.status = 'completed' AND NEW.sub_batch_index = 2
    BEGIN SELECT RAISE(ABORT, 'not now'); END`)
  const { id } = await begun('half')
  const [, second] = (await call('GET', `half/operations/${id}`)).body.child_operations
  t.match(await over(call, 'half', second.operation_id), { status: 'pending', retry_count: 1 })
  t.match((await call('GET', `half/operations/${id}`)).body, { status: 'processing', progress: { processed: 1, total: 3 } }, 'what is kept of it so far')
})

t.test('the last thousand operations of a bank are kept, and of the older ones those that are not over or failed, with their parts', async t => {
  const { call, path } = openEngine(t)
  const retain = async (content: string): Promise<void> => {
    const { body } = await call('POST', 'b/memories', { items: [{ content }], async: true })
    await over(call, 'b', body.operation_id as string)
  }
  await retain('Dave likes tea.')
  const store = openStore(path)
  t.teardown(() => store.close())
  const columns = store.all<{ name: string }>(`SELECT name FROM pragma_table_info('operations')`)
    .map(({ name }) => name).filter(name => !['seq', 'id', 'status'].includes(name))
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
    INSERT INTO operations (id, status, ${columns.join()})
    SELECT 'copy-' || i, CASE WHEN i <= 3 THEN 'failed' ELSE 'completed' END, ${columns.map(name => `made.${name}`).join()}
    FROM n CROSS JOIN (SELECT * FROM operations WHERE status = 'completed' LIMIT 1) AS made;
    UPDATE operations SET parent_id = 'copy-1' WHERE id = 'copy-4'`)
  await retain('Dave likes coffee.')
  t.equal((await call('GET', 'b/operations?status=failed')).body.total, 3)
  t.equal((await call('GET', 'b/operations')).body.total, 1000 + 3 + 1)
  t.same(store.all(`SELECT id FROM operations WHERE parent_id = 'copy-1'`), [{ id: 'copy-4' }])
})
