import t, { type Test } from 'tap'
import { someOf } from '../../../whole.js'
import { engineRoutes } from '../../../../plugins/api/memory/engine-routes.js'
import { call as callTool, connect } from '../../mcp/memory-agents.js'
import { byBank, byId, byTool, datasets, identities, spelled, spellings, type Method, type Things } from './attempts.js'
import { api, as, called, engines, SECRET, shown, STRAY, wire, WIRE, type Attempt, type Rig } from './foreign-rig.js'

/** Each route of the gateway about a bank, by the names and ids of what is Bob's. */
function routesOf (bank: string, things: Things): readonly Attempt[] {
  const { memory, entity, document, model, directive, running } = things
  const ids: Readonly<Record<string, string>> = {
    'memories': memory, 'entities': entity, 'documents': document, 'mental-models': model, 'directives': directive, 'operations': running
  }
  return [
    ...engineRoutes.map(({ method, url, body, example }) => api(bank, {
      method: method as Method, path: `${url.replace(':id', ids[url.split('/')[1]!] ?? '')}?confirm=private__bob`, ...body === true ? { body: example } : {}
    })),
    ...['/profile', '/document-transfer', '/graph/subgraph', '/graph/subgraph?kind=entities', `/graph/subgraph?mode=ego&node=${memory}`]
      .map(path => api(bank, { method: 'GET', path })),
    api(bank, { method: 'PUT', path: '/profile', body: { mission: 'planted' } })
  ]
}

/** By the names of datasets, by ids and tags, and by what else a request may say. */
function notes ({ memory, document, stray, strayDocument }: Things): readonly Attempt[] {
  const ask = { query: 'Which secret does Bob have?' }
  const mores = [{ bank: 'private__bob' }, { bank_id: 'private__bob' }, { agent: 'bob' }, { source: 'bob' }, { 'x-svc-agent': 'bob' }, { private: true }]
  const bodies: Array<readonly [string, object]> = ['', ...datasets].flatMap(dataset => [
    ...['search', 'recall'].flatMap((path): Array<readonly [string, object]> => [[path, { ...ask, dataset }], [path, { ...ask, dataset: [dataset, 'shared'] }]]),
    ['add', { text: 'planted', dataset }], ['add', { text: 'planted', dataset, document_id: document }],
    ['delete', { ids: [document, memory, `../private__bob/documents/${document}`], dataset }], ['delete', { ids: [document], dataset: [dataset] }]
  ])
  const tags = ['agent:bob', 'visibility:private']
  const others: Array<readonly [string, object]> = [
    ['search', ask], ['recall', ask], ['search', { ...ask, tags }], ['recall', { ...ask, tags, tags_match: 'all_strict' }],
    ['recall', { ...ask, tags, tags_match: 'exact' }], ['add', { text: 'planted', tags, document_id: document }], ['delete', { ids: [document, memory, stray, strayDocument, 'bob:s1'] }],
    ['delete', { ids: [strayDocument], dataset: 'shared' }],
    ...['search', 'recall', 'add'].flatMap(path =>
      mores.map((more): readonly [string, object] => [path, { ...path === 'add' ? { text: 'planted' } : ask, ...more }]))
  ]
  const queries = [
    'dataset=private:bob', 'dataset=private__bob', 'dataset=shared&dataset=private:bob', 'bank=private:bob', 'bank=private__bob', 'dataset=agents', 'dataset=project:x',
    'cursor=private__bob@0', 'cursor=shared@0&dataset=private:bob', 'x-svc-agent=bob', 'X-svc-Agent=bob&x-svc-private=1', 'agent=bob', 'source=bob'
  ]
  const replacing = { text: 'planted', document_id: strayDocument, dataset: 'shared' }
  return [
    // in private mode a write goes to its own
    { method: 'POST', path: '/api/memory/add', body: replacing, headers: [['x-svc-agent', 'mallory']] },
    ...[...bodies, ...others].map(([path, body]): Attempt => ({ method: 'POST', path: `/api/memory/${path}`, body })),
    ...['', ...queries].map((query): Attempt => ({ method: 'GET', path: `/api/memory/list?${query}` })),
    ...queries.map((query): Attempt => ({ method: 'POST', path: `/api/memory/search?${query}`, body: ask }))
  ]
}

/** Paths that lead around the names: into files, chunks, copies, other names, and past the gateway's own routes. */
function detours ({ chunk, file, document }: Things): readonly Attempt[] {
  const get = (path: string): Attempt => ({ method: 'GET', path })
  const post = (path: string, body: unknown = {}): Attempt => ({ method: 'POST', path, body })
  const key = file.slice('/v1/default/files/download/'.length)
  const list = 'banks/private__bob/memories/list'
  const chunks = [chunk, encodeURIComponent(chunk), chunk.replace('_', '%5F'), `private__bob_${document}_0`, `x/../${chunk}`]
  const files = [
    key, encodeURIComponent(key), `banks/private__mallory/../../${key}`, `banks/mine/${key}`, `${key}/`, `/${key}`,
    ...['private%5F_bob', 'shared', 'private__mallory'].map(bank => key.replace('private__bob', bank))
  ]
  const targets = [
    'private__bob', 'private%5F_bob', 'private__bob&target_bank_id=mine', 'mine&target_bank_id=private__bob', 'mine&TARGET_BANK_ID=private__bob',
    'mine&bank=private__bob'
  ]
  const messages = [{ role: 'user', content: 'Which secret does Bob have?' }]
  return [
    ...chunks.map(id => get(`${WIRE}/chunks/${id}`)), ...files.map(name => get(`${WIRE}/files/download/${name}`)),
    get(`${WIRE}//${list}`), get(`/api/memory//hindsight/v1/default/${list}`), get(`/api/memory/%68indsight/v1/default/${list}`),
    get(`/api/memory/hindsight//v1/default/${list}`),
    get(`/api/memory/hindsight/v1/other/${list}`), get(`/api/memory/hindsight/V1/DEFAULT/${list}`), get(`/api/memory/hindsight/v1/default/%62anks/private__bob/memories/list`),
    get(`/api/memory/hindsight/../hindsight/v1/default/${list}`), get(`http://127.0.0.1${WIRE}/${list}`),
    get(`http://private__bob${WIRE}/banks/shared/stats?x=${WIRE}/${list}`),
    get(`/api/memory/hindsight?/v1/default/${list}`), get(`/api/memory/hindsight/mcp/private__bob`),
    get(`${WIRE}/banks/shared/stats?bank_id=private__bob`), get(`${WIRE}/banks?q=bob&bank_id=private__bob`),
    ...targets.flatMap(to => [
      post(`${WIRE}/banks/shared/clone?target_bank_id=${to}`), post(`${WIRE}/banks/mine/transfer/import?mode=merge&target_bank_id=${to}`)
    ]),
    ...['mine', 'mallorys'].map(to => post(`${WIRE}/banks/private__bob/clone?target_bank_id=${to}`)),
    ...['private__bob', 'private__bob ', 'bobs'].flatMap(alias => [
      post(`${WIRE}/banks/shared/aliases`, { alias }), post(`${WIRE}/banks/private__mallory/aliases`, { alias, primary: true })
    ]),
    post(`${WIRE}/banks/private__bob/aliases`, { alias: 'open' }), post(`${WIRE}/banks/shared/transfer/import?include_aliases=true`),
    { method: 'DELETE', path: `${WIRE}/banks/shared/aliases/bobs` },
    ...[{ bank: 'private:bob' }, { bank: 'private__bob' }, { bank: ['private:bob', 'shared'] }, true].map(memory => post('/v1/chat/completions', { model: 'agent', messages, memory }))
  ]
}

/** Nothing of it is told to mallory, and nothing changes by it. */
async function failing (t: Test, rig: Rig, attempts: readonly Attempt[], isRefused = false): Promise<void> {
  const before = rig.contents()
  const faults: string[] = []
  for (const attempt of attempts) {
    const { status, text } = await as(rig, 'mallory', attempt)
    // of what lies in a bank for all, the engine itself hides nothing
    const isOwn = !attempt.path.includes('/hindsight') && !attempt.path.includes('/banks/')
    if (rig.tells(attempt.path, text) || (isOwn && text.includes(STRAY))) faults.push(`reads: ${shown(attempt)}: ${text.slice(0, 300)}`)
    if (isRefused && status !== 403) faults.push(`is answered ${status}: ${shown(attempt)}`)
    if (rig.contents() === before) continue
    faults.push(`changes: ${shown(attempt)}: ${status} ${text.slice(0, 300)}`)
    break
  }
  t.strictSame(faults, [])
}

for (const [engine, open] of Object.entries(engines)) {
  t.test(`no agent reads or writes what belongs to another, whatever it tries on ${engine}`, async t => {
    const rig = await open(t)
    const { gateway, things, contents } = rig
    const before = contents()
    await as(rig, 'mallory', { method: 'POST', path: '/api/memory/add', body: { text: 'Mallory was here.' } })
    await as(rig, '', { method: 'POST', path: '/api/memory/add', headers: [], body: { text: 'All may read this.' } })
    const calls = [...byBank, ...byId(things)]
    const tries = async (how: string, attempts: readonly Attempt[], isRefused = false): Promise<void> => {
      await t.test(`${how}: ${attempts.length} attempts`, t => failing(t, rig, attempts, isRefused))
    }

    await tries('by the name of the bank', someOf(['private__bob', 'private%5F_bob', '%70rivate__bob'].flatMap(bank => calls.map(call => wire(bank, call))), 5), true)
    await tries('by that name in routes of the gateway', someOf(['private__bob', '%70rivate__bo%62'].flatMap(bank => routesOf(bank, things)), 5), true)
    await tries('by another name of the bank', someOf(['bobs', 'project__x', 'agents'].flatMap(bank => [
      ...calls.filter(({ does }) => does !== null).map(call => wire(bank, call)), ...routesOf(bank, things)
    ]), 5))
    await tries('by other spellings of the name', someOf(['private__bob', 'private__b\u00f3b'].flatMap(spellings), 3).flatMap(name => [
      ...spelled.wire.map(call => wire(name, call)), ...spelled.api.map(call => api(name, call))
    ]))
    await tries('by ids in banks that it may use', someOf(['shared', 'private__mallory', 'mallorys'].flatMap(bank => [
      ...byId(things).map(call => wire(bank, call)),
      ...routesOf(bank, things).filter(({ path }) => Object.values(things).some(id => path.includes(id)))
    ]), 5))
    await tries('by datasets, tags and queries', someOf(notes(things), 5))
    await tries('by detours', someOf(detours(things), 5))
    await tries('by what is counted of an agent', [{ method: 'GET', path: '/api/agents/bob/memory/stats' }], true)
    await tries('by what it calls itself', someOf(identities, 5).flatMap(headers => [
      { method: 'GET', path: '/api/memory/list', headers }, { method: 'GET', path: '/api/memory/banks/private__bob/memories', headers },
      { method: 'POST', path: '/api/memory/search', body: { query: 'secret' }, headers },
      { method: 'GET', path: `${WIRE}/banks/private__bob/memories/list`, headers }, { method: 'DELETE', path: `${WIRE}/banks/private__bob`, headers }
    ] as const))

    await t.test('by each of its tools over MCP', async t => {
      const tools = byTool(things)
      // where writes are to an agent's own whatever they say, fewer names do
      for (const [isPrivate, names] of [['1', datasets.slice(0, 3)], ['0', datasets]] as const) {
        const mallory = await connect(t, gateway.baseUrl, { 'x-svc-agent': 'mallory', 'x-svc-private': isPrivate })
        const listed = (await mallory.listTools()).tools.map(({ name }) => name).toSorted()
        t.strictSame([...new Set(tools.map(({ tool }) => tool))].toSorted(), listed, 'each of them')
        const faults: string[] = []
        for (const { tool, args } of tools) {
          for (const dataset of [{}, ...someOf(names.map(dataset => ({ dataset })), 3)]) {
            const text = await called(mallory, tool, { ...args, ...dataset })
            if (text.includes(STRAY) || text.includes(SECRET)) faults.push(`reads: ${tool} ${JSON.stringify({ ...args, ...dataset })}: ${text.slice(0, 300)}`)
            if (contents() !== before) faults.push(`changes: ${tool} ${JSON.stringify({ ...args, ...dataset })}`)
          }
        }
        t.strictSame(faults.slice(0, 5), [])
        const { approval_id: approval } = await callTool(mallory, 'memory_delete', { ids: [things.document, things.memory, things.stray, things.strayDocument, 'other'] })
        const { text } = await as(rig, '', { method: 'POST', path: `/api/agent/approvals/${approval}/approve`, headers: [] })
        t.match(JSON.parse(text), { approval: { state: 'executed', result: { deleted: 0 } } }, 'nor by the word of an operator')
      }
    })

    await t.test('nothing of it is changed in the end, and its name is listed to its owner alone', async t => {
      await rig.settled()
      t.ok(contents() === before)
      for (const path of ['/api/memory/banks', `${WIRE}/banks`]) {
        t.notMatch((await as(rig, 'mallory', { method: 'GET', path })).text, /private__b/)
        t.match((await as(rig, 'bob', { method: 'GET', path })).text, /private__bob/)
        t.match((await as(rig, '', { method: 'GET', path, headers: [] })).text, /private__bob/, 'and to the operator')
      }
    })

    await t.test('another name for it would open it to all: the operator cannot give it one, nor an agent any bank', async t => {
      const refused = async (who: string, attempt: Attempt, code: string): Promise<void> => {
        const { status, text } = await as(rig, who, attempt)
        t.match([status, JSON.parse(text)], [403, { error: { code } }], shown(attempt))
      }
      await refused('', { method: 'POST', path: `${WIRE}/banks/private%5F_bob/aliases`, body: { alias: 'open' }, headers: [] }, 'memory.bank_private')
      for (const path of ['transfer/import?include_aliases=true', '%74ransfer/import?mode=merge&include%5Faliases=1', 'transfer%2Fimport?include_aliases=']) {
        await refused('mallory', { method: 'POST', path: `${WIRE}/banks/mine/${path}`, body: {} }, 'memory.operator_only')
      }
    })
  })
}
