import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { openInThread } from './support.js'

t.setTimeout(120_000)

/** More than any list has without a limit. */
const MANY = 1020
const FEWER = 240
/** What the engine makes of each kind. All others are copies of these: it would write as much in a hundred times the time. */
const MADE = 30

/** Until there are `many`: copies number `i` of the rows `made` that a table has, with what makes each one of its own. */
function copied (store: Store, table: string, many: number, own: Readonly<Record<string, string>>, which = 'true'): void {
  const { made } = store.get<{ made: number }>(`SELECT count(*) AS made FROM ${table} WHERE ${which}`)!
  const columns = store.all<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => name).filter(name => name !== 'seq')
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${many / made - 1})
    INSERT INTO ${table} (${columns.join()}) SELECT ${columns.map(name => own[name] ?? `made.${name}`).join()}
    FROM n CROSS JOIN (SELECT * FROM ${table} WHERE ${which}) AS made`)
}

interface TreeNode {
  readonly id: string
  readonly children: readonly TreeNode[]
}

/** From the top down. */
function flat (nodes: readonly TreeNode[]): readonly string[] {
  return nodes.flatMap(({ id, children }) => [id, ...flat(children)])
}

interface List {
  readonly path: string
  readonly total: number
  /** Items of a page without a `limit`. */
  readonly preset: number
  /** The largest page, where that is less than 250. */
  readonly most?: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
  readonly items: (body: any) => readonly unknown[]
}

t.test('a list of thousands is read page by page, each of which costs what it holds', async t => {
  // thousands of transactions, which no disk is to wait for
  const folder = await mkdtemp(join(tmpdir(), 'svc-lists-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const { call, rows } = openInThread(t, folder)
  const bank = 'b'
  await call('PUT', bank, {})
  await call('PATCH', `${bank}/config`, { updates: { retain_chunk_size: 200 } })
  const sections = Array.from({ length: MANY }, (_, i) => `Section ${i} of a long report: ${'something of it, '.repeat(11)}and so on.`)
  t.equal((await call('POST', `${bank}/memories`, { items: [{ content: sections.join('\n\n'), document_id: 'long' }] })).status, 200)
  for (let from = 0; from < MANY; from += 510) {
    const items = Array.from({ length: 510 }, (_, i) => ({ content: `Note ${from + i}.`, document_id: `n${from + i}`, tags: [`tag ${from + i}`] }))
    t.equal((await call('POST', `${bank}/memories`, { items })).status, 200)
  }
  const [{ id: memory }] = (await call('GET', `${bank}/memories/list?q=${encodeURIComponent('Note 7.')}`)).body.items
  for (let i = 0; i < MADE; i++) {
    await call('PATCH', `${bank}/memories/${memory}`, { context: `context ${i}` })
    await call('POST', `${bank}/aliases`, { alias: `alias ${i}` })
    await call('POST', `${bank}/webhooks`, { url: `https://example.com/${i}`, event_types: ['retain.completed'], enabled: false })
    await call('POST', `${bank}/directives`, { name: `rule ${i}`, content: 'Be brief.', tags: [`d${i % 2}`] })
    await call('POST', `${bank}/mental-models`, { name: `model ${i}`, source_query: 'What?', tags: [`m${i % 2}`] })
  }
  const folders: string[] = []
  for (let i = 0; i < MADE; i++) {
    // a chain of ten, then folders of the top
    const parent = i > 0 && i < 10 ? { parent_id: folders[i - 1] } : {}
    folders.push((await call('POST', `${bank}/knowledge-base/folders`, { name: `folder ${i}`, ...parent })).body.id as string)
  }
  for (let i = 0; i < MADE; i++) {
    await call('POST', `${bank}/knowledge-base/pages`, { name: `page ${i}`, source_query: 'What?', parent_id: folders[i], tags: [`p${i % 3}`] })
  }
  // a copy of one that is still to be done would be done as well
  for (const status of ['pending', 'processing']) while ((await call('GET', `${bank}/operations?status=${status}`)).body.total > 0);

  const store = openStore(join(folder, 'memory', 'memory.db'))
  const named = { id: 'made.id || \'-\' || i', name: 'made.name || \'.\' || i' }
  copied(store, 'memory_history', MANY, { changed_at: 'made.changed_at + i' })
  copied(store, 'bank_aliases', MANY, { alias: 'made.alias || \'.\' || i' })
  copied(store, 'webhooks', FEWER, { id: named.id, url: 'made.url || \'.\' || i' })
  copied(store, 'directives', FEWER, named)
  copied(store, 'mental_models', FEWER, named, 'name LIKE \'model %\'')
  copied(store, 'mental_models', MANY, named, 'name LIKE \'page %\'')
  const copiedModel = `(SELECT seq FROM mental_models WHERE id = (SELECT id FROM mental_models WHERE seq = made.model) || '-' || i)`
  copied(store, 'knowledge_nodes', MANY, { ...named, model: copiedModel }, 'kind = \'page\'')
  copied(store, 'operations', MANY, { id: named.id })
  // what a model would have made is written as the engine does
  const { seq } = store.get<{ seq: number }>('SELECT seq FROM banks')!
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${2 * MANY - 1})
    INSERT INTO memories (id, bank, text, text_hash, fact_type, tags, state, created_at, updated_at)
    SELECT 'o' || i, ${seq}, 'x', x'00', 'observation', CASE i % 2 WHEN 0 THEN json_array('a', 'o' || (i / 2)) ELSE json_array('o' || (i / 2), 'a') END, 'valid', 0, 0 FROM n`)
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY - 1})
    INSERT INTO mental_model_history (model, changed_at, change) SELECT (SELECT min(seq) FROM mental_models), i * 1000,
      json_object('previous_content', 'content ' || i, 'previous_reflect_response', NULL, 'kind', 'content') FROM n`)
  const model = store.get<{ id: string }>('SELECT id FROM mental_models ORDER BY seq LIMIT 1')!.id
  store.close()

  const { body: { total: chunks } } = await call('GET', `${bank}/documents/long/chunks?limit=1`)
  t.ok(chunks >= MANY, `${chunks} chunks`)
  const { body: { total: operations } } = await call('GET', `${bank}/operations?limit=1`)
  t.ok(operations >= 1000, `${operations} operations`)
  const inItems: List['items'] = ({ items }) => items
  const lists: readonly List[] = [
    { path: 'documents/long/chunks', total: chunks, preset: 100, items: inItems },
    { path: 'tags', total: MANY, preset: 100, items: inItems },
    { path: 'aliases', total: MANY, preset: 1000, items: ({ aliases }) => aliases },
    { path: 'webhooks', total: FEWER, preset: 100, items: inItems },
    { path: 'directives', total: FEWER, preset: 100, items: inItems },
    { path: 'directives?tags=d1', total: FEWER, preset: 100, items: inItems },
    { path: 'directives?tags=d1&tags_match=exact', total: FEWER / 2, preset: 100, items: inItems },
    { path: 'mental-models?exclude_knowledge_pages=true', total: FEWER, preset: 100, items: inItems },
    { path: 'mental-models', total: FEWER + MANY, preset: 100, items: inItems },
    { path: `memories/${memory}/history`, total: MANY, preset: 1000, items: body => body },
    { path: `mental-models/${model}/history`, total: MANY, preset: 1000, items: body => body },
    { path: 'observations/scopes', total: MANY, preset: 100, items: ({ scopes }) => scopes },
    { path: 'knowledge-base/tree', total: MANY + MADE, preset: 1000, items: ({ roots }) => flat(roots) },
    { path: 'knowledge-base/tree?tags=p1&tags_match=any_strict', total: MANY / 3 + MADE, preset: MANY / 3 + MADE, items: ({ roots }) => flat(roots) },
    { path: 'operations', total: operations, preset: 20, most: 100, items: ({ operations: all }) => all },
    { path: 'memories/list?type=world', total: chunks + MANY, preset: 100, items: inItems },
    { path: 'documents?tags_match=any', total: MANY + 1, preset: 100, items: inItems }
  ]
  for (const { path, total, preset, most = 250, items } of lists) {
    const list = path.replace(/\?.*/, '')
    // untagged directives are among those that have a tag or none
    const of = path === 'directives?tags=d1' ? total / 2 : total
    const at = (query: string): string => `${bank}/${path}${path.includes('?') ? '&' : '?'}${query}`
    const isTree = list.endsWith('tree')
    await t.test(path, async t => {
      const before = rows()
      const { status, body, headers } = await call('GET', at('limit=10'))
      t.equal(status, 200)
      t.equal(items(body).length, 10)
      t.equal(body.total ?? Number(headers['x-total-count']), of, 'how many there are')
      t.ok(rows() - before <= 30, `${rows() - before} rows were read`)
      t.equal(items((await call('GET', `${bank}/${path}`)).body).length, Math.min(preset, of), 'without a limit')
      const seen = new Set<string>()
      for (let offset = 0; offset < of; offset += most) {
        const page = items((await call('GET', at(`limit=${most}&offset=${offset}`))).body)
        // the folders that a part of the tree is in come with it
        t.ok(page.length === Math.min(most, of - offset) || (isTree && page.length < most + 10))
        for (const item of page) seen.add(JSON.stringify(item))
      }
      t.equal(seen.size, of, 'every one is on a page')
      t.equal(items((await call('GET', at(`limit=10&offset=${of}`))).body).length, 0, 'and none behind them')
      const huge = await call('GET', at('limit=999999999'))
      t.ok(huge.status === 422 || items(huge.body).length <= 10_000, `the largest page: ${huge.status}`)
    })
  }
})
