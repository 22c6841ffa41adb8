import { createHash } from 'node:crypto'
import t from 'tap'
import { over } from './models-support.js'
import { openEngine, openInThread } from './support.js'

t.test('documents are listed, searched, read with their chunks and history, retagged, worked through again and deleted', async t => {
  const { call } = openEngine(t)
  t.match(await call('GET', 'b/documents'), { status: 404 })
  await call('POST', 'b/memories', {
    items: [
      { content: 'Alice works at Acme Corp.', context: 'work', metadata: { src: 'chat' }, document_id: 'doc_1', tags: ['team'], timestamp: '2024-05-01' },
      { content: 'Carol plays the cello.', document_id: 'doc-2' }
    ]
  })
  const { body: list } = await call('GET', 'b/documents')
  t.match(list, { total: 2, limit: 100, offset: 0, total_is_estimate: false, items: { length: 2 } })
  t.match((await call('GET', 'b/documents?q=acme')).body, { total: 1, items: [{ id: 'doc_1', matched_fields: ['original_text'], memory_unit_count: 1 }] })
  t.match((await call('GET', 'b/documents?q=doc-2')).body.items, [{ id: 'doc-2', matched_fields: ['id'] }])
  for (const [query, count] of [['tags=team', 1], ['tags=team&tags_match=any', 2], ['tags=x', 0], ['tags_match=exact&tags=team', 1], [`tags_match=any${Array.from({ length: 1500 }, (_, i) => `&tags=${i}`).join('')}&tags=team`, 2], ['tags=team&tags=x&tags_match=all_strict', 0], ['limit=999999999', 2], ['start_date=2999-01-01', 0]] as const) {
    t.equal((await call('GET', `b/documents?${query}`)).body.total, count, query)
  }
  t.match(await call('GET', 'b/documents?start_date=soon'), { status: 400 })
  t.match((await call('GET', 'b/documents/doc_1')).body, {
    id: 'doc_1', original_text: 'Alice works at Acme Corp.', content_hash: /^[0-9a-f]{64}$/, memory_unit_count: 1,
    nodes_by_fact_type: { world: 1, experience: 0, observation: 0 }, tags: ['team'], document_metadata: { src: 'chat' },
    retain_params: { context: 'work', metadata: { src: 'chat' }, event_date: '2024-05-01' }, observation_scopes: null, attachments: null
  })
  t.match(await call('GET', 'b/documents/nope'), { status: 404, body: { detail: 'Document not found' } })
  const { body: chunks } = await call('GET', 'b/documents/doc_1/chunks')
  t.match(chunks, { total: 1, items: [{ chunk_id: 'b_doc~5F1_0', document_id: 'doc_1', chunk_index: 0, chunk_text: 'Alice works at Acme Corp.', attachments: null }] })
  t.same((await call('GET', '/v1/default/chunks/b_doc~5F1_0')).body, chunks.items[0])
  t.match(await call('GET', '/v1/default/chunks/b_doc~5F1_9'), { status: 404 })
  t.match((await call('GET', 'b/memories/list?document_id=doc_1')).body.items, [{ chunk_id: 'b_doc~5F1_0' }])

  t.equal((await call('GET', 'b/documents?limit=999999999')).body.limit, 10_000)
  t.match(await call('PATCH', 'b/documents/doc_1', { tags: Array.from({ length: 201 }, (_, i) => `${i}`) }), { status: 422, body: { detail: [{ type: 'too_long' }] } })
  t.same((await call('PATCH', 'b/documents/doc_1', { tags: ['x', 'x', 'y'] })).body, { success: true })
  t.match((await call('GET', 'b/memories/list?tags=x&tags_match=any_strict')).body, { total: 1, items: [{ tags: ['x', 'y'], document_id: 'doc_1' }] })
  t.equal((await call('GET', 'b/memories/list?tags=team&tags_match=any_strict')).body.total, 0)
  const memory = (await call('GET', 'b/memories/list?document_id=doc_1')).body.items[0].id
  await call('PATCH', `b/memories/${memory}`, { text: 'Alice works at Globex.' })
  await call('PATCH', `b/memories/${memory}`, { state: 'invalidated', reason: 'wrong' })
  const { body: again } = await call('POST', 'b/documents/doc_1/reprocess')
  t.match(again, { success: true, items_count: 1 })
  t.match(await over(call, 'b', again.operation_id), { status: 'completed', operation_type: 'retain' })
  t.match((await call('GET', 'b/documents/doc_1')).body, { original_text: 'Alice works at Acme Corp.', tags: ['x', 'y'] })
  const { body: history } = await call('GET', 'b/documents/doc_1/history')
  t.match(history, { document_id: 'doc_1', total: 5 })
  t.same(history.items.map(({ kind }: { kind: string }) => kind), ['reprocess', 'fact_invalidated', 'fact_edited', 'retag', 'retain'])
  t.match(history.items[2], { fact_id: memory })
  t.match((await call('DELETE', 'b/documents/doc-2')).body, {
    success: true, message: `Document 'doc-2' and 1 associated memory units deleted successfully`, memory_units_deleted: 1
  })
  t.match(await call('DELETE', 'b/documents/doc-2'), { status: 404 })
  t.equal((await call('GET', 'b/memories/list?document_id=doc-2')).body.total, 0)
})

t.test('what is added to a document reads and writes nothing of the text before, which is whole with its hash when it is asked for', async t => {
  const { call, characters } = openInThread(t)
  const part = (i: number): string => `Part ${i} of the session. ${'It goes on. '.repeat(80)}`.trim()
  const add = async (i: number): Promise<number> => {
    const before = characters()
    t.equal((await call('POST', 'b/memories', { items: [{ content: part(i), document_id: 'd', update_mode: 'append' }] })).status, 200)
    return characters() - before
  }
  const costs: number[] = []
  for (let i = 0; i < 40; i++) costs.push(await add(i))
  t.ok(costs.at(-1)! < costs[2]! * 1.1, `characters that came and went: ${costs[2]} at first, ${costs.at(-1)} at last`)
  const text = Array.from({ length: 40 }, (_, i) => part(i)).join('\n\n')
  const hash = createHash('sha256').update(text).digest('hex')
  t.match((await call('GET', 'b/documents?q=part 39 of')).body, {
    total: 1, items: [{ id: 'd', content_hash: hash, text_length: text.length, matched_fields: ['original_text'] }]
  })
  await add(40)
  t.equal((await call('GET', 'b/documents/d')).body.original_text, `${text}\n\n${part(40)}`)
  const { id } = (await call('GET', 'b/memories/list?document_id=d&q=part 40 of')).body.items[0]
  t.equal((await call('DELETE', `b/memories/${id}`)).status, 200)
  t.match((await call('GET', 'b/documents')).body.items, [{ content_hash: hash, text_length: text.length }], 'a part that is deleted is out of it')
  t.match((await call('GET', 'b/documents/d')).body, { original_text: text, content_hash: hash })
})
