import t from 'tap'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost, type MemoryHost } from './host.js'

interface Part {
  readonly nodes: ReadonlyArray<{ readonly data: { readonly id: string, readonly label: string, readonly text: string } }>
}

function subgraphs (host: MemoryHost): {
  readonly part: (query: string) => Promise<Part>
  readonly labels: (query: string) => Promise<readonly string[]>
  readonly missing: (query: string) => Promise<unknown>
} {
  const at = (query: string) => host.call('GET', `/api/memory/banks/g/graph/subgraph?mode=ego&${query}`)
  const part = async (query: string): Promise<Part> => {
    const { status, json, text } = await at(query)
    t.equal(status, 200, `${query}: ${text.slice(0, 200)}`)
    return json as Part
  }
  return {
    part,
    labels: async query => (await part(query)).nodes.map(({ data }) => data.label).sort(),
    missing: async query => {
      const { status, json } = await at(query)
      return [status, json.error?.code]
    }
  }
}

const NOT_FOUND = [404, 'memory.node_not_found']
const NONE = '00000000-0000-4000-8000-000000000000'

t.test('a node of the embedded engine is there with what is around it, however many memories are newer', async t => {
  const host = await memoryHost(t)
  const { part, labels, missing } = subgraphs(host)
  const bank = '/api/memory/hindsight/v1/default/banks/g'
  const day = (n: number): string => new Date(Date.UTC(2000, 0, 1 + 2 * n)).toISOString()
  const said = (content: string, n: number, more: object = {}): object => ({ content, timestamp: day(n), document_id: `d${n}`, ...more })
  const named = (...names: string[]): object => ({ entities: names.map(text => ({ text })) })
  const items = [
    said('Ann meets Bo.', 0, { ...named('Ann', 'Bo'), tags: ['walk'] }), said('It rained.', 1), said('Bo meets Cy.', 2, named('Bo', 'Cy')),
    said('A walk.', 3, { tags: ['walk'] }), said('Cy sleeps.', 4, named('Cy')), said('Hidden.', 5, named('Ann')),
    ...Array.from({ length: 5_100 }, (_, n) => said(`Note ${n}.`, 10 + n, n < 2_500 ? named(`N${n}`, `M${n}`, 'All') : {})), said('Ann and Zoe.', 6_000, named('Ann', 'Zoe'))
  ]
  t.equal((await host.call('POST', `${bank}/memories`, { items })).status, 200)
  const idOf = async (q: string): Promise<string> => (await host.call('GET', `${bank}/memories/list?q=${encodeURIComponent(q)}`)).json.items[0].id
  const [ann, hidden, cy] = [await idOf('Ann meets'), await idOf('Hidden'), await idOf('Cy sleeps')]
  await host.call('PATCH', `${bank}/memories/${hidden}`, { state: 'invalidated' })

  t.same(await labels(`node=${ann}&depth=0`), ['Ann meets Bo.'])
  t.same(await labels(`node=${ann}`), ['A walk.', 'Ann and Zoe.', 'Ann meets Bo.', 'Bo meets Cy.'], 'by name and tag; what is hidden ties nothing')
  t.match(await part(`node=${ann}`), { mode: 'ego', center: ann, total_units: items.length - 1, truncated: true, edges: [{}, {}, {}] })
  t.same(await labels(`node=${ann}&depth=2`), ['A walk.', 'Ann and Zoe.', 'Ann meets Bo.', 'Bo meets Cy.', 'Cy sleeps.'])
  t.same(await labels(`node=${ann}&depth=2&limit=3`).then(({ length }) => length), 3)
  t.same(await labels(`node=${cy}&type=world&q=CY`), ['Bo meets Cy.', 'Cy sleeps.'])
  for (const query of [`node=${ann}&type=experience`, `node=${ann}&q=rain`, `node=${hidden}`, `node=${NONE}`, 'node=none']) t.same(await missing(query), NOT_FOUND, query)

  const entities = (await host.call('GET', `${bank}/entities?limit=6000`)).json.items as ReadonlyArray<{ readonly id: string, readonly canonical_name: string }>
  const entity = (name: string): string => entities.find(({ canonical_name: its }) => its === name)!.id
  t.same(await labels(`kind=entities&node=${entity('Zoe')}`), ['Ann', 'Zoe'], 'an entity is, too')
  t.same(await labels(`kind=entities&node=${entity('Zoe')}&depth=2`), ['Ann', 'Bo', 'Zoe'])
  t.match(await part(`kind=entities&node=${entity('Bo')}`), {
    total_entities: entities.length, truncated: true, edges: [{ data: { linkType: 'cooccurrence', weight: 1 } }, { data: { linkType: 'cooccurrence' } }]
  })
  t.equal((await part(`kind=entities&node=${entity('All')}&limit=300`)).nodes.length, 300)
  for (const query of [`kind=entities&node=${NONE}`, 'kind=entities&node=none', `kind=entities&node=${entity('Bo')}&q=ann`]) t.same(await missing(query), NOT_FOUND, query)
  const top = (await host.call('GET', '/api/memory/banks/g/graph/subgraph?kind=entities')).json as Part
  t.match(top, { total_entities: entities.length, truncated: true }, 'as many as there are')
})

t.test('a server is asked for a node that is not among its newest, and for what ties it', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  const { labels, missing, part } = subgraphs(host)
  const { units } = fake.bank('g')
  const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
  const unit = (n: number, text: string, document_id: string) => ({ id: id(n), text, document_id, tags: [], metadata: {}, mentioned_at: '2026-01-01T00:00:00Z' })
  units.push(unit(1, 'Ann meets Bo.', 'old'), unit(2, 'Bo sleeps.', 'old'), unit(3, 'Hidden.', 'old'))
  for (let n = 4; n < 5_200; n++) units.push(unit(n, `Note ${n}.`, `d${n}`))
  t.same(await labels(`node=${id(5_190)}&depth=0`), ['Note 5190.'], 'one that is among them')
  t.same(await labels(`node=${id(1)}`), ['Ann meets Bo.', 'Bo sleeps.', 'Hidden.'])
  t.match(await part(`node=${id(1)}`), { total_units: 5_199, truncated: true, edges: [{}, {}] })
  t.same(await labels(`node=${id(1)}&q=bo`), ['Ann meets Bo.', 'Bo sleeps.'])
  t.same(await labels(`node=${id(4)}`), ['Note 4.'], 'one that nothing ties is there alone')
  for (const query of [`node=${id(1)}&type=experience`, `node=${id(1)}&q=rain`, `node=${NONE}`, 'node=none']) t.same(await missing(query), NOT_FOUND, query)
  fake.seen.splice(0)
  await part(`node=${id(1)}`)
  t.ok(fake.seen.length < 12 && fake.seen.every(({ url }) => !/limit=([3-9]\d{3}|\d{5})/.test(url)), `${fake.calls.join('\n')}`)
  fake.instead.set(`/v1/default/banks/g/memories/${id(1)}`, (_request, response) => { response.writeHead(500).end('{"detail":"down"}') })
  t.same(await missing(`node=${id(1)}`), [502, 'memory.engine_error'], 'a server that fails has not said that there is none')
})

t.test('around an entity of a server stand those named beside it, whatever commas are in their names, and all are counted', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  const { labels, part } = subgraphs(host)
  fake.bank('g')
  const says = (path: string, value: object): void => {
    fake.instead.set(`/v1/default/banks/g/${path}`, (_request, response) => { response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value)) })
  }
  const entities = ['Ann', 'Acme', 'Acme, Inc.', 'Bo', 'Cy, Jr.', 'Zoe'].map((canonical_name, n) => ({ id: `e${n}`, canonical_name, mention_count: 1 }))
  for (const entity of entities) says(`entities/${entity.id}`, entity)
  says('entities', { items: entities, total: entities.length })
  says('entities/graph', { nodes: [], edges: [] })
  says('memories/list', { items: [{ entities: 'Acme, Inc., Ann, Bo, Nobody, Cy, Jr.' }, { entities: 'Bo, Ann' }] })
  t.same(await labels('kind=entities&node=e0'), ['Acme, Inc.', 'Ann', 'Bo', 'Cy, Jr.'])
  t.match(await part('kind=entities&node=e0'), { edges: { length: 3 }, total_entities: 6 })
  says('memories/list', { items: [{ entities: 'Acme, Inc., Zoe' }] })
  t.same(await labels('kind=entities&node=e2'), ['Acme, Inc.', 'Zoe'], 'nor in its own')

  const told = ['e0', 'e3'].map(id => ({ data: { id, label: id } }))
  says('entities/graph', { nodes: told, edges: [{ data: { id: 'e0-e3', source: 'e0', target: 'e3' } }] })
  const top = await host.call('GET', '/api/memory/banks/g/graph/subgraph?kind=entities')
  t.match(top.json, { returned_nodes: 2, total_entities: 6 }, 'a server draws those alone that stand in a pair')
})
