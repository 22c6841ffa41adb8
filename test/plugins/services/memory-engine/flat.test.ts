import t from 'tap'
import { NodeTable } from '../../../../plugins/services/memory-engine/knowledge/node-table.js'
import { hasOpenFacts, openFacts } from '../../../../plugins/services/memory-engine/llm/open-facts.js'
import { isStale } from '../../../../plugins/services/memory-engine/models/staleness.js'
import { operationsOf } from '../../../../plugins/services/memory-engine/operations/operations.js'
import { findBank } from '../../../../plugins/services/memory-engine/store/bank-table.js'
import { documentsOf } from '../../../../plugins/services/memory-engine/store/document-table.js'
import { AuditLog } from '../../../../plugins/services/memory-engine/records/audit.js'
import { WebhookTable } from '../../../../plugins/services/memory-engine/webhooks/webhook-table.js'
import { deleteMemories, type MemoryRow } from '../../../../plugins/services/memory-engine/store/memory-table.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { openInThread } from './support.js'

/*
 * What is asked for each operation, item or deleted memory costs the same among many as among few. Plans show that at any size:
 * by which columns the rows are found, and whether what was found has to be sorted.
 */

const planOf = (store: Store, sql: string): readonly string[] =>
  store.all<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail)

/** The statements that `work` has run. */
async function asked (store: Store, work: () => unknown): Promise<readonly string[]> {
  const all = new Set<string>()
  const own = Object.fromEntries((['all', 'get', 'run'] as const).map(name => [name, store[name]]))
  for (const [name, run] of Object.entries(own)) {
    Object.assign(store, { [name]: (sql: string, ...values: unknown[]): unknown => {
      all.add(sql)
      return (run as (...args: unknown[]) => unknown).call(store, sql, ...values)
    } })
  }
  try {
    await work()
  } finally {
    Object.assign(store, own)
  }
  return [...all]
}

/** Their plans, without how the rows of a list in JSON are read. */
async function steps (store: Store, work: () => unknown): Promise<readonly string[]> {
  return (await asked(store, work)).flatMap(sql => planOf(store, sql)).filter(step => !/VIRTUAL TABLE/.test(step))
}

const isWalk = (step: string): boolean => /^SCAN |FOR ORDER BY/.test(step)

t.test('what the queue asks finds its own among all that wait, failed or are over', async t => {
  const { core } = openInThread(t)
  const { store } = core
  const { table } = operationsOf(core)
  const questions: ReadonlyArray<readonly [() => unknown, by: string]> = [
    [() => table.prune('b'), 'operations_status (bank_id=? AND status=? AND seq<?)'],
    [() => table.nextRetryAt(), 'operations_paused (next_retry_at>?)'],
    [() => table.waiting('b', 'consolidation'), 'operations_lanes (bank_id=? AND type=?)'],
    [() => table.waiting('b', 'refresh_mental_model', 'm'), 'operations_refreshes (bank_id=? AND mental_model_id=?)'],
    [() => table.importing(), 'operations_imports (type=?)'],
    [() => table.list('b', { limit: 1, offset: 0 }), 'operations_bank (bank_id=?)'],
    [() => table.list('b', { status: 'failed', limit: 1, offset: 0 }), 'operations_status (bank_id=? AND status=?)'],
    [() => table.list('b', { type: 'retain', limit: 1, offset: 0 }), 'operations_type (bank_id=? AND type=?)'],
    [() => table.hasFailedBefore({ parentId: 'p', subBatchIndex: 5 }), 'operations_failed (parent_id=? AND sub_batch_index<?)'],
    [() => table.settleParent('p'), 'USING COVERING INDEX operations_parts (parent_id=?)'],
    [() => table.resume([]), 'operations_open (status=?)']
  ]
  for (const [ask, by] of questions) {
    const plan = await steps(store, ask)
    t.ok(plan.some(step => step.startsWith('SEARCH operations') && step.endsWith(by)), `${by}: ${plan.join('; ')}`)
    t.same(plan.filter(isWalk), [])
  }
  const runnable = (await steps(store, () => table.runnable(['retain'], 1))).filter(step => /^(SCAN|SEARCH) (operations|one|before)\b/.test(step))
  t.equal(runnable.length, 5)
  t.same(runnable.filter(step => !/USING COVERING INDEX operations_(lanes|siblings)/.test(step)), [])
  // of few: embeddings of one bank
  t.same((await steps(store, () => table.openStatus('b', 'embedding'))).filter(step => step.startsWith('SEARCH')),
    ['SEARCH operations USING INDEX operations_kinds (bank_id=? AND type=?)'])
})

t.test('facts that wait for a consolidation are found among all that had theirs', async t => {
  const { core, call } = openInThread(t)
  await call('POST', 'b/memories', { items: [{ content: 'Ann sails.' }] })
  const bank = findBank(core.store, 'b')!
  for (const ask of [() => openFacts(core.store, bank, 5), () => hasOpenFacts(core.store, bank)]) {
    const plan = await steps(core.store, ask)
    t.match(plan[0], /^SEARCH m USING INDEX memories_open \(bank=\?\)$/)
    t.same(plan.filter(isWalk), [])
  }
})

t.test('a text is looked for among those with its tags, or in its document, however many say the same', async t => {
  const { call, rows } = openInThread(t)
  const said = async (item: object): Promise<number> => {
    const before = rows()
    t.equal((await call('POST', 'b/memories', { items: [{ content: 'Thanks!', ...item }] })).status, 200)
    return rows() - before
  }
  const others = (from: number, count: number): Promise<unknown> => call('POST', 'b/memories', {
    items: Array.from({ length: count }, (_, n) => ({ content: 'Thanks!', document_id: `d${from + n}`, tags: ['all', `user:${from + n}`] }))
  })
  const costs = async (n: number): Promise<readonly number[]> => [
    await said({ tags: ['all', `new:${n}`] }),
    await said({ tags: ['all', `other:${n}`], document_id: `e${n}`, unless_known: true }),
    await said({ document_id: 'grown', update_mode: 'append', unless_known: true, metadata: { n: '0' } })
  ]
  await others(0, 3)
  await said({ document_id: 'grown' })
  await said({ document_id: 'grown', update_mode: 'append', metadata: { n: '0' } })
  const small = await costs(0)
  await others(3, 400)
  t.same(await costs(1), small)
})

t.test('the same tags in another order are the same, few or many', async t => {
  const { call } = openInThread(t)
  for (const count of [2, 4, 5, 20]) {
    const tags = Array.from({ length: count }, (_, n) => `tag ${n} of ${count} \u{1f600} ${'x'.repeat(40)}`)
    const total = async (): Promise<number> => (await call('GET', `b${count}/memories/list`)).body.total as number
    await call('POST', `b${count}/memories`, { items: [{ content: 'Once.', tags }, { content: 'Once.', tags: tags.slice(1) }] })
    t.equal(await total(), 2)
    await call('POST', `b${count}/memories`, { items: [{ content: 'Once.', tags: tags.toReversed() }, { content: 'Once.', tags: tags.slice(1).toReversed() }] })
    t.equal(await total(), 2)
    await call('POST', `b${count}/memories`, { items: [{ content: 'Once.', tags: tags.slice(0, -1) }] })
    t.equal(await total(), 3)
  }
})

t.test('of very many in one document that say the same, a bounded number is looked at', async t => {
  const { call, most } = openInThread(t)
  const item = { content: 'Tick.', document_id: 'log', update_mode: 'append' }
  await call('POST', 'b/memories', { items: Array.from({ length: 300 }, (_, n) => ({ ...item, metadata: { n: `${n}` } })) })
  await call('POST', 'b/memories', { items: [{ ...item, unless_known: true, metadata: { n: 'new' } }] })
  t.equal(most(), 200)
  const { body: { known } } = await call('POST', 'b/memories', { items: [{ ...item, unless_known: true, metadata: { n: 'new' } }] })
  t.equal(known.length, 1)
})

t.test('documents whose text was added to are looked at if they have the length', async t => {
  const { core: { store } } = openInThread(t)
  const plan = await steps(store, () => documentsOf(store, 1, 'a text', ['x', 'y']))
  t.ok(plan.includes('SEARCH documents USING INDEX documents_changed (bank=? AND text_length=?)'), plan.join('; '))
  t.same(plan.filter(isWalk), [])
})

t.test('nodes of one place in their order are read on from where the last page ended', async t => {
  const { core } = openInThread(t)
  const { store } = core
  store.run('INSERT INTO banks (bank_id, name, created_at, updated_at) VALUES (?, ?, 0, 0)', ['b', 'b'])
  const nodes = new NodeTable(core)
  for (let n = 0; n < 45; n++) nodes.add(1, 'folder', `n${n}`, null, null)
  store.run('UPDATE knowledge_nodes SET sort_order = seq / 10 - 2')
  const names = (all: Iterable<{ readonly name: string }>): readonly string[] => [...all].map(({ name }) => name)
  const inOrder = Array.from({ length: 45 }, (_, n) => `n${n}`)
  t.same(names(nodes.nodes(1)), inOrder)
  t.same(names([...nodes.tree(1)].map(({ node }) => node)), inOrder)
  store.run('UPDATE knowledge_nodes SET sort_order = 0')
  t.same(names(nodes.nodes(1)), inOrder)
  for (const [all, columns] of [[() => [...nodes.nodes(1)], 'bank=?'], [() => [...nodes.tree(1)], 'bank=? AND parent=?']] as const) {
    const found = (await steps(store, all)).filter(step => step.startsWith('SEARCH n '))
    t.same(found.map(step => /\(.*\)/.exec(step)![0]).sort(), [`(${columns} AND sort_order=? AND seq>?)`, `(${columns} AND sort_order>?)`])
  }
})

t.test('few memories of a large bank are found by what they are asked for, and not picked from all of them', async t => {
  const { core: { store }, call } = openInThread(t)
  await call('POST', 'b/memories', { items: [{ content: 'Ann sails.', document_id: 'd', entities: [{ text: 'Ann' }] }] })
  const { body: { items: [{ id }] } } = await call('GET', 'b/memories/list')
  const { body: { items: [ann] } } = await call('GET', 'b/entities')
  const pages: ReadonlyArray<readonly [string, string]> = [
    [`graph?around=${id}`, 'SEARCH m USING INTEGER PRIMARY KEY (rowid=?)'],
    ['memories/list?document_id=d', 'SEARCH m USING INDEX memories_document (document=?)'],
    [`memories/list?entity_id=${ann.id}`, 'SEARCH m USING INTEGER PRIMARY KEY (rowid=?)']
  ]
  for (const [path, by] of pages) {
    const list = (await asked(store, async () => t.equal((await call('GET', `b/${path}`)).status, 200))).filter(sql => sql.includes('ORDER BY m.mentioned_at'))
    t.equal(list.length, 1)
    t.equal(planOf(store, list[0]!)[0], by)
  }
})

t.test('whether a mental model is stale is told by what is newer, and by its tag where that is much', async t => {
  const { core, call } = openInThread(t)
  const { store } = core
  await call('POST', 'b/memories', { items: [{ content: 'Ann sails.', tags: ['ann', 'sea'] }] })
  await call('POST', 'b/memories', { items: Array.from({ length: 1_100 }, (_, n) => ({ content: `Note ${n}.` })) })
  const bank = findBank(store, 'b')!.seq
  const stale = (tags: readonly string[], lastRefreshedAt: number): boolean => isStale(core, bank, { tags, lastRefreshedAt })
  store.run('UPDATE memories SET updated_at = seq')
  for (const tags of [['ann'], ['ann', 'sea'], ['sea', 'ann']]) {
    t.equal(stale(tags, 0), true, 'the tagged one is behind more than are looked at')
    t.equal(stale(tags, 1), false)
  }
  t.equal(stale(['ann', 'land'], 0), false)
  store.run('UPDATE memories SET updated_at = 5000 WHERE seq = 1')
  t.equal(stale(['sea', 'ann'], 4_999), true)
  t.equal(stale(['sea', 'ann'], 5_000), false)
  t.equal(stale([], 4_999), true)
  t.equal(stale([], 5_000), false)
  for (const tags of [[], ['ann']]) {
    const plan = await steps(store, () => stale(tags, 5_000))
    t.ok(plan.some(step => step.endsWith('memories_updated (bank=? AND updated_at>?)')), plan.join('; '))
    t.same(plan.filter(step => step !== 'SCAN n').filter(isWalk), [])
  }
})

t.test('what a row takes along or sets off is found by an index', t => {
  const { core: { store } } = openInThread(t)
  const tables = store.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table'`).map(({ name }) => name)
  const bare = tables.flatMap(table => store.all<{ from: string }>(`PRAGMA foreign_key_list(${table})`)
    .filter(({ from }) => !planOf(store, `SELECT 1 FROM ${table} WHERE ${from} = ?`)[0]!.startsWith('SEARCH')).map(({ from }) => `${table}.${from}`))
  // models of vectors stay, and of deletions few go on
  t.same(bare.sort(), ['clearings.bank', 'clearings.document', 'vectors.model'])
  const triggers = store.all<{ name: string, sql: string }>(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
  t.ok(triggers.length > 10)
  for (const { name, sql } of triggers) {
    const [, condition = 'true', body] = /^.*? ON \w+\s*(?:WHEN\s+(.*?))?\s*BEGIN\s(.*)END$/s.exec(sql)!
    const statements = [`SELECT ${condition}`, ...body!.split(';').filter(each => each.trim() !== '')]
    const plan = statements.flatMap(each => planOf(store, each.replace(/\b(NEW|OLD)\.\w+/g, '?')))
    // at most a row, within a transaction
    const walks = plan.filter(step => isWalk(step) && !/ replacing$|CONSTANT ROW|VIRTUAL TABLE|^SCAN \(subquery|FOR ORDER BY/.test(step))
    t.same(walks, [], name)
  }
  t.end()
})

t.test('what is kept for a record or a webhook is counted by an index', async t => {
  const { core, call } = openInThread(t)
  const { store } = core
  await call('POST', 'b/memories', { items: [{ content: 'Ann sails.' }] })
  await call('POST', 'b/webhooks', { url: 'https://example.com/', event_types: ['retain.completed'] })
  const webhooks = new WebhookTable(core)
  const announced = await steps(store, () => t.equal(webhooks.announce(findBank(store, 'b')!.seq, 'retain.completed', () => ({})), 1))
  t.ok(announced.includes('SEARCH webhook_deliveries USING INDEX webhook_deliveries_over (webhook=? AND seq<?)'), announced.join('; '))
  const lines = new AuditLog(core)
  const entry = { bankId: 'b', action: 'recall', transport: 'http' as const, startedAt: 0, durationMs: 1, facts: {} }
  const recorded = await steps(store, () => {
    lines.add(entry)
    lines.flush()
  })
  t.ok(recorded.includes('SEARCH audit_log USING INDEX audit_log_kept (bank_id=? AND seq<?)'), recorded.join('; '))
})

t.test('an archive goes with the first memory of its own bank, also where other banks are named alike', async t => {
  const { core: { store }, call } = openInThread(t)
  const banks = ['a', 'a0', 'a%', 'A']
  for (const bank of banks) {
    await call('POST', `${encodeURIComponent(bank)}/memories`, { items: [{ content: 'Ann sails.' }] })
    store.run(`INSERT INTO operations (id, bank_id, type, status, created_at, updated_at) VALUES (?, ?, 'export_bank', 'completed', 0, 0)`, [bank, bank])
    store.run(`INSERT INTO operation_files (key, operation, filename, bytes) VALUES (?, ?, 'f', x'00')`, [`banks/${bank}/exports/1/transfer.zip`, bank])
  }
  store.run(`INSERT INTO operation_files (key, operation, filename, bytes) VALUES ('uploads/a', 'a', 'f', x'00')`)
  store.transaction(() => deleteMemories(store, store.all<MemoryRow>('SELECT * FROM memories WHERE bank = ?', [findBank(store, 'a')!.seq])))
  t.same(store.all<{ key: string }>('SELECT key FROM operation_files ORDER BY key').map(({ key }) => key.split('/', 2).join('/')),
    ['banks/A', 'banks/a%', 'banks/a0', 'uploads/a'])
})
