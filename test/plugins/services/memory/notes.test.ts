import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t from 'tap'
import { createFakeEngine, FakeClock, type EngineScript } from '../../../../kernel/testing/index.js'
import { wireGateway } from '../../../wire/wire-gateway.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost, memoryPlugins, type MemoryHost } from './host.js'

const as = (agent: string, isPrivate = false): Record<string, string> => ({ 'x-svc-agent': agent, ...isPrivate ? { 'x-svc-private': '1' } : {} })

t.test('memories are written to and searched in their dataset', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  const add = async (body: object, headers = {}) => await host.call('POST', '/api/memory/add', body, headers)
  const search = async (body: object, headers = {}) => (await host.call('POST', '/api/memory/search', body, headers)).json.items

  await t.test('what is added is stamped with who wrote it, and found again', async t => {
    const { status, json } = await add({ text: 'Alice works at Acme Corp.', tags: ['people', 'agent:mallory', 'visibility:private'], metadata: { pages: 3, is: true } }, as('alice'))
    t.match({ status, json }, { status: 200, json: { id: /^[0-9a-f-]{36}$/, timestamp: /^\d{4}-.*Z$/, operation_id: /.+/ } })
    t.match(fake.bank('shared').units, [{ document_id: json.id, tags: ['people', 'agent:alice'], metadata: { pages: '3', is: 'true' } }])
    t.strictSame(fake.bank('shared').units[0]!.tags, ['people', 'agent:alice'], 'tags that the gateway stands for are not a client\'s to set')
    const [found] = await search({ query: 'Where does Alice work?' })
    t.match(found, { id: json.id, text: 'Alice works at Acme Corp.', dataset: 'shared', source: 'alice', type: 'world', score: Number, timestamp: json.timestamp, metadata: { pages: '3' } })
    await add({ text: 'Nobody said so.' })
    t.match(fake.bank('shared').units.at(-1), { tags: ['agent:anonymous'] })
    t.notMatch(fake.calls.join('\n'), '/documents/', 'a new one costs no question about what it would replace')
  })

  await t.test('an id that is used again replaces', async t => {
    await add({ text: 'first', document_id: 'note-1', dataset: 'project:x' })
    await add({ text: 'second', document_id: 'note-1', dataset: 'project:x' })
    t.match(fake.bank('project__x').units, [{ text: 'second', document_id: 'note-1' }])
    t.equal(fake.bank('project__x').units.length, 1)
  })

  await t.test('what an agent says in one session is one document, unless it names another', async t => {
    const said = async (text: string, session: string | number, more = {}): Promise<string> =>
      (await add({ text, dataset: 'project:s', metadata: { session_id: session }, ...more }, as('alice'))).json.id
    t.equal(await said('first', 's1'), 'alice:s1')
    t.equal(await said('second', 's1'), 'alice:s1')
    t.equal(await said('third', 2), 'alice:2')
    t.equal(await said('fourth', 's1', { document_id: 'own' }), 'own')
    t.match(await said('fifth', 'no name/at all'), /^[0-9a-f-]{36}$/)
    t.equal((await add({ text: 'sixth', dataset: 'project:s', metadata: { session_id: 's1' } })).json.id, 'anonymous:s1')
    t.strictSame(fake.bank('project__s').units.map(({ text }) => text), ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'], 'nothing is replaced')
    t.match((await host.call('POST', '/api/memory/delete', { ids: ['alice:s1'], dataset: 'project:s' })).json, { deleted: 1 })
  })

  await t.test('a private mode writes to the agent\'s own whatever the body says, and reads it beside what is shared', async t => {
    await add({ text: 'Alice has a secret.', dataset: 'shared' }, as('alice', true))
    t.match(fake.bank('private__alice').units, [{ tags: ['agent:alice', 'visibility:private'] }])
    const own = await search({ query: 'alice' }, as('alice', true))
    t.strictSame(own.map(({ dataset }: { dataset: string }) => dataset), ['shared', 'private:alice'], 'what is shared comes first')
    t.strictSame((await search({ query: 'alice' }, as('alice'))).map(({ dataset }: { dataset: string }) => dataset), ['shared'])
  })

  await t.test('a time window drops what is outside of it', async t => {
    t.equal((await search({ query: 'alice', after: '2020-01-01' })).length, 1)
    t.equal((await search({ query: 'alice', after: '2999-01-01T00:00:00Z' })).length, 0)
    t.equal((await search({ query: 'alice', before: '2020-01-01' })).length, 0)
    const asked = JSON.parse(fake.seen.at(-1)!.body) as object
    t.match(asked, { max_tokens: 10 * 256 * 4, types: ['world', 'experience', 'observation'] })
  })

  await t.test('recall takes as much as fits', async t => {
    await add({ text: `budget ${'long '.repeat(100)}`, dataset: 'agents' })
    await add({ text: 'budget short', dataset: 'agents' })
    const recall = async (max: number) => (await host.call('POST', '/api/memory/recall', { query: 'budget', max_tokens: max, dataset: 'agents' })).json.items
    t.strictSame((await recall(20)).map(({ text }: { text: string }) => text), ['budget short'])
    t.equal((await recall(4096)).length, 2)
  })

  await t.test('a list goes on from bank to bank', async t => {
    const texts: string[] = []
    let cursor: string | null = ''
    let pages = 0
    while (cursor !== null) {
      const { json } = await host.call('GET', `/api/memory/list?limit=1${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`, undefined, as('alice', true))
      texts.push(...json.items.map(({ text }: { text: string }) => text))
      cursor = json.next_cursor
      pages++
    }
    t.strictSame(texts.sort(), ['Alice has a secret.', 'Alice works at Acme Corp.', 'Nobody said so.'])
    t.ok(pages >= 3)
    t.match((await host.call('GET', '/api/memory/list?cursor=elsewhere@0')).json.error, { code: 'validation.invalid', param: 'cursor' })
    t.match((await host.call('GET', '/api/memory/list?bank=project:x')).json.items, [{ text: 'second', score: null }])
  })

  await t.test('forgetting counts what was there, and is written down', async t => {
    const { json: { id } } = await add({ text: 'to be forgotten' })
    const { json } = await host.call('POST', '/api/memory/delete', { ids: [id, 'not-there', '..', 'a/b'] }, as('alice'))
    t.strictSame(json, { deleted: 1 })
    t.notOk(fake.bank('shared').units.some(unit => unit.document_id === id))
    t.match(await host.audit(), [{ action: 'memory.items.delete', target: `${id},not-there,..,a/b`, actor: 'mcp:alice', outcome: 'ok', after: { deleted: 1 } }])
    fake.instead.set(`/v1/default/banks/shared/documents/${id}`, (_request, response) => { response.writeHead(500).end('{"detail":"database is gone"}') })
    const failed = await host.call('POST', '/api/memory/delete', { ids: [id] })
    t.match({ status: failed.status, json: failed.json }, { status: 502, json: { error: { code: 'memory.engine_error', details: { upstream_status: 500 } }, detail: 'database is gone' } })
    t.match((await host.audit())[0], { action: 'memory.items.delete', outcome: 'error', error: /database is gone/ })
  })

  await t.test('where one of several cannot be forgotten, the row tells how many are gone', async t => {
    const ids = ['gone-1', 'gone-2', 'stays-3', 'stays-4']
    for (const id of ids) await add({ text: `${id} is here`, document_id: id, dataset: 'project:gone' })
    fake.instead.set('/v1/default/banks/project__gone/documents/stays-3', (_request, response) => { response.writeHead(500).end('{"detail":"database is gone"}') })
    t.equal((await host.call('POST', '/api/memory/delete', { ids, dataset: 'project:gone' })).status, 502)
    t.strictSame(fake.bank('project__gone').units.map(({ document_id: id }) => id), ['stays-3', 'stays-4'])
    t.match((await host.audit())[0], { outcome: 'error', error: /database is gone/, after: { deleted: 2, ids: 4 } })
    t.equal((await host.call('POST', '/api/memory/delete', { ids: ['stays-3'], dataset: 'project:gone' })).status, 502)
    t.match((await host.audit())[0], { outcome: 'error', after: { deleted: 0, ids: 1 } })
  })

  await t.test('an answer of another shape is no list of nothing', async t => {
    fake.instead.set('/v1/default/banks/shared/memories/recall', (_request, response) => { response.writeHead(200, { 'content-type': 'application/json' }).end('{"memories":[]}') })
    t.match((await host.call('POST', '/api/memory/search', { query: 'x' })).json.error, {
      code: 'memory.engine_shape', details: { expected_key: 'results', expected_type: 'list', got_keys: ['memories'] }
    })
    fake.instead.clear()
  })

  await t.test('the page of another server is no word of an engine that something was kept, deleted or listed', async t => {
    const bank = '/v1/default/banks/shared'
    for (const path of [`${bank}/memories`, `${bank}/memories/recall`, `${bank}/memories/list`, `${bank}/documents/d-1`]) {
      fake.instead.set(path, (_request, response) => { response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>') })
    }
    for (const [method, path, body] of [
      ['POST', 'add', { text: 'it must not be lost' }], ['POST', 'search', { query: 'x' }], ['GET', 'list'], ['POST', 'delete', { ids: ['d-1'] }]
    ] as const) {
      const { status, json } = await host.call(method, `/api/memory/${path}`, body)
      t.match([status, json.error], [502, { code: 'memory.engine_shape', message: /\[memory\] url/ }], path)
    }
    fake.instead.clear()
  })

  await t.test('names of agents and datasets are of closed sets', async t => {
    const table: ReadonlyArray<readonly [string, object, Record<string, string>, string]> = [
      ['/api/memory/add', { text: 'x' }, as('private:bob'), 'memory.agent_id_invalid'],
      ['/api/memory/add', { text: 'x' }, as('a b'), 'memory.agent_id_invalid'],
      ['/api/memory/add', { text: 'x' }, as('x'.repeat(65)), 'memory.agent_id_invalid'],
      ['/api/memory/add', { text: 'x' }, as('../bob'), 'memory.agent_id_invalid'],
      ['/api/memory/add', { text: 'x' }, { 'x-svc-private': 'yes' }, 'memory.namespace_invalid'],
      ['/api/memory/add', { text: 'x', dataset: 'private:alice' }, as('alice'), 'memory.namespace_invalid'],
      ['/api/memory/add', { text: 'x', dataset: 'nowhere' }, as('alice'), 'memory.namespace_invalid'],
      ['/api/memory/add', { text: 'x', dataset: 'project:a/../b' }, as('alice'), 'memory.namespace_invalid'],
      ['/api/memory/search', { query: 'x', dataset: 'private:bob' }, as('alice', true), 'memory.namespace_invalid'],
      ['/api/memory/add', { text: 'x', source: 'me' }, {}, 'validation.unknown_keys'],
      ['/api/memory/add', { text: ' ' }, {}, 'validation.invalid'],
      ['/api/memory/add', { text: 'x', document_id: 'a/b' }, {}, 'validation.invalid']
    ]
    for (const [path, body, headers, code] of table) {
      const { status, json } = await host.call('POST', path, body, headers)
      t.match({ status, json }, { status: 400, json: { error: { code } } }, `${path} ${JSON.stringify({ body, headers })}`)
    }
    t.equal((await add({ text: 'x' }, { 'x-svc-agent': '  ', 'x-svc-private': 'off' })).status, 200, 'a blank name is none')
  })
})

t.test('a reranker has its say in what several datasets found, which stays as it is where that fails', async t => {
  const fake = await fakeHindsight(t)
  const far = await createFakeEngine()
  t.teardown(() => far.close())
  const clock = new FakeClock()
  const url = (of: string): string => `engine = "hindsight"\nurl = "${of}"\n`
  const rerank = `[memory.embedding]\nrerank_gateway_url = "${far.origin}"\nrerank_model = "judge"\n`
  const host = await memoryHost(t, { svc: url(fake.url) + rerank, clock })
  const embedded = await memoryHost(t, { svc: rerank })
  const scores = (of: (text: string) => unknown) => far.answer(({ body }) => {
    const { documents } = JSON.parse(body.toString()) as { documents: string[] }
    return { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ results: documents.map((text, index) => ({ index, relevance_score: of(text) })) })] }
  })
  const recall = async (of: MemoryHost, dataset: string | readonly string[] = ['project:a', 'project:b']): Promise<Array<{ text: string, score: number }>> =>
    (await of.call('POST', '/api/memory/recall', { query: 'tea and cake', dataset })).json.items
  const order = async (of: MemoryHost, dataset?: string): Promise<string> => (await recall(of, dataset)).map(({ text }) => text.slice(-1)).join('')
  for (const one of [host, embedded]) {
    for (const [text, dataset] of [['Tea and cake, one', 'a'], ['tea 2', 'a'], ['Tea and cake 3', 'b']] as const) await one.call('POST', '/api/memory/add', { text, dataset: `project:${dataset}` })
  }
  scores(text => text.endsWith('3') ? 3 : -3)
  for (const one of [host, embedded]) {
    const { headers, json: { items: [first, second] } } = await one.call('POST', '/api/memory/recall', { query: 'tea and cake', dataset: ['project:a', 'project:b'] })
    t.match([first, second], [{ text: 'Tea and cake 3', dataset: 'project:b' }, { text: 'Tea and cake, one' }])
    t.ok(first.score > second.score && first.score <= 1, `${first.score} and ${second.score}`)
    t.equal(headers.get('x-svc-recall'), one === host ? 'hindsight+rerank' : 'text+rerank')
  }
  t.match(far.requests.at(-1), { method: 'POST', url: '/v1/rerankings' })
  t.match(JSON.parse(far.requests.at(-1)!.body.toString()), { model: 'judge', query: 'tea and cake', documents: { length: 3 }, top_n: 3 })

  const calls = (): number => far.requests.length
  const before = calls()
  t.match(await recall(host, 'project:b'), [{ text: 'Tea and cake 3' }])
  t.equal(calls(), before, 'one memory has no order')
  await recall(embedded, 'project:a')
  t.equal(calls(), before + 1, 'the embedded engine reranks a bank of its own, and nothing does it again')
  for (const lie of [null, 'much']) {
    scores(() => lie)
    t.equal(await order(host), 'e32', `a score of ${JSON.stringify(lie)}`)
    const seen = calls()
    t.equal(await order(host), 'e32')
    t.equal(calls(), seen, 'it is spared for a while')
    await clock.advance(5000)
  }
  await far.close()
  t.equal(await order(host), 'e32', 'one that is away')

  await clock.advance(5000)
  const sockets: Socket[] = []
  // takes connections, and says nothing of the TLS that a connection begins with
  const mute = createServer(socket => { sockets.push(socket.on('error', () => {})) }).listen(0, '127.0.0.1')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    mute.close()
  })
  await once(mute, 'listening')
  const embedding = {
    rerank_gateway_url: `https://127.0.0.1:${(mute.address() as AddressInfo).port}`, rerank_connect_timeout_s: 0.05, rerank_read_timeout_s: 60
  }
  t.equal((await host.call('PATCH', '/api/settings', { memory: { embedding } })).status, 200)
  t.equal(await order(host), 'e32', 'one that is not reached')
  t.equal(sockets.length, 1)
  t.match(host.logs.findLast(({ message }) => message.includes('the reranker failed')), { fields: { error: /timeout: 50ms/ } })
})

t.test('a reranker is shown the best fifty of what several datasets found, and one that never answers is given up', async t => {
  const fake = await fakeHindsight(t)
  const texts = Array.from({ length: 60 }, (_, i) => `${i % 2 === 0 ? 'tea' : 'tea and cake'}, ${i}`)
  for (const [i, text] of texts.entries()) {
    fake.bank(`project__${i % 3}`).units.push({ id: `u-${i}`, text, document_id: `d-${i}`, tags: [], metadata: {}, mentioned_at: '2026-01-01T00:00:00Z' })
  }
  const shown: string[][] = []
  const scoreOf = (text: string): number => text.endsWith(' 59') ? 9 : text.startsWith('tea and cake') ? 8 : 1
  let script = (documents: readonly string[]): EngineScript =>
    ({ chunks: [JSON.stringify({ results: documents.map((text, index) => ({ index, relevance_score: scoreOf(text) })) })] })
  const gateway = await wireGateway(t, {
    plugins: memoryPlugins,
    svc: `[memory]\nenabled = true\nengine = "hindsight"\nurl = "${fake.url}"\n[memory.embedding]\nrerank_read_timeout_s = 60\n`,
    files: {
      'etc/svc/slots/rerank.toml': 'type = "reranking"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "judge"\n',
      'var/lib/svc/registry/registry.toml': '[models.judge]\npath = "/dev/null"\n'
    },
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { documents } = JSON.parse(body.toString()) as { readonly documents: string[] }
      shown.push(documents)
      return { headers: { 'content-type': 'application/json' }, ...script(documents) }
    })
  })
  const send = (method: string, path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const recall = async (): Promise<{ readonly ranOn: string | null, readonly found: string[] }> => {
    const answer = await send('POST', '/api/memory/recall', { query: 'tea and cake', dataset: ['project:0', 'project:1', 'project:2'] })
    const { items } = await answer.json() as { readonly items: ReadonlyArray<{ readonly text: string }> }
    return { ranOn: answer.headers.get('x-svc-recall'), found: items.map(({ text }) => text) }
  }
  const ranked = await recall()
  t.match(ranked, { ranOn: 'hindsight+rerank', found: { 0: 'tea and cake, 59', length: 60 } })
  t.equal(shown[0]!.length, 50)
  t.equal(shown[0]!.filter(text => text.startsWith('tea and cake')).length, 30, 'those that were found best')

  script = () => ({ headAfterMs: Infinity })
  const embedding = { rerank_connect_timeout_s: 0.05, rerank_read_timeout_s: 0.05 }
  t.equal((await send('PATCH', '/api/settings', { memory: { embedding } })).status, 200)
  const { ranOn, found } = await recall()
  t.equal(ranOn, 'hindsight')
  t.strictSame(found, [0, 1, 2].flatMap(bank => texts.filter((_, i) => i % 3 === bank)).toSorted((a, b) => b.split(' ').length - a.split(' ').length), 'as they were found')
  t.match(gateway.logs.findLast(({ message }) => message.includes('the reranker failed')), { fields: { error: 'it did not answer within 100 ms' } })
})

t.test('a reranker that contradicts what several datasets found, or ranks at random, does not decide', async t => {
  const far = await createFakeEngine()
  t.teardown(() => far.close())
  let scoreOf = (_text: string): number => 0
  far.answer(({ body }) => {
    const { documents } = JSON.parse(body.toString()) as { documents: string[] }
    return { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ results: documents.map((text, index) => ({ index, relevance_score: scoreOf(text) })) })] }
  })
  // the time of a memory counts a little, too
  const plain = await memoryHost(t, { clock: new FakeClock() })
  const judged = await memoryHost(t, { clock: new FakeClock(), svc: `[memory.embedding]\nrerank_gateway_url = "${far.origin}"\nrerank_model = "judge"\n` })
  const words = ['alpha', 'beta', 'gamma', 'delta']
  for (const one of [plain, judged]) {
    for (let i = 0; i < 48; i++) await one.call('POST', '/api/memory/add', { text: `${words.slice(0, 1 + i % 4).join(' ')} in note ${i}`, dataset: `project:${i % 3}` })
  }
  const recall = async (of: MemoryHost): Promise<{ readonly ranOn: string | null, readonly texts: string[] }> => {
    const { headers, json } = await of.call('POST', '/api/memory/recall', { query: words.join(' '), dataset: ['project:0', 'project:1', 'project:2'] })
    return { ranOn: headers.get('x-svc-recall'), texts: (json.items as Array<{ text: string }>).map(({ text }) => text) }
  }
  const found = await recall(plain)
  t.equal(found.ranOn, 'text')
  const isGood = (text: string): boolean => text.startsWith(words.join(' '))
  t.ok(found.texts.slice(0, 12).every(isGood), 'those with all of the words are first')
  scoreOf = text => found.texts.indexOf(text)
  t.strictSame(await recall(judged), found, 'reversed')
  const kept: number[] = []
  for (let seed = 1; seed <= 20; seed++) {
    scoreOf = text => createHash('sha256').update(`${seed} ${text}`).digest().readUInt32BE() / 2 ** 32
    kept.push((await recall(judged)).texts.slice(0, 12).filter(isGood).length)
  }
  t.ok(kept.every(count => count >= 10), `at random: ${kept.join(' ')}`)
  scoreOf = text => isGood(text) ? text.endsWith(' 47') ? 9 : 8 : 1
  // the scores before had the same name, and this one makes up for them
  for (let i = 0; i < 30; i++) await recall(judged)
  const agreed = await recall(judged)
  t.match(agreed, { ranOn: 'text+rerank', texts: { 0: /note 47$/ } }, 'one that agrees has its say')
})

for (const engine of ['a Hindsight server', 'the embedded engine']) {
  t.test(`one private memory of a document, the last of many or invalidated, hides it from other agents on ${engine}`, async t => {
    const host = await memoryHost(t, engine === 'the embedded engine' ? {} : { url: (await fakeHindsight(t)).url })
    const bank = '/api/memory/hindsight/v1/default/banks/shared'
    const own = { content: 'Bob has a secret.', tags: ['agent:bob', 'visibility:private'], timestamp: '2026-01-02T00:00:00Z' }
    const others = Array.from({ length: 101 }, (_, i) => ({ content: `Ship ${i} is at sea.`, timestamp: '2026-01-03T00:00:00Z' }))
    const keep = async (id: string, items: readonly object[]): Promise<void> => {
      const kept = await host.call('POST', `${bank}/memories`, { items: items.map(item => ({ ...item, document_id: id, update_mode: 'append' })) })
      t.equal(kept.status, 200, kept.text)
    }
    const listed = async (id: string): Promise<ReadonlyArray<{ id: string, tags: readonly string[] }>> =>
      (await host.call('GET', `${bank}/memories/list?document_id=${id}&limit=1000`)).json.items
    await keep('long', [...others, own])
    await keep('former', [others[0]!, own])
    await keep('owned', Array.from({ length: 101 }, () => own))
    await keep('open', [others[0]!])
    t.equal((await listed('long')).findIndex(({ tags }) => tags.includes('visibility:private')), 101)
    const { id: secret } = (await listed('former')).find(({ tags }) => tags.includes('visibility:private'))!
    t.equal((await host.call('PATCH', `${bank}/memories/${secret}`, { state: 'invalidated' })).status, 200)
    t.equal((await listed('former')).length, 1)

    const remove = async (who: string, isPrivate: boolean): Promise<unknown> =>
      (await host.call('POST', '/api/memory/delete', { ids: ['long', 'former', 'owned'], dataset: 'shared' }, as(who, isPrivate))).json
    for (const id of ['long', 'former', 'owned']) {
      t.match((await host.call('POST', '/api/memory/add', { text: 'planted', document_id: id, dataset: 'shared' }, as('mallory'))).json, { error: { code: 'validation.invalid' } })
    }
    t.match(await remove('mallory', true), { deleted: 0 })
    t.match(await remove('bob', false), { deleted: 0 }, 'its writer sees it in private mode alone')
    t.match((await host.call('POST', '/api/memory/delete', { ids: ['open'], dataset: 'shared' }, as('mallory'))).json, { deleted: 1 })
    t.match(await remove('bob', true), { deleted: 3 })
  })
}

/** What each mode finds of what has these tags of its own, by the tags that are asked for. */
const modes: ReadonlyArray<readonly [asked: readonly string[], match: string | undefined, found: readonly string[]]> = [
  [['people'], undefined, ['none', 'people', 'people work', 'wire none', 'wire people']],
  [['people'], 'any', ['none', 'people', 'people work', 'wire none', 'wire people']],
  [['people'], 'all', ['none', 'people', 'people work', 'wire none', 'wire people']],
  [['people'], 'any_strict', ['people', 'people work', 'wire people']],
  [['people'], 'all_strict', ['people', 'people work', 'wire people']],
  [['people'], 'exact', ['people', 'wire people']],
  [['work', 'people'], 'any', ['none', 'people', 'people work', 'wire none', 'wire people', 'work']],
  [['work', 'people'], 'all', ['none', 'people work', 'wire none']],
  [['work', 'people'], 'any_strict', ['people', 'people work', 'wire people', 'work']],
  [['work', 'people'], 'all_strict', ['people work']],
  [['work', 'people'], 'exact', ['people work']],
  [['nowhere'], 'any', ['none', 'wire none']],
  [['nowhere'], 'all_strict', []],
  [['nowhere'], 'exact', []],
  [[], 'exact', ['none', 'wire none']],
  [[], 'all_strict', ['none', 'people', 'people work', 'wire none', 'wire people', 'work']],
  [['agent:bob'], 'any', ['people work', 'work']],
  [['agent:bob', 'people'], 'all', ['none', 'people work', 'wire none']],
  [['agent:bob', 'people', 'work'], 'exact', ['people work']]
]

for (const engine of ['a Hindsight server', 'the embedded engine']) {
  t.test(`modes of tags mean those of users, whatever the gateway stamps, on ${engine}`, async t => {
    const fake = await fakeHindsight(t)
    const host = await memoryHost(t, engine === 'the embedded engine' ? {} : { url: fake.url })
    const dataset = 'project:tags'
    for (const [who, tags] of [['alice', []], ['alice', ['people']], ['bob', ['work', 'people']], ['bob', ['work']]] as const) {
      await host.call('POST', '/api/memory/add', { text: `tea ${tags.toSorted().join(' ') || 'none'}`, tags, dataset }, as(who))
    }
    const items = [{ content: 'tea wire none' }, { content: 'tea wire people', tags: ['people'] }]
    await host.call('POST', '/api/memory/hindsight/v1/default/banks/project__tags/memories', { items })
    const texts = (found: ReadonlyArray<{ readonly text: string }>): string[] => found.map(({ text }) => text.slice('tea '.length)).toSorted()
    for (const [tags, match, found] of modes) {
      const { json } = await host.call('POST', '/api/memory/recall', { query: 'tea', dataset, tags, ...match === undefined ? {} : { tags_match: match } })
      t.strictSame(texts(json.items), found, `${match ?? 'no mode'} ${tags.join(' ')}`)
    }
    t.strictSame(texts((await host.call('POST', '/api/memory/search', { query: 'tea', dataset, tags: ['people'] })).json.items), ['people', 'people work', 'wire people'], 'a search takes those that have one of them')
    t.strictSame((await host.call('POST', '/api/memory/recall', { query: 'tea', dataset: 'project:none', tags: ['people'] })).json, { items: [], ran_on: [] }, 'a bank that nothing was written to')
  })

  t.test(`what has other tags leaves room for what is asked for on ${engine}`, async t => {
    const fake = await fakeHindsight(t)
    fake.room = 10
    const host = await memoryHost(t, engine === 'the embedded engine' ? {} : { url: fake.url })
    const others = Array.from({ length: 30 }, (_, i) => ({ content: `tea tea tea, ${i}: ${'more '.repeat(40)}`, tags: ['people', 'work', 'agent:bob'] }))
    await host.call('POST', '/api/memory/hindsight/v1/default/banks/project__full/memories', { items: others })
    for (const tags of [[], ['people']]) await host.call('POST', '/api/memory/add', { text: `${'less '.repeat(20)}tea ${tags.length}`, tags, dataset: 'project:full' }, as('alice'))
    for (const [tags, match, found] of [[['people'], 'exact', '1'], [['nowhere'], 'any', '0'], [['nowhere'], 'all', '0']] as const) {
      const { json } = await host.call('POST', '/api/memory/recall', { query: 'tea', max_tokens: 300, dataset: 'project:full', tags, tags_match: match })
      t.match(json.items, [{ text: new RegExp(`tea ${found}$`) }], match)
    }
  })

  t.test(`what is private to one agent where all may read leaves room for what others may see on ${engine}`, async t => {
    const fake = await fakeHindsight(t)
    fake.room = 10
    const host = await memoryHost(t, engine === 'the embedded engine' ? {} : { url: fake.url })
    const bank = '/api/memory/hindsight/v1/default/banks/shared/memories'
    const strays = Array.from({ length: 200 }, (_, i) => ({ content: `tea and cake for Bob, ${i}: ${'tea and cake '.repeat(40)}`, tags: ['agent:bob', 'visibility:private'] }))
    await host.call('POST', bank, { items: strays })
    await host.call('POST', '/api/memory/add', { text: `${'Something else, '.repeat(10)}and tea.` }, as('alice'))
    for (const who of [as('mallory'), as('mallory', true), as('bob'), {}]) {
      for (const [path, body] of [['search', { query: 'tea and cake', limit: 2 }], ['recall', { query: 'tea and cake', max_tokens: 500 }]] as const) {
        const { json } = await host.call('POST', `/api/memory/${path}`, body, who)
        t.match(json.items, [{ source: 'alice' }], `${path} ${JSON.stringify(who)}`)
        t.equal(json.items.length, 1)
      }
    }
    const { json: { items } } = await host.call('POST', '/api/memory/recall', { query: 'tea and cake', max_tokens: 2000 }, as('bob', true))
    t.match(items[0], { source: 'bob' }, 'and its writer finds it')
    const recalls = (): number => fake.calls.filter(call => call.endsWith('/recall')).length
    await host.call('POST', '/api/memory/add', { text: 'Tea and cake for all.', dataset: 'agents' }, as('alice'))
    const before = recalls()
    const open = await host.call('POST', '/api/memory/search', { query: 'tea and cake', dataset: 'agents' }, as('mallory'))
    t.match(open.json.items, [{ text: 'Tea and cake for all.' }])
    if (engine === 'a Hindsight server') t.equal(recalls() - before, 1, 'where there is none of it, it is asked once')
  })

  t.test(`what is private to one agent where all may read is in no one's way who asks by its tags on ${engine}`, async t => {
    const fake = await fakeHindsight(t)
    fake.room = 10
    const host = await memoryHost(t, engine === 'the embedded engine' ? {} : { url: fake.url })
    const strays = Array.from({ length: 200 }, (_, i) => ({ content: `tea for Bob, ${i}: ${'tea '.repeat(80)}`, tags: ['people', 'agent:bob', 'visibility:private'] }))
    await host.call('POST', '/api/memory/hindsight/v1/default/banks/shared/memories', { items: strays })
    await host.call('POST', '/api/memory/add', { text: `${'Something else, '.repeat(10)}and tea.`, tags: ['people'] }, as('alice'))
    await host.call('POST', '/api/memory/add', { text: `${'Something else, '.repeat(10)}and tea at work.`, tags: ['work'] }, as('alice'))
    const search = await host.call('POST', '/api/memory/search', { query: 'tea', tags: ['people'], limit: 2 }, as('mallory'))
    t.match(search.json.items, [{ source: 'alice', tags: ['people', 'agent:alice'] }], 'search')
    t.equal(search.json.items?.length, 1)
    for (const match of ['any', 'all', 'any_strict', 'all_strict', 'exact']) {
      const { json } = await host.call('POST', '/api/memory/recall', { query: 'tea', tags: ['people'], tags_match: match, max_tokens: 500 }, as('mallory'))
      t.match(json.items, [{ source: 'alice', tags: ['people', 'agent:alice'] }], match)
      t.equal(json.items?.length, 1, match)
    }
  })
}

t.test('a Hindsight server is asked once which tags a bank has, and told none of them where there are very many', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  for (const [bank, count] of [['few', 900], ['many', 2_500]] as const) {
    const items = Array.from({ length: count }, (_, n) => ({ content: `Note ${n}.`, tags: [`t${n}`] }))
    await host.call('POST', `/api/memory/hindsight/v1/default/banks/project__${bank}/memories`, { items: [...items, { content: 'tea' }, { content: 'tea', tags: ['people'] }] })
    fake.seen.splice(0)
    const { json } = await host.call('POST', '/api/memory/recall', { query: 'tea', dataset: `project:${bank}`, tags: ['people'], tags_match: 'any' })
    t.equal(json.items.length, 2, bank)
    t.equal(fake.seen.filter(({ url }) => url.includes('/tags')).length, 1, bank)
    const { body } = fake.seen.find(({ url }) => url.endsWith('/recall'))!
    t.equal(body.includes('"t7"'), bank === 'few', bank)
  }
})

t.test('a search and a recall tell when they ran on words alone', async t => {
  const fake = await fakeHindsight(t)
  const embedded = await memoryHost(t)
  const server = await memoryHost(t, { url: fake.url })
  for (const [host, ranOn] of [[embedded, 'text'], [server, 'hindsight']] as const) {
    await host.call('POST', '/api/memory/add', { text: 'Tea is served.' })
    for (const path of ['search', 'recall']) {
      const { headers, json } = await host.call('POST', `/api/memory/${path}`, { query: 'tea' })
      t.match([headers.get('x-svc-recall'), json], [ranOn, { items: [{ text: 'Tea is served.' }], ran_on: [ranOn] }], path)
    }
  }
})

t.test('the embedded engine keeps the same promises', async t => {
  const host = await memoryHost(t)
  const ok = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
    const answer = await host.call(method, path, body, headers)
    t.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.status < 300 ? '' : answer.text}`)
    return answer.json
  }
  const shared = await ok('POST', '/api/memory/add', { text: 'Alice works at Acme Corp in Berlin.', tags: ['people'] }, as('alice'))
  const bobs = await ok('POST', '/api/memory/add', { text: 'Bob has a secret in Berlin.' }, as('bob', true))
  t.match(await ok('POST', '/api/memory/search', { query: 'who is in Berlin?' }, as('bob', true)), {
    items: [{ id: shared.id, dataset: 'shared', source: 'alice', score: Number }, { id: bobs.id, dataset: 'private:bob', source: 'bob' }]
  }, 'what was added is found at once')
  t.strictSame((await ok('POST', '/api/memory/search', { query: 'who is in Berlin?' }, as('alice', true))).items.length, 1)
  t.match(await ok('GET', '/api/memory/list', undefined, as('bob', true)), { items: [{ id: shared.id }, { id: bobs.id }], next_cursor: null })

  const [{ memory_id: unit }] = (await ok('GET', '/api/memory/list?dataset=private:bob', undefined, as('bob', true))).items
  const wire = '/api/memory/hindsight/v1/default'
  const { items: chunks } = await ok('GET', `${wire}/banks/private__bob/documents/${bobs.id as string}/chunks`)
  for (const [method, path, body] of [
    ['GET', `${wire}/banks/shared/memories/${unit as string}`], ['GET', `${wire}/banks/private__bob/memories/${unit as string}`],
    ['PATCH', `${wire}/banks/shared/memories/${unit as string}`, { text: 'planted' }], ['DELETE', `${wire}/banks/shared/memories/${unit as string}`],
    ['GET', `${wire}/banks/shared/documents/${bobs.id as string}`], ['DELETE', `${wire}/banks/shared/documents/${bobs.id as string}`],
    ['GET', `${wire}/chunks/${encodeURIComponent(String(chunks[0].chunk_id))}`], ['POST', `${wire}/banks/private__bob/memories/recall`, { query: 'secret' }],
    ['POST', `${wire}/banks/shared/memories/recall`, { query: 'secret', tags: ['visibility:private'] }],
    ['POST', `${wire}/banks/shared/clone?target_bank_id=private__bob`], ['POST', '/api/memory/delete', { ids: [bobs.id, unit] }]
  ] as const) {
    const { text } = await host.call(method, path, body, as('mallory', true))
    t.notMatch(text, /Bob has a secret/, `${method} ${path}`)
  }
  t.match(await ok('GET', '/api/memory/list?dataset=private:bob', undefined, as('bob', true)), { items: [{ text: 'Bob has a secret in Berlin.' }] })
  const { operation_id: operation } = await ok('POST', `${wire}/banks/private__bob/transfer/export`, undefined, as('bob'))
  const { json: { result_metadata: { download_url: file } } } = await host.until(`${wire}/banks/private__bob/operations/${operation as string}`, ({ status }) => status === 'completed')
  const zip = await host.fetch(`/api/memory/hindsight${file as string}`, { headers: as('bob') }).then(answer => answer.blob())
  for (const path of [file as string, (file as string).replace('private__bob', 'shared'), (file as string).replace('private__bob', 'private__mallory')]) {
    t.ok((await host.call('GET', `/api/memory/hindsight${path}`, undefined, as('mallory', true))).status >= 400, 'the file of an export is of its bank')
  }
  for (const [bank, query] of [['private__bob', ''], ['mallorys', '?target_bank_id=private__bob&mode=merge'], ['mallorys', '']] as const) {
    // the archive says which bank it is of; where it goes is what the request says
    const form = new FormData()
    form.append('file', zip, 'bob.zip')
    const sent = await host.fetch(`${wire}/banks/${bank}/transfer/import${query}`, { method: 'POST', body: form, headers: as('mallory', true) })
    t.equal(sent.status, bank === 'mallorys' && query === '' ? 202 : 403)
  }
  await host.until(`${wire}/banks/mallorys/operations`, ({ operations }) => operations[0]?.status === 'completed')
  t.equal((await ok('GET', '/api/memory/list?dataset=private:bob', undefined, as('bob', true))).items.length, 1)
  t.match(await ok('GET', '/api/memory/engine'), { engine: 'embedded', reachable: true, version: '1.1.0', banks_total: Number, degraded: false })
  t.match(await ok('GET', '/api/memory/banks/shared/profile'), { bank_id: 'shared', disposition: { skepticism: 3 } })
  t.match(await ok('GET', '/api/memory/banks/shared/stats'), { bank_id: 'shared', total_nodes: 1 })
  t.match(await ok('GET', '/api/memory/banks/shared/graph/subgraph'), { total_units: 1, returned_nodes: 1, truncated: false })
  for (const path of ['/api/memory/graph', '/api/memory/graph/status']) {
    t.match(await ok('GET', path), { enabled: false, slot_resolves: false, in_flight: 0, errors: 0, last_error: null })
  }
  t.match(await ok('PUT', '/api/memory/graph', { llm_timeout_s: 60 }), { enabled: false, llm_timeout_s: 60, status: { llm_timeout_s: 60 } })
  t.match(await ok('POST', '/api/memory/graph/retry'), { queued: 0, skipped: 0, banks: {} })
  t.match(await host.audit(), [{ action: 'memory.graph.retry_failed', outcome: 'ok' }])
  const refused = await host.call('POST', '/api/memory/banks/shared/reflect', { query: 'who?' })
  t.match([refused.status, refused.json], [501, { error: { code: 'memory.engine_unsupported' }, detail: String }])
  t.strictSame(await ok('POST', '/api/memory/delete', { ids: [shared.id] }), { deleted: 1 })
  t.match(await ok('GET', '/api/memory/list'), { items: { length: 0 } })
  t.match(await ok('DELETE', '/api/memory/banks/private__bob?confirm=private__bob'), { success: true })
})
