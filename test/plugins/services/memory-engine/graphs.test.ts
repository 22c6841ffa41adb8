import { join } from 'node:path'
import t from 'tap'
import { BESIDE } from '../../../../plugins/services/memory-engine/memories/around.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { noModels, openEngine, openInThread } from './support.js'

interface Edge { readonly source: string, readonly target: string, readonly linkType: string, readonly weight: number }
interface Graph {
  readonly nodes: ReadonlyArray<{ readonly data: { readonly id: string, readonly text: string } }>
  readonly edges: ReadonlyArray<{ readonly data: Edge }>
}

/** Of 64 numbers that a text decides, up to its first colon. */
function vectorOf (text: string): readonly number[] {
  let seed = [...text.split(':')[0]!].reduce((sum, letter) => Math.imul(sum ^ letter.charCodeAt(0), 16_777_619), 2_166_136_261)
  return Array.from({ length: 64 }, () => {
    seed = Math.imul(seed ^ (seed >>> 15), 2_246_822_519) + 1
    return (seed >>> 16) % 2 === 0 ? 1 : -1
  })
}

const said = (content: string, n: number): object => ({ content, timestamp: new Date(Date.UTC(2000, 0, 1 + 2 * n)).toISOString(), document_id: `d${n}` })

/** Texts that are next to each other by vectors. */
function near ({ nodes, edges }: Graph): readonly string[] {
  const texts = new Map(nodes.map(({ data: { id, text } }) => [id, text]))
  return edges.filter(({ data: { linkType, weight } }) => linkType === 'semantic' && weight > 0.99)
    .map(({ data: { source, target } }) => [texts.get(source), texts.get(target)].toSorted().join(' '))
}

t.test('of a bank of any size the newest memories are tied by their vectors, and so are those around an old one; others are served meanwhile', async t => {
  const { call } = openEngine(t, {
    abilities: () => ({ ...noModels, embed: { model: 'm', why: null } }),
    run: errand => {
      if (errand.to !== 'embed') return Promise.reject(new Error('no answer'))
      const { input } = JSON.parse(Buffer.from(errand.body).toString()) as { readonly input: readonly string[] }
      const data = input.map((text, index) => ({ index, embedding: vectorOf(text) }))
      return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ data })) })
    }
  })
  const notes = Array.from({ length: 2_300 }, (_, n) => said(`Note ${n}.`, 10 + n))
  const items = [said('Old twin:a', 0), said('Stranger.', 1), said('Old twin:b', 3), ...notes, said('New twin:a', 6_000), said('New twin:b', 6_001)]
  t.equal((await call('POST', 'b/memories', { items })).status, 200)
  for (let left = items.length; left > 0;) left = (await call('GET', 'b/embeddings')).body.pending
  const answered: string[] = []
  const asked = async (path: string): Promise<Graph> => {
    const { status, body } = await call('GET', path)
    t.equal(status, 200)
    answered.push(path)
    return body as Graph
  }
  const [graph] = await Promise.all([asked('b/graph?limit=5000'), asked('b/config')])
  t.equal(graph.nodes.length, items.length)
  t.same(near(graph), ['New twin:a New twin:b'])
  t.same(answered, ['b/config', 'b/graph?limit=5000'])
  const { body: { items: [old] } } = await call('GET', `b/memories/list?q=${encodeURIComponent('Old twin:a')}`)
  t.same(near(await asked(`b/graph?around=${old.id}`)), ['Old twin:a Old twin:b'])
})

t.test('what is around a memory reads as many rows in a large bank as in a small one', async t => {
  const { call, rows } = openInThread(t)
  const more = { tags: ['all'], entities: [{ text: 'Ann' }] }
  const items = (from: number, count: number): object[] =>
    Array.from({ length: count }, (_, n) => ({ ...said(`Note ${from + n}.`, from + n), ...more }))
  await call('POST', 'b/memories', { items: items(0, 100) })
  const { body: { items: [{ id }] } } = await call('GET', `b/memories/list?q=${encodeURIComponent('Note 7.')}`)
  const around = async (): Promise<{ readonly texts: readonly string[], readonly cost: number }> => {
    const before = rows()
    const { body: { nodes } } = await call<Graph>('GET', `b/graph?around=${id}&depth=2`)
    return { texts: nodes.map(({ data }) => data.text), cost: rows() - before }
  }
  const small = await around()
  t.same(small.texts, [9, 8, 7, 6, 5].map(n => `Note ${n}.`))
  await call('POST', 'b/memories', { items: items(100, 2_400) })
  t.same(await around(), small)
})

t.test('what is around a memory is found by indexes alone, also where very many are of one document, tag, name or time', t => {
  const store = openStore(join(t.testdir(), 'memory.db'))
  t.teardown(() => store.close())
  const steps = store.all<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${BESIDE}`, ['[1]']).map(({ detail }) => detail)
  t.same(steps.filter(step => step.startsWith('SCAN') && !/ json_each | \(subquery/.test(step)), [], 'no table is walked through')
  const others = [...new Set(steps.filter(step => step.startsWith('SEARCH o ')))]
  t.equal(others.length, 10)
  // of several with the same key, the next is where the index goes on
  t.same(others.filter(step => !/(memory|rowid|seq|mentioned_at)[<>]\?\)$/.test(step)), [])
  t.equal(others.filter(step => /mentioned_at=\? AND seq[<>]\?/.test(step)).length, 2)
  t.same(steps.filter(step => step.includes('FOR ORDER BY')), [])
  t.end()
})

t.test('memories of one time are next to those with the numbers beside theirs', async t => {
  const { call } = openInThread(t)
  const timestamp = '2026-01-02T03:04:05Z'
  await call('POST', 'b/memories', { items: Array.from({ length: 9 }, (_, n) => ({ content: `Note ${n}.`, timestamp, document_id: `d${n}` })) })
  await call('POST', 'b/memories', { items: [{ content: 'Before.', timestamp: '2025-01-02T03:04:05Z' }, { content: 'After.', timestamp: '2027-01-02T03:04:05Z' }] })
  const around = async (q: string): Promise<readonly string[]> => {
    const { body: { items: [{ id }] } } = await call('GET', `b/memories/list?q=${encodeURIComponent(q)}`)
    const { body: { nodes } } = await call<Graph>('GET', `b/graph?around=${id}`)
    return nodes.map(({ data }) => data.text).sort()
  }
  t.same(await around('Note 4.'), ['Note 3.', 'Note 4.', 'Note 5.'])
  t.same(await around('Note 0.'), ['Before.', 'Note 0.', 'Note 1.'])
  t.same(await around('Note 8.'), ['After.', 'Note 7.', 'Note 8.'])
})

t.test('a walk around a memory or an entity ends when the client that asked for it has left', async t => {
  const { call, engine } = openInThread(t)
  await call('POST', 'b/memories', { items: [{ content: 'Ann sails.', entities: [{ text: 'Ann' }, { text: 'Bob' }] }] })
  for (const [list, graph] of [['memories/list', 'graph'], ['entities', 'entities/graph']] as const) {
    const { body: { items: [{ id }] } } = await call('GET', `b/${list}`)
    const left = new Error('the client left')
    const path = `/v1/default/banks/b/${graph}`
    await t.rejects(engine.request({ method: 'GET', path, query: `around=${id}`, headers: {}, body: null, signal: AbortSignal.abort(left) }), left)
  }
})
