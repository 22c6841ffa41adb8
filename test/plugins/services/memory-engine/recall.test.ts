import t, { type Test } from 'tap'
import { NO_AGREEMENT, rerankTrust } from '../../../../plugins/services/memory-engine/recall/fuse.js'
import type { Abilities, Errand, ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import type { EngineScript } from '../../../../kernel/testing/index.js'
import { fakeUpstream, upstreamTable } from '../../../wire/fake-upstream.js'
import { wireGateway } from '../../../wire/wire-gateway.js'
import { memoryPlugins } from '../memory/host.js'
import { rerankerLies } from './models-support.js'
import { noModels, openEngine, type Wire } from './support.js'

const retain = (call: Wire['call'], bank: string, ...items: readonly (string | object)[]) =>
  call('POST', `${bank}/memories`, { items: items.map(item => typeof item === 'string' ? { content: item } : item) })
const recall = (call: Wire['call'], bank: string, query: string, more: object = {}) => call('POST', `${bank}/memories/recall`, { query, ...more })
const texts = async (call: Wire['call'], bank: string, query: string, more: object = {}): Promise<string[]> =>
  (await recall(call, bank, query, more)).body.results.map((result: { text: string }) => result.text)

t.test('recall finds by words, whatever their endings, and answers as the wire does', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', {
    content: 'Alice works at Acme Corp in Berlin.', context: 'chat', metadata: { src: 'chat' }, tags: ['team'], document_id: 'd', timestamp: '2024-05-01',
    entities: [{ text: 'Alice' }, { text: 'Berlin' }]
  }, 'The manager of Bob is running late.', 'Nothing of interest here.')
  const { body, headers } = await recall(call, 'b', 'Where does Alice work?', { trace: true, include: { chunks: {}, source_facts: {} }, nice: 1 })
  t.match(headers, { 'x-svc-recall': 'text', 'x-ignored-params': 'nice' })
  t.match(body, {
    results: [{
      id: String, text: 'Alice works at Acme Corp in Berlin.', type: 'world', entities: ['Alice', 'Berlin'], context: 'chat', occurred_start: null,
      mentioned_at: '2024-05-01T00:00:00+00:00', document_id: 'd', metadata: { src: 'chat' }, chunk_id: 'b_d_0', tags: ['team'], source_fact_ids: null,
      scores: { final: Number, reranker: null, semantic: null, keyword: Number }, attachments: null
    }],
    entities: { Alice: { entity_id: String, canonical_name: 'Alice', observations: { length: 0 } }, Berlin: {} },
    chunks: { b_d_0: { id: 'b_d_0', text: 'Alice works at Acme Corp in Berlin.', chunk_index: 0, truncated: false } },
    source_facts: {}, source_facts_truncated: false, trace: { steps: { text: null, vectors: 'there is none', rerank: 'there is none' } }
  })
  t.equal(body.results.length, 1)
  t.same(await texts(call, 'b', 'who runs?'), ['The manager of Bob is running late.'])
  t.same(await texts(call, 'b', 'manag'), ['The manager of Bob is running late.'], 'the beginning of a word, where no word is found')
  t.match((await recall(call, 'b', 'Alice', { include: { entities: null } })).body, { entities: null, chunks: null, source_facts: null, trace: null })
  for (const odd of ['"', 'a AND OR (', 'text:x*', 'NEAR(', '^alice', '-alice', 'a\u0000', '🙂', 'alice" OR "bob']) t.equal((await recall(call, 'b', odd)).status, 200, odd)
  t.same(await texts(call, 'b', 'where is the'), ['The manager of Bob is running late.'], 'stop words alone find what has them')
  t.match(await recall(call, 'no-bank', 'x'), { status: 404, body: { detail: `Bank 'no-bank' not found` } })
  t.match(await recall(call, 'b', ' '), { status: 422 })
  t.match(await recall(call, 'b', 'x', { types: ['rumour'] }), { status: 422, body: { detail: [{ loc: ['body', 'types', 0] }] } })
  await retain(call, 'small', 'One memory of tea.')
  t.ok((await recall(call, 'small', 'tea')).body.results[0].scores.final >= 0.1, 'a bank of one memory is as certain as larger ones')
  await retain(call, 'cjk', '我喜欢吃苹果', '天气很好')
  t.same(await texts(call, 'cjk', '苹果'), ['我喜欢吃苹果'])
})

t.test('recall keeps to tags, groups of tags, types, times, scores and the budget of tokens', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', { content: 'sea one', tags: ['a'], timestamp: '2024-01-01' }, { content: 'sea two', tags: ['a', 'User:Bo'], timestamp: '2024-02-01' },
    { content: 'sea three', timestamp: '2024-03-01' }, { content: 'sea four', tags: ['c'], timestamp: 'unset' })
  const found = async (more: object): Promise<string> => (await texts(call, 'b', 'sea', more)).map(text => text.slice(4)).sort().join(' ')
  t.equal(await found({}), 'four one three two')
  const modes = { any: 'one three two', any_strict: 'one two', all: 'three two', all_strict: 'two', exact: 'two' }
  for (const [mode, expected] of Object.entries(modes)) t.equal(await found({ tags: ['a', 'User:Bo'], tags_match: mode }), expected, mode)
  t.equal(await found({ tags: [], tags_match: 'exact' }), 'three')
  const beside = { any: 'four one three two', all: 'four one three two', any_strict: 'one two', exact: 'one' }
  for (const [mode, expected] of Object.entries(beside)) t.equal(await found({ tags: ['a'], tags_match: mode, tags_aside: ['c', 'd'] }), expected, mode)
  t.match(await recall(call, 'b', 'sea', { tags: ['a'], tags_aside: Array.from({ length: 2000 }, (_, i) => `x${i}`) }), { status: 422 })
  t.equal(await found({ tag_groups: [{ or: [{ tags: ['c'] }, { and: [{ tags: ['a'] }, { not: { tags: ['User:Bo'] } }] }] }] }), 'four one')
  t.equal(await found({ tag_groups: [{ tags: ['user bo'], resolve: 'fuzzy' }] }), 'two')
  t.equal(await found({ tag_groups: [{ tags: ['zz'], resolve: 'fuzzy' }] }), '')
  t.match(await recall(call, 'b', 'sea', { tag_groups: [{ tags: 'a' }] }), { status: 422 })
  let deep: object = { tags: ['a'] }
  for (let i = 0; i < 50; i++) deep = { not: deep }
  t.match(await recall(call, 'b', 'sea', { tag_groups: [deep] }), { status: 422 })
  const many = Array.from({ length: 40_000 }, (_, i) => `t${i}`)
  t.equal(await found({ tags: ['a', ...many], tags_match: 'any_strict' }), 'one two', 'of many tags one will do')
  t.equal(await found({ tag_groups: [{ tags: ['c', ...many] }] }), 'four')
  for (const tags_match of ['all', 'all_strict', 'exact']) t.match(await recall(call, 'b', 'sea', { tags: many, tags_match }), { status: 422 }, tags_match)
  t.match(await recall(call, 'b', 'sea', { tag_groups: [{ or: many.map(tag => ({ tags: [tag] })) }] }), { status: 422, body: { detail: [{ loc: ['body', 'tag_groups'] }] } })
  t.match(await recall(call, 'b', 'sea', { tag_groups: many.map(() => ({ and: [] })) }), { status: 422 })
  t.equal(await found({ types: ['world'] }), 'four one three two')
  t.equal(await found({ types: ['observation'] }), '')
  t.equal(await found({ temporal_window: { start: '2024-01-15', end: '2024-02-15' } }), 'two')
  t.match(await recall(call, 'b', 'sea', { temporal_window: { start: 'x', end: 'y' } }), { status: 422 })
  t.equal((await texts(call, 'b', 'sea', { max_tokens: 4 })).length, 1, 'the first one whatever its size')
  t.equal((await texts(call, 'b', 'sea', { max_tokens: 6 })).length, 2)
  t.equal(await found({ min_scores: { semantic: 0.1 } }), '', 'a score that is missing is below any bound')
  t.equal(await found({ min_scores: { keyword: 0 } }), 'four one three two')
  t.equal((await texts(call, 'b', 'sea'))[0], 'sea three', 'the newest of equals')
  t.equal((await texts(call, 'b', 'sea')).at(-1), 'sea four')
})

t.test('what is invalidated, edited or deleted is not found by its old words, nor next to what is found', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', { content: 'Question: the harbour?', document_id: 's', update_mode: 'append' }, { content: 'It burnt down.', document_id: 's', update_mode: 'append' },
    { content: 'Another harbour.', document_id: 'o' })
  t.same(await texts(call, 'b', 'harbour'), ['Another harbour.', 'Question: the harbour?', 'It burnt down.'], 'what stands beside a find comes with it')
  const { items } = (await call('GET', 'b/memories/list?q=burnt')).body
  await call('PATCH', `b/memories/${items[0].id}`, { state: 'invalidated' })
  t.same(await texts(call, 'b', 'harbour'), ['Another harbour.', 'Question: the harbour?'])
  const other = (await call('GET', 'b/memories/list?q=another')).body.items[0].id
  await call('PATCH', `b/memories/${other}`, { text: 'A lighthouse.' })
  t.same(await texts(call, 'b', 'harbour'), ['Question: the harbour?'])
  await call('DELETE', `b/memories/${other}`)
  t.same(await texts(call, 'b', 'lighthouse'), [])
  await retain(call, 'other', 'harbour of another bank')
  t.same(await texts(call, 'b', 'harbour'), ['Question: the harbour?'])
})

t.test('what stands beside a find comes with it only where it holds the tags, types and times that are asked for', async t => {
  const { call } = openEngine(t)
  const say = (content: string, tags: readonly string[], timestamp: string): object => ({ content, tags, timestamp, document_id: 's', update_mode: 'append' })
  await retain(call, 'b', say('It burnt down.', ['b'], '2024-01-01'), say('Question: the harbour?', ['a'], '2024-02-01'), say('They rebuilt it.', ['a'], '2024-03-01'))
  const found = async (more: object): Promise<string[]> => (await texts(call, 'b', 'harbour', more)).sort()
  t.same(await found({}), ['It burnt down.', 'Question: the harbour?', 'They rebuilt it.'])
  for (const tags_match of ['any_strict', 'all_strict', 'exact']) t.same(await found({ tags: ['a'], tags_match }), ['Question: the harbour?', 'They rebuilt it.'], tags_match)
  t.same(await found({ tag_groups: [{ not: { tags: ['b'] } }] }), ['Question: the harbour?', 'They rebuilt it.'])
  t.same(await found({ temporal_window: { start: '2024-01-15', end: '2024-02-15' } }), ['Question: the harbour?'])
})

/** Models of a test: a vector counts the words of three fields of meaning. */
const fields = [['dog', 'puppy', 'hound'], ['car', 'vehicle', 'automobile'], ['tea', 'coffee', 'drink']]
const vectorOf = (text: string): number[] =>
  [...fields.map(words => words.filter(word => text.toLowerCase().includes(word)).length), 0.1]

interface Asked {
  readonly input: string[]
  readonly encoding_format: string
  readonly query: string
  readonly documents: string[]
}

const patience = { embedMs: 60_000, rerankMs: 60_000 }

function modelsOf (t: Test) {
  const state = {
    abilities: { ...noModels, embed: { model: 'words', why: null }, patience } as Abilities,
    embed: (texts: readonly string[], _encoding: string): unknown => (
      { data: texts.map((text, index) => ({ index, embedding: vectorOf(text) })) }),
    rerank: (_query: string, documents: readonly string[]): unknown => ({
      results: documents.map((_, index) => ({ index, relevance_score: index }))
    }),
    embedded: [] as string[],
    hangs: false,
    log: (_message: string): void => {}
  }
  const run = async (errand: Errand, signal: AbortSignal): Promise<ErrandAnswer> => {
    if (errand.to === 'web') throw new Error('none here')
    const body = JSON.parse(Buffer.from(errand.body).toString('utf8')) as Asked
    if (state.hangs) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    }
    if (errand.to === 'embed' && errand.background) state.embedded.push(...body.input)
    const answer = await (errand.to === 'embed' ? state.embed(body.input, body.encoding_format) : state.rerank(body.query, body.documents))
    if (typeof answer === 'number') return { status: answer, body: Buffer.from('{"error":"no"}') }
    return { status: 200, body: Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer)) }
  }
  const wire = openEngine(t, { abilities: () => state.abilities, run, log: (_, message) => state.log(message) })
  const settled = async (bank: string): Promise<void> => {
    for (let left = 500; left > 0; left--) {
      const { body } = await wire.call('GET', `${bank}/embeddings`)
      if (body.pending === 0) return
      await new Promise(resolve => setImmediate(resolve))
    }
    throw new Error('vectors are still missing')
  }
  return { ...wire, state, settled }
}

t.test('with a model that embeds, what means the same is found; vectors are renewed when the model changes', async t => {
  const { call, engine, state, settled } = modelsOf(t)
  await retain(call, 'b', 'A hound barks.', 'The automobile is red.', 'We drink coffee.', 'Untold.')
  await settled('b')
  const { body, headers } = await recall(call, 'b', 'puppy')
  t.equal(headers['x-svc-recall'], 'text+vectors')
  t.match(body.results[0], { text: 'A hound barks.', scores: { keyword: null, semantic: Number } })
  await call('PATCH', 'b/config', { updates: { enable_text_search: false } })
  const wordless = await recall(call, 'b', 'coffee hound')
  t.equal(wordless.headers['x-svc-recall'], 'vectors', 'it does not say that it ran on what the bank has switched off')
  t.ok(wordless.body.results.every(({ scores }: { scores: { keyword: number | null } }) => scores.keyword === null))
  await call('PATCH', 'b/config', { updates: { enable_text_search: true } })
  t.same((await texts(call, 'b', 'vehicle', { min_scores: { semantic: 0.9 } })), ['The automobile is red.'])
  t.same(await texts(call, 'b', 'vehicle', { tags: ['none'], tags_match: 'any_strict' }), [])
  const [{ id }] = (await call('GET', 'b/memories/list?q=hound')).body.items
  await call('PATCH', `b/memories/${id}`, { text: 'A cup of tea.' })
  await settled('b')
  t.same(await texts(call, 'b', 'puppy', { min_scores: { semantic: 0.5 } }), [], 'an edited memory is embedded again')
  const { nodes, edges } = (await call('GET', 'b/graph')).body
  const textOf = Object.fromEntries(nodes.map(({ data }: { data: { id: string, text: string } }) => [data.id, data.text]))
  const near = edges.map(({ data }: { data: Record<string, string> }) => data).filter(({ linkType }: { linkType: string }) => linkType === 'semantic')
  t.same(near.map(({ source, target }: { source: string, target: string }) => [textOf[source], textOf[target]].sort()), [['A cup of tea.', 'We drink coffee.']], 'near ones are tied')
  t.match(near[0], { color: '#ff69b4', lineStyle: 'solid' })
  t.ok(near[0].weight > 0.9 && near[0].weight <= 1)
  await call('DELETE', `b/memories/${id}`)
  t.same(await texts(call, 'b', 'tea', { min_scores: { semantic: 0.5 } }), ['We drink coffee.'])

  state.embedded.length = 0
  let release = (): void => {}
  const held = new Promise<void>(resolve => { release = resolve })
  state.embed = async texts => {
    await held
    return { data: texts.map((text, index) => ({ index, embedding: [...vectorOf(text), 1] })) }
  }
  state.abilities = { ...state.abilities, embed: { model: 'words', identity: 'words 2', why: null } }
  engine.abilitiesChanged()
  t.match((await call('GET', 'b/embeddings')).body, { model: 'words 2', done: 0, pending: 3, stale: 3 })
  release()
  await settled('b')
  t.same(state.embedded.sort(), ['The automobile is red.', 'Untold.', 'We drink coffee.'])
  t.equal((await texts(call, 'b', 'vehicle'))[0], 'The automobile is red.')
  t.match((await call('GET', 'b/embeddings')).body, { model: 'words 2', done: 3, stale: 0 })
})

t.test('a bank that outgrows the memory for its vectors finds what it found before, and what is new', async t => {
  const { call, state, settled } = modelsOf(t)
  // of so many numbers that few vectors fill that memory
  const long = [...Array(2100).keys()].map(() => 0)
  state.embed = texts => ({ data: texts.map((text, index) => ({ index, embedding: [...vectorOf(text), ...long] })) })
  const fill = (from: number, to: number): Promise<unknown> => retain(call, 'b', ...Array.from({ length: to - from }, (_, i) => `Number ${from + i}.`))
  await retain(call, 'b', 'A hound barks.', 'The automobile is red.')
  await fill(0, 100)
  await settled('b')
  const wish = { min_scores: { semantic: 0.5 } }
  t.same(await texts(call, 'b', 'puppy', wish), ['A hound barks.'])
  await fill(100, 300)
  await retain(call, 'b', 'We drink coffee.')
  await settled('b')
  for (const [query, found] of [['puppy', 'A hound barks.'], ['vehicle', 'The automobile is red.'], ['tea', 'We drink coffee.']] as const) {
    t.same(await texts(call, 'b', query, wish), [found])
  }
  await retain(call, 'b', ...['A hound of mine runs.', 'A hound of ours runs.'].map(content => ({ content, timestamp: 'unset' })))
  await settled('b')
  const [{ id }] = (await call('GET', 'b/memories/list?q=mine')).body.items
  for (const text of ['A hound of my runs.', 'A hound of me runs.', 'A hound of them runs.']) {
    await call('PATCH', `b/memories/${id}`, { text })
    await settled('b')
  }
  const { results } = (await recall(call, 'b', 'puppy')).body
  const finals = ['A hound of them runs.', 'A hound of ours runs.'].map(text => results.find((result: { text: string }) => result.text === text).scores.final)
  t.equal(finals[0], finals[1], 'one that was edited counts once')
})

t.test('a model that embeds and is away, slow or lying holds nothing up: recall goes on with words and says so', async t => {
  const { call, engine, state, settled } = modelsOf(t)
  await retain(call, 'b', 'A hound barks.', 'A dog sleeps.')
  await settled('b')
  state.hangs = true
  state.abilities = { ...state.abilities, patience: { embedMs: 1, rerankMs: 1 } }
  engine.abilitiesChanged()
  const slow = await recall(call, 'b', 'dog', { trace: true })
  t.match(slow, { headers: { 'x-svc-recall': 'text' }, body: { results: [{ text: 'A dog sleeps.' }], trace: { steps: { vectors: /did not answer within 1 ms/ } } } })
  t.match((await recall(call, 'b', 'dog', { trace: true })).body.trace.steps.vectors, /a moment ago/)
  state.hangs = false
  state.abilities = { ...state.abilities, embed: { model: null, why: 'the slot is gone' } }
  engine.abilitiesChanged()
  t.match((await recall(call, 'b', 'dog', { trace: true })).body.trace.steps.vectors, 'the slot is gone')
})

t.test('memories whose model was away get their vectors when it is back, without being asked for again', async t => {
  const { call, state } = modelsOf(t)
  const asked: number[] = []
  const well = state.embed
  state.embed = (texts, encoding) => {
    asked.push(texts.length)
    return asked.length === 1 ? 503 : well(texts, encoding)
  }
  await retain(call, 'b', 'A hound barks.', 'The automobile is red.')
  let left = {} as Record<string, unknown>
  do left = (await call('GET', 'b/embeddings')).body
  while (left.pending !== 0)
  t.match(left, { done: 2, pending: 0, failed: 0 })
  t.same(asked, [2, 2], 'the same ones once more')
  t.equal((await texts(call, 'b', 'puppy'))[0], 'A hound barks.')
})

t.test('vectors are taken as base64 or numbers, and asked for as numbers where a server refuses the other', async t => {
  const { call, engine, state, settled } = modelsOf(t)
  const short = (vector: readonly number[]): string => Buffer.from(new Float32Array(vector).buffer).toString('base64')
  const ways: Record<string, (text: string, encoding: string) => unknown> = {
    base64: (text, encoding) => encoding === 'base64' ? short(vectorOf(text)) : 'never asked for',
    numbers: text => vectorOf(text),
    refusing: (text, encoding) => encoding === 'float' ? vectorOf(text) : 400
  }
  for (const [way, answer] of Object.entries(ways)) {
    const asked: string[] = []
    state.embed = (texts, encoding) => {
      asked.push(encoding)
      const embeddings = texts.map(text => answer(text, encoding))
      return embeddings.includes(400) ? 400 : { data: embeddings.map((embedding, index) => ({ index, embedding })) }
    }
    state.abilities = { ...state.abilities, embed: { model: 'words', identity: way, why: null } }
    engine.abilitiesChanged()
    await retain(call, way, 'A hound barks.', 'The automobile is red.')
    await settled(way)
    t.match((await recall(call, way, `a puppy of ${way}`)).body.results[0], { text: 'A hound barks.', scores: { semantic: Number } }, way)
    if (way === 'refusing') t.same([...new Set(asked.slice(1))], ['float'], 'a refusal is remembered')
  }
  for (const broken of ['AAA', '////', short([NaN, 1, 1, 1])]) {
    state.abilities = { ...state.abilities, embed: { model: 'words', identity: 'base64', why: null } }
    engine.abilitiesChanged()
    state.embed = texts => ({ data: texts.map((_, index) => ({ index, embedding: broken })) })
    t.match((await recall(call, 'base64', `a puppy of ${broken}`)).headers['x-svc-recall'], 'text', broken)
  }
})

t.test('a text that its model refuses is embedded by its beginning, and one that is never taken is found by words', async t => {
  const { call, engine, state, settled } = modelsOf(t)
  state.embed = texts => texts.some(text => text.length > 20 || text.startsWith('n')) ? 400 : { data: texts.map((text, index) => ({ index, embedding: vectorOf(text) })) }
  await retain(call, 'b', 'A dog that is far too long for its model to take.', 'never', 'A car.')
  await settled('b')
  t.match((await call('GET', 'b/embeddings')).body, { done: 2, failed: 1 })
  t.same(await texts(call, 'b', 'never'), ['never'])

  state.embed = texts => ({ data: texts.map((text, index) => ({ index, embedding: [...vectorOf(text), 1] })) })
  state.abilities = { ...state.abilities, embed: { model: 'words', identity: 'words 2', why: null } }
  engine.abilitiesChanged()
  await settled('b')
  t.match((await call('GET', 'b/embeddings')).body, { done: 3, failed: 0 }, 'another model is asked for what this one refused')
})

t.test('a model that refuses whatever it is asked is left alone for a while, and no memory counts as refused by it', async t => {
  const { call, state } = modelsOf(t)
  let [asked, isPaused] = [0, false]
  state.embed = () => (asked++, 400)
  state.log = message => { isPaused ||= message.startsWith('memories wait') }
  await retain(call, 'b', ...Array.from({ length: 100 }, (_, i) => `Note ${i}.`))
  while (!isPaused) await call('GET', '/version')
  t.ok(asked <= 70, `${asked} requests`)
  t.match((await call('GET', 'b/embeddings')).body, { pending: 100, failed: 0 })
})

t.test('a reranker has its say within its time, and one that is slow, away or lying leaves the order as it is', async t => {
  const { call, engine, state } = modelsOf(t)
  const use = (rerank: typeof state.rerank, rerankMs = 60_000): void => {
    state.rerank = rerank
    state.abilities = { embed: noModels.embed, rerank: { model: 'judge', why: null }, chat: noModels.chat, patience: { embedMs: 1, rerankMs } }
    engine.abilitiesChanged()
  }
  await retain(call, 'b', 'tea of the north', 'tea of the south', 'tea of the west')
  const fused = ['tea of the west', 'tea of the south', 'tea of the north']
  use((_, documents) => ({ results: documents.map((text, index) => ({ index, relevance_score: text.endsWith('north') ? 9 : 1 })).reverse() }))
  const { headers, body } = await recall(call, 'b', 'tea')
  t.equal(headers['x-svc-recall'], 'text+rerank')
  t.match(body.results[0], { text: 'tea of the north', scores: { reranker: 9 } })
  const failures: Record<string, typeof state.rerank> = {
    ...rerankerLies, 'no connection': () => { throw new Error('connect ECONNREFUSED') }, 'a refusal': () => 500
  }
  for (const [name, lie] of Object.entries(failures)) {
    use(lie)
    const answer = await recall(call, 'b', 'tea', { trace: true })
    t.same(answer.body.results.map((result: { text: string }) => result.text), fused, name)
    t.match(answer, { headers: { 'x-svc-recall': 'text' }, body: { trace: { steps: { rerank: /failed/ } } } }, name)
  }
  state.hangs = true
  use(state.rerank, 1)
  const slow = await recall(call, 'b', 'tea', { trace: true })
  t.same(slow.body.results.map((result: { text: string }) => result.text), fused)
  t.match(slow.body.trace.steps.rerank, /did not answer within 1 ms/)
})

t.test('a reranker that contradicts words and vectors does not count, which the answer says', async t => {
  const { call, engine, state } = modelsOf(t)
  const words = ['alpha', 'beta', 'gamma', 'delta']
  await retain(call, 'b', ...Array.from({ length: 16 }, (_, i) => `${words.slice(0, 1 + i % 4).join(' ')} in note ${i}`))
  const query = words.join(' ')
  const fused = await texts(call, 'b', query)
  state.abilities = { ...noModels, rerank: { model: 'judge', why: null }, patience }
  engine.abilitiesChanged()
  state.rerank = (_, documents) => ({ results: documents.map((_, index) => ({ index, relevance_score: index })) })
  const reversed = await recall(call, 'b', query, { trace: true })
  t.equal(reversed.headers['x-svc-recall'], 'text')
  t.match(reversed.body.trace.steps.rerank, `the scores of 'judge' contradict what was found, or agree with it no more than by chance, and do not count`)
  t.same(reversed.body.results.map(({ text }: { text: string }) => text), fused)
  const wanted = fused[3]!
  state.rerank = (_, documents) => ({
    results: documents.map((text, index) => ({ index, relevance_score: text === wanted ? 99 : 30 - index }))
  })
  state.abilities = { ...state.abilities, rerank: { model: 'better judge', why: null } }
  engine.abilitiesChanged()
  for (let i = 0; i < 10; i++) await recall(call, 'b', query)
  const better = await recall(call, 'b', query)
  t.match(better, { headers: { 'x-svc-recall': 'text+rerank' }, body: { results: [{ text: wanted }] } }, 'one that agrees has its say')
})

t.test('a reranker of random scores changes nothing, however often it is asked, and one that agrees adds the more the longer it does', t => {
  const top = Array.from({ length: 50 }, (_, i) => ({ score: 1 - i / 50, semantic: null }))
  const weights = (scoreOf: (i: number, random: number) => number, seed: number): number[] => {
    let [state, agreement] = [seed * 7919 + 1, NO_AGREEMENT]
    const random = (): number => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
    return Array.from({ length: 200 }, () => {
      const trust = rerankTrust(top, top.map((_, i) => scoreOf(i, random())), agreement)
      agreement = trust.agreement
      return trust.weight
    })
  }
  for (let seed = 0; seed < 50; seed++) {
    const random = weights((_, value) => value, seed)
    t.ok(random.reduce((sum, weight) => sum + weight, 0) / 200 < 0.001, `seed ${seed}: ${Math.max(...random)} at most`)
    t.ok(weights(i => i, seed).every(weight => weight === 0), 'one that turns the order round counts for nothing')
  }
  const good = weights((i, value) => value * 60 - i, 1)
  t.ok(good.at(-1)! > 0.3 && good.at(-1)! > good[0]!, `${good[0]} at first, ${good.at(-1)} at last`)
  t.end()
})

t.test('what is deleted or edited while the reranker is asked is told as it is then', async t => {
  const { call, state } = modelsOf(t)
  const deferred = () => {
    let resolve!: () => void
    return { promise: new Promise<void>(done => { resolve = done }), resolve }
  }
  const [asked, changed] = [deferred(), deferred()]
  state.abilities = { ...noModels, rerank: { model: 'judge', why: null }, patience }
  state.rerank = async (_, documents) => {
    asked.resolve()
    await changed.promise
    return { results: documents.map((_, index) => ({ index, relevance_score: index })) }
  }
  await retain(call, 'b', 'tea of the north', 'tea of the south', 'tea of the west')
  const idOf = async (word: string): Promise<string> => (await call('GET', `b/memories/list?q=${word}`)).body.items[0].id
  const [north, south] = [await idOf('north'), await idOf('south')]
  const found = texts(call, 'b', 'tea')
  await asked.promise
  await call('DELETE', `b/memories/${north}`)
  await call('PATCH', `b/memories/${south}`, { text: 'coffee of the south' })
  changed.resolve()
  t.same((await found).sort(), ['coffee of the south', 'tea of the west'])
})

t.test('of many candidates, a reranker gets those that have a chance', async t => {
  const { call, state } = modelsOf(t)
  let asked = 0
  state.abilities = { ...state.abilities, embed: noModels.embed, rerank: { model: 'judge', why: null } }
  state.rerank = (_, documents) => {
    asked = documents.length
    return { results: documents.map((_, index) => ({ index, relevance_score: -index })) }
  }
  await retain(call, 'b', ...Array.from({ length: 120 }, (_, i) => `tea number ${i}`))
  t.equal((await recall(call, 'b', 'tea')).body.results.length, 120)
  t.equal(asked, 50)
})

t.test('in a gateway, vectors and the second pass come from its slots, an upstream or another gateway, also while they are loaded, and another model renews them', async t => {
  const slot = (type: string, model: string): string => `type = "${type}"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "${model}"\n`
  const json = (value: unknown): EngineScript => ({ headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(value)] })
  const embedded: string[] = []
  const far = await fakeUpstream(t, ['far-embedder'])
  const listed = ['far-embedder']
  far.engine.answer(({ url, body }) => {
    if (url === '/v1/models') return json({ data: listed.map(id => ({ id })) })
    const { input, documents } = JSON.parse(body.toString()) as { input: string[], documents: string[] }
    if (url === '/v1/embeddings') return json({ data: input.map((text, index) => ({ index, embedding: [...vectorOf(text), 0.2] })) })
    return json({ results: documents.map((text, index) => ({ index, relevance_score: text.endsWith('barks.') ? 7 : 1 })) })
  })
  const gateway = await wireGateway(t, {
    plugins: memoryPlugins, svc: '[memory]\nenabled = true\n',
    files: {
      'etc/svc/upstreams.toml': upstreamTable('far', far.url),
      'etc/svc/slots/embed.toml': slot('embedding', 'fake-model'), 'etc/svc/slots/rerank.toml': slot('reranking', 'fake-model'),
      'var/lib/svc/registry/registry.toml': ['fake-model', 'other-model'].map(id => `[models.${id}]\npath = "/dev/null"\n`).join('')
    },
    onStart: ({ slot: name, engine }) => engine.answer(({ body }) => {
      const { input, documents } = JSON.parse(body.toString()) as { input: string[], documents: string[] }
      if (name === 'rerank') return json({ results: documents.map((text, index) => ({ index, relevance_score: text.endsWith('rack.') ? 5 : 0 })) })
      embedded.push(...input)
      return json({ data: input.map((text, index) => ({ index, embedding: vectorOf(text) })) })
    })
  })
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await gateway.fetch(`/api/memory/hindsight/v1/default/banks/${path}`, {
      method, headers: { 'content-type': 'application/json' }, ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    return { status: response.status, headers: response.headers, body: await response.json() as Record<string, never> }
  }
  const settled = async (wanted: object): Promise<void> => {
    for (;;) {
      const { body } = await call('GET', 'b/embeddings')
      if (Object.entries(wanted).every(([key, value]) => (body as Record<string, unknown>)[key] === value)) return
    }
  }
  t.equal((await call('POST', 'b/memories', { items: [{ content: 'A hound barks.' }, { content: 'A hound in its rack.' }, { content: 'Tea.' }] })).status, 200)
  await settled({ done: 3, pending: 0, model: 'embed fake-model' })
  const found = await call('POST', 'b/memories/recall', { query: 'puppy' })
  t.equal(found.headers.get('x-svc-recall'), 'text+vectors+rerank')
  t.match([found.headers.get('content-length'), found.headers.get('transfer-encoding')], [/^\d+$/, null], 'an answer in one piece')
  t.match(found.body.results, [{ text: 'A hound in its rack.', scores: { reranker: 5, semantic: Number } }, { text: 'A hound barks.' }])
  embedded.length = 0
  await gateway.slots.update('embed', { model: { default: 'other-model' } })
  await settled({ done: 3, stale: 0, model: 'embed other-model' })
  t.same(embedded.sort(), ['A hound barks.', 'A hound in its rack.', 'Tea.'])

  const patch = async (embedding: object): Promise<void> => {
    const { status } = await gateway.fetch('/api/settings', {
      method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ memory: { embedding } })
    })
    t.equal(status, 200)
  }
  await patch({ model: 'far-embedder' })
  await settled({ done: 3, stale: 0, model: 'far-embedder' })
  t.match(JSON.parse(far.engine.requests.find(({ url }) => url === '/v1/embeddings')!.body.toString()), { model: 'far-embedder', input: [String, String, String] })
  t.equal((await call('POST', 'b/memories/recall', { query: 'a puppy' })).headers.get('x-svc-recall'), 'text+vectors+rerank')
  await patch({ model: 'rerank' })
  t.match((await call('POST', 'b/memories/recall', { query: 'hounds', trace: true })).body, { trace: { steps: { vectors: /no memory has a vector of this model/ } } },
    'one that cannot embed leaves the words')
  const first = async (): Promise<string> => {
    const { results: [{ text }] } = (await call('POST', 'b/memories/recall', { query: 'hound' })).body as unknown as { results: [{ text: string }] }
    return text
  }
  await patch({ model: 'far-embedder', rerank_model: 'far-judge' })
  t.equal(await first(), 'A hound in its rack.', 'the slot ranks while nothing has the model that is to')
  listed.push('far-judge')
  await gateway.gateway.inference().upstreamService.ask('far', new AbortController().signal)
  t.equal(await first(), 'A hound barks.', 'an upstream ranks as soon as it says that it has the model')
  await patch({ rerank_gateway_url: far.engine.origin, rerank_model: 'far-judge' })
  t.match((await call('POST', 'b/memories/recall', { query: 'hound' })).body.results, [{ text: 'A hound barks.', scores: { reranker: 7 } }, { scores: { reranker: 1 } }],
    'another gateway reranks')
  t.match(JSON.parse(far.engine.requests.find(({ url }) => url === '/v1/rerankings')!.body.toString()), { model: 'far-judge', query: 'hound' })
})

t.test('of statements that contradict each other the newest comes first, near duplicates do not hide others, and agents see their own', async t => {
  const { call } = openEngine(t)
  const people = Array.from({ length: 12 }, (_, i) => `Person${i}`)
  const cities = ['Berlin', 'Lisbon', 'Oslo']
  const items = people.flatMap((name, i) => cities.map((city, year) => ({
    content: `${name} lives in ${cities[(i + year) % 3]!}.`, timestamp: `202${year}-0${1 + i % 9}-01`, tags: [`agent:${i % 2}`]
  })))
  // the newest statement is not the last one that is told
  await retain(call, 'b', ...items.reverse(), ...Array.from({ length: 30 }, (_, i) => ({ content: `Note ${i}: Person3 lives well, so they say again.`, tags: ['agent:1'], timestamp: '2019-01-01' })))
  for (const [i, name] of people.entries()) {
    const [first] = await texts(call, 'b', `Where does ${name} live?`)
    t.equal(first, `${name} lives in ${cities[(i + 2) % 3]!}.`)
    const own = (await recall(call, 'b', `Where does ${name} live?`, { tags: [`agent:${(i + 1) % 2}`], tags_match: 'all_strict' })).body.results
    t.notOk(own.some(({ text }: { text: string }) => text.startsWith(`${name} `)), 'another agent’s are not found')
  }
})

t.test('of memories that have the words of a question, those come first that begin with whom it asks about', async t => {
  const { call } = openEngine(t)
  const talk = Array.from({ length: 8 }, (_, i) => [`Alice: Good morning, Bob, on day ${i}.`, `Bob: Good evening, Alice, on day ${i}.`]).flat()
  const [hers, his] = ['Alice: I love the harbour, Bob, at dusk.', 'Bob: I love the harbour, Alice, at dusk.']
  await retain(call, 'b', hers, ...talk, his)
  t.same((await texts(call, 'b', 'what does alice love?')).slice(0, 2), [hers, his], 'a name that all of them have counts where it stands first')
  t.same((await texts(call, 'b', 'What is it that Bob loves?')).slice(0, 2), [his, hers])
  t.same((await texts(call, 'b', 'Who loves the harbour?')), [his, hers], 'the newer one of equals')
})

t.test('of finds, those count for more that were kept beside another one within minutes, and of statements told one after the other the newest comes first', async t => {
  const { call } = openEngine(t)
  const at = (minute: number): string => new Date(Date.UTC(2024, 0, 1, 0, minute)).toISOString()
  const say = (content: string, minute: number): object => ({ content, timestamp: at(minute), document_id: `turn ${minute}` })
  const [answer, alone] = ['We do that a few times each week, the children run.', 'We did that a few times last year, the children slept.']
  await retain(call, 'b', say('Do you bring the children to the park?', 0), say(answer, 2),
    ...[20, 40, 60].map(minute => say(`Nothing much in hour ${minute}.`, minute)), say(alone, 100))
  const found = (): Promise<string[]> => texts(call, 'b', 'How often are the children in the park?')
  t.same(await found(), ['Do you bring the children to the park?', answer, alone], 'what has no word of the question does not come along')
  await call('PATCH', 'b/config', { updates: { enable_graph_retrieval: false } })
  t.same((await found()).slice(1), [alone, answer], 'the newer one of equals, where a bank looks at no links')
  await retain(call, 'c', ...['Berlin', 'Lisbon', 'Madrid'].map((city, minute) => say(`Cleo lives in ${city}.`, minute)))
  t.equal((await texts(call, 'c', 'Where does Cleo live?'))[0], 'Cleo lives in Madrid.')
})
