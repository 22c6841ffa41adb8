import t, { type Test } from 'tap'
import mcpMemory from '../../../../plugins/mcp/memory/index.js'
import mcpServers from '../../../../plugins/mcp/servers/index.js'
import memoryChat from '../../../../plugins/v1/memory/index.js'
import { wireGateway } from '../../../wire/wire-gateway.js'
import { run } from '../../../cli/support.js'
import { call as callTool, connect } from '../../mcp/memory-agents.js'
import { openWithChat, over } from '../memory-engine/models-support.js'
import { noModels, openEngine, openInThread, type Wire } from '../memory-engine/support.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost, memoryPlugins, type MemoryHost } from './host.js'

const as = (agent: string, isPrivate = false): Record<string, string> => ({ 'x-svc-agent': agent, ...isPrivate ? { 'x-svc-private': '1' } : {} })
const bank = '/api/memory/hindsight/v1/default/banks/shared'

interface Kept {
  readonly id: string
  readonly memory_id: string
  readonly text: string
  readonly timestamp: string
}

interface Added {
  readonly id: string
  readonly known?: true
  readonly memory_id?: string
  readonly timestamp: string
}

interface Memories {
  readonly add: (text: string, more?: object, headers?: Record<string, string>) => Promise<Added>
  readonly kept: () => Promise<readonly Kept[]>
}

function of (host: MemoryHost): Memories {
  return {
    add: async (text, more = {}, headers = {}) => (await host.call('POST', '/api/memory/add', { text, ...more }, headers)).json,
    kept: async () => (await host.call('GET', '/api/memory/list?limit=200')).json.items
  }
}

t.test('what an agent adds again makes no second memory, and the answer names the one that is there', async t => {
  const { add, kept } = of(await memoryHost(t))
  const first = await add('The printer is on the second floor.', { tags: ['office', 'floors'] })
  t.notOk('known' in first)
  const [before] = await kept()
  const again = await add('The printer  is on the second floor.\n', { tags: ['floors', 'office', 'floors'] })
  t.match(again, { id: first.id, known: true, memory_id: before!.memory_id, timestamp: /Z$/ })
  const [after, ...others] = await kept()
  t.match([after, others.length], [{ id: first.id, memory_id: before!.memory_id, text: 'The printer is on the second floor.' }, 0])
  t.equal(Date.parse(after!.timestamp), Date.parse(again.timestamp), 'it is as new as what was said last')

  const at = await Promise.all(Array.from({ length: 20 }, () => add('Said by twenty at once.')))
  t.equal(new Set(at.map(({ id }) => id)).size, 1)
  t.equal(at.filter(({ known }) => known === true).length, 19)
  t.equal((await kept()).length, 2)
})

t.test('what says more, is of others or was changed since is kept beside it', async t => {
  const host = await memoryHost(t)
  const { add, kept } = of(host)
  const text = 'Tea is hot.'
  await add(text, { metadata: { page: 3 } }, as('alice'))
  const unlike: ReadonlyArray<readonly [more: object, headers: Record<string, string>, why: string]> = [
    [{ metadata: { page: 4 } }, as('alice'), 'other metadata'], [{ metadata: { page: 3, line: 1 } }, as('alice'), 'more metadata'],
    [{ tags: ['x'] }, as('alice'), 'other tags'], [{}, as('bob'), 'another agent'], [{}, {}, 'no agent'],
    [{}, as('alice', true), 'its private mode'], [{ dataset: 'agents' }, as('alice'), 'another dataset'], [{ document_id: 'own' }, as('alice'), 'an id of its own']
  ]
  for (const [more, headers, why] of unlike) {
    t.notOk('known' in await add(text, more, headers), why)
    if (why !== 'an id of its own') t.equal((await add(text, more, headers)).known, true, `${why}, again`)
  }
  t.match(await add(text, {}, as('alice')), { known: true, id: /./ }, 'fewer metadata say nothing new')
  t.equal((await kept()).length, 7)

  await t.test('an edited one keeps its words, and what it said before is a memory of its own', async t => {
    const { id } = await add('Soup is hot.')
    const memoryOf = async (id: string): Promise<Kept> => (await kept()).find(each => each.id === id)!
    await host.call('PATCH', `${bank}/memories/${(await memoryOf(id)).memory_id}`, { text: 'Soup is cold.' })
    const back = await add('Soup is hot.')
    t.notOk('known' in back)
    t.match(await memoryOf(id), { text: 'Soup is cold.' })
    t.match(await add('Soup is cold.'), { known: true, id }, 'by its new words it is known')
    await host.call('PATCH', `${bank}/memories/${(await memoryOf(back.id)).memory_id}`, { state: 'invalidated' })
    t.notOk('known' in await add('Soup is hot.'), 'nor does one that was invalidated say it')
  })

  await t.test('one that was deleted is kept again', async t => {
    const { id } = await add('Coffee is black.')
    await host.call('POST', '/api/memory/delete', { ids: [id] })
    t.notOk('known' in await add('Coffee is black.'))
  })

  await t.test('a part of a longer document is none that could be deleted with its id', async t => {
    await host.call('POST', `${bank}/memories`, { items: ['Milk is white.', 'Snow is white.'].map(content => ({ content, document_id: 'white', tags: ['agent:anonymous'], update_mode: 'append' })) })
    t.notOk('known' in await add('Milk is white.'))
    await add('Salt is white.', { document_id: 'salt' })
    t.match(await add('Salt is white.'), { known: true, id: 'salt' })
  })
})

t.test('what is said again in a session is in its document once', async t => {
  const { add, kept } = of(await memoryHost(t))
  const say = (text: string, session = 's1', more: object = {}): Promise<Added> => add(text, { metadata: { session_id: session }, ...more }, as('alice'))
  const long = Array.from({ length: 400 }, (_, i) => `Sentence number ${i} of what was said.`).join(' ')
  const largest = `${long} `.repeat(5)
  for (const text of ['One.', 'Two.', long, largest]) {
    t.notOk('known' in await say(text))
    const count = (await kept()).length
    t.match(await say(text), { known: true, id: 'alice:s1' }, `${text.length} characters`)
    t.equal((await kept()).length, count)
  }
  const count = (await kept()).length
  t.match(await say('One.'), { known: true, memory_id: /./ }, 'also where other words came in between')
  t.equal((await kept()).length, count)
  t.strictSame((await kept()).filter(({ text }) => text === 'One.').map(({ id }) => id), ['alice:s1'])
  t.notOk('known' in await say('One.', 's2'), 'another session has its own')
  t.notOk('known' in await say('One.', 's1', { tags: ['x'] }), 'with other tags it is another one')
  t.notOk('known' in await say(long, 's3'))
  t.match(await say(long, 's3'), { known: true, id: 'alice:s3' }, 'a long text that a session begins with')
})

t.test('a long text is kept once, and again where a part of it was changed since', async t => {
  const host = await memoryHost(t)
  const { add, kept } = of(host)
  const long = Array.from({ length: 400 }, (_, i) => `Line ${i} of a long text.`).join('\n')
  const { id } = await add(long)
  const count = (await kept()).length
  t.ok(count > 1, `${count} memories`)
  const again = await add(long)
  t.match(again, { id, known: true })
  t.notOk('memory_id' in again, 'several memories say it')
  t.equal((await kept()).length, count)
  const [memory] = await kept()
  await host.call('PATCH', `${bank}/memories/${memory!.memory_id}`, { text: 'It was corrected.' })
  const other = await add(long)
  t.notOk('known' in other)
  t.match((await kept()).filter(each => each.id === id && each.text === 'It was corrected.'), { length: 1 }, 'the correction stays')
  const largest = `${long}\n`.repeat(6)
  const { id: large } = await add(largest)
  t.match(await add(largest), { id: large, known: true }, `${largest.length} characters`)
})

const TEXT = 'Hi! I am Alice, of Acme, in Rome.'

/** An engine that extracts these facts of any text, none for a text that is kept as it is; `keep` resolves once that is over. */
function extracting (t: Test, ...facts: readonly string[]): Pick<Wire, 'call'> & { readonly keep: (item: object) => Promise<unknown> } {
  const answer = JSON.stringify({ facts: facts.map(text => ({ text, fact_type: 'world', entities: [] })) })
  const { call } = openWithChat(t, ({ messages: [first] }) => first!.content.includes('observations of a long-term memory') ? '{"creates": []}' : answer,
    { abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts: true }) })
  const keep = async (item: object): Promise<unknown> => {
    const { body } = await call('POST', 'b/memories', { items: [{ content: TEXT, unless_known: true, ...item }] })
    const [last] = (await call('GET', 'b/operations?type=graph_maintenance&limit=1')).body.operations
    await over(call, 'b', last.id)
    return body.known
  }
  return { call, keep }
}

t.test('what facts were made of is kept once, and again where all of them are gone', async t => {
  const { call, keep } = extracting(t, 'Alice works at Acme.', 'Alice lives in Rome.')
  t.strictSame(await keep({ document_id: 'first' }), [])
  t.strictSame(await keep({ document_id: 'second' }), [{ item: 0, document_id: 'first', memory_id: null }])
  t.equal((await call('GET', 'b/memories/list')).body.total, 2)
  t.strictSame(await keep({ document_id: 'session', update_mode: 'append' }), [])
  t.match(await keep({ document_id: 'session', update_mode: 'append' }), [{ document_id: 'session' }], 'as what was added to it last')
  for (const { id } of (await call('GET', 'b/memories/list')).body.items) await call('DELETE', `b/memories/${id}`)
  t.strictSame(await keep({ document_id: 'third' }), [])
})

const changes: Readonly<Record<string, (call: Wire['call'], id: string) => Promise<unknown>>> = {
  edited: (call, id) => call('PATCH', `b/memories/${id}`, { text: 'Alice lives in Paris.' }),
  hidden: (call, id) => call('PATCH', `b/memories/${id}`, { state: 'invalidated' }),
  deleted: (call, id) => call('DELETE', `b/memories/${id}`)
}

for (const [how, change] of Object.entries(changes)) {
  t.test(`a text is kept again after one of the facts that were made of it was ${how}`, async t => {
    const { call, keep } = extracting(t, 'Alice works at Acme.', 'Alice lives in Rome.')
    const rome = async (): Promise<string> =>
      (await call('GET', 'b/memories/list?limit=100')).body.items.find(({ text }: Kept) => text === 'Alice lives in Rome.').id
    t.strictSame(await keep({ document_id: 'first' }), [])
    t.match(await keep({ document_id: 'second' }), [{ document_id: 'first' }])
    await change(call, await rome())
    t.strictSame(await keep({ document_id: 'second' }), [])
    t.match(await keep({ document_id: 'third' }), [{ document_id: 'second' }])
    await change(call, await rome())
    t.strictSame(await keep({}), [], 'also without an id')

    t.strictSame(await keep({ document_id: 'session', update_mode: 'append', tags: ['s'] }), [])
    t.match(await keep({ document_id: 'session', update_mode: 'append', tags: ['s'] }), [{ document_id: 'session' }])
    await change(call, (await call('GET', 'b/memories/list?document_id=session')).body.items[0].id)
    t.strictSame(await keep({ document_id: 'session', update_mode: 'append', tags: ['s'] }), [])
    t.match(await keep({ document_id: 'session', update_mode: 'append', tags: ['s'] }), [{ document_id: 'session' }])
    for (const { id } of (await call('GET', 'b/memories/list?document_id=session')).body.items) await change(call, id)
    t.strictSame(await keep({ document_id: 'session', update_mode: 'append', tags: ['s'] }), [], 'where it is so of all of them')
  })
}

t.test('a text that a model finds no facts in is kept again once it was edited', async t => {
  for (const unless_known of [true, false]) {
    const { call, keep } = extracting(t)
    t.notOk((await keep({ document_id: 'first', unless_known }) as unknown[] | undefined)?.length)
    const [{ id }] = (await call('GET', 'b/memories/list')).body.items
    await changes.edited!(call, id)
    await keep({ unless_known })
    t.strictSame((await call('GET', 'b/memories/list')).body.items.map(({ text }: Kept) => text).toSorted(), ['Alice lives in Paris.', TEXT])
  }
})

t.test('a session that says more or says it for others has it again, also where facts were made of it', async t => {
  const { keep } = extracting(t, 'Alice works at Acme.')
  const add = (more: object): Promise<unknown> => keep({ document_id: 'session', update_mode: 'append', tags: ['a', 'b'], metadata: { page: '3' }, ...more })
  t.strictSame(await add({}), [])
  t.match(await add({ metadata: {} }), [{ document_id: 'session' }])
  const unlike: Readonly<Record<string, object>> = {
    'other metadata': { metadata: { page: '4' } }, 'another context': { context: 'At lunch.' }, 'fewer readers': { tags: ['a'] }
  }
  for (const [why, more] of Object.entries(unlike)) {
    t.strictSame(await add(more), [], why)
    t.match(await add(more), [{ document_id: 'session' }], `${why}, again`)
  }
})

t.test('a text whose parts are for different readers is kept for all of them', async t => {
  const { keep } = extracting(t, 'Alice works at Acme.')
  t.strictSame(await keep({ document_id: 'parts', content: 'One.', tags: ['a'] }), [])
  t.strictSame(await keep({ document_id: 'parts', content: 'Two.', tags: ['b'], update_mode: 'append' }), [])
  t.strictSame(await keep({ document_id: 'whole', content: 'One.\n\nTwo.', tags: ['a', 'b'] }), [])
})

t.test('on the wire, of several items those are named that are known, and none where it is not asked for', async t => {
  const { call } = openEngine(t)
  const known = async (...items: readonly object[]): Promise<unknown> => (await call('POST', 'b/memories', { items })).body.known
  t.equal(await known({ content: 'One.', document_id: 'a' }), undefined)
  t.match(await known({ content: 'Two.', document_id: 'b', unless_known: true }, { content: 'One.', document_id: 'c', unless_known: true }, { content: 'One.', document_id: 'd' }),
    [{ item: 1, document_id: 'a', memory_id: /./ }])
  t.strictSame((await call('GET', 'b/documents')).body.items.map(({ id }: { id: string }) => id).toSorted(), ['a', 'b', 'd'])
  t.strictSame(await known({ content: 'One.', document_id: 'e', unless_known: true, entities: [{ text: 'One' }] }), [], 'names that are told with it would be lost')
})

t.test('of equal items of one request one is kept, also where they are in several slices', async t => {
  const { call } = openEngine(t)
  const filler = Array.from({ length: 12 }, (_, i) => ({ content: `Filler ${i}. ${'It is long. '.repeat(400)}` }))
  const large = 'A very large text. '.repeat(3000)
  for (const [bank, between] of [['few', []], ['many', filler]] as const) {
    const keep = async (...items: readonly object[]): Promise<unknown> =>
      (await call('POST', `${bank}/memories`, { items })).body.known
    const once = (content: string, id: string, more: object = {}): object =>
      ({ content, document_id: id, unless_known: true, ...more })
    const places = await keep(once('One.', 'a'), once('One.', 'b'), ...between, once('One.', 'c'),
      once('Two.', 's', { update_mode: 'append' }), once('Two.', 's', { update_mode: 'append' }), once(large, 'l1'), once(large, 'l2'))
    const n = between.length
    const expected = [[1, 'a'], [n + 2, 'a'], [n + 4, 's'], [n + 6, 'l1']].map(([item, id]) => ({ item, document_id: id }))
    t.match(places, expected, bank)
    t.equal((places as unknown[]).length, expected.length)

    const plain = (content: string): object => ({ content, document_id: 'd' })
    const told = await keep(once('One.', 'd'), ...between, plain('More.'), ...between, plain('Most.'), plain(large))
    t.match(told, [{ item: 0 }])
    const { body } = await call('GET', `${bank}/documents/d`)
    t.equal(body.original_text, `More.\n\nMost.\n\n${large}`, 'what follows one that was not kept begins the document')
  }
})

t.test('where all is known, the bank has no new document', async t => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  const wire = openInThread(t, t.testdir(), {}, () => now)
  const keep = (): Promise<unknown> => wire.call('POST', 'b/memories', { items: [{ content: 'One.', document_id: 'a', unless_known: true }] })
  const last = async (): Promise<string> => (await wire.call('GET', '/v1/default/banks')).body.banks[0].last_document_at
  await keep()
  const before = await last()
  now += 60_000
  await keep()
  t.equal(await last(), before)
})

t.test('between the items of a large request that are looked up, others are served', async t => {
  const wire = openInThread(t)
  const items = Array.from({ length: 10_500 }, (_, i) => ({ content: `${i}`, document_id: `d${i}` }))
  await wire.call('POST', 'b/memories', { items })
  const answered = wire.call('POST', 'b/memories', { items: items.map(item => ({ ...item, unless_known: true })) })
  let [isOver, most, before] = [false, 0, wire.statements()]
  const begun = before
  void answered.finally(() => { isOver = true })
  while (!isOver) {
    await new Promise(resolve => { setImmediate(resolve) })
    most = Math.max(most, wire.statements() - before)
    before = wire.statements()
  }
  t.equal((await answered).body.known.length, items.length)
  t.ok(most * 3 < before - begun, `${most} statements in one turn`)
})

t.test('tools, chats and the command line tell that it was known', async t => {
  const host = await memoryHost(t, { plugins: [mcpMemory, mcpServers] })
  const alice = await connect(t, host.baseUrl, as('alice', true))
  const first = await callTool(alice, 'memory_add', { text: 'Alice has a cat.' })
  t.match(await callTool(alice, 'memory_add', { text: 'Alice has a cat.' }), { status: 'ok', id: first.id, known: true, memory_id: /./ })
  t.equal((await callTool(alice, 'memory_list')).items.length, 1)

  const svc = (...args: string[]): ReturnType<typeof run> => run(['memory', ...args, '--url', host.baseUrl])
  const { id } = JSON.parse((await svc('add', 'Deploys happen on Tuesdays.', '--json')).stdout) as { readonly id: string }
  t.match(await svc('add', 'Deploys happen on Tuesdays.'), { code: 0, stdout: `Already known, as ${id}.\n` })
  t.match(JSON.parse((await svc('add', 'Deploys happen on Tuesdays.', '--json')).stdout), { id, known: true })
  t.match(await svc('add', 'Deploys happen on Tuesdays.', '--tag', 'work'), { stdout: /^Remembered as / })

  const chats = await wireGateway(t, { plugins: [...memoryPlugins, memoryChat], svc: '[memory]\nenabled = true\n' })
  for (let n = 0; n < 2; n++) {
    const answer = await chats.chat({ messages: [{ role: 'user', content: 'Who has a cat?' }], memory: { recall: false } })
    t.match(await answer.json(), { _svc: { memory: { retain: true } } })
  }
  t.match(await (await chats.fetch('/api/memory/list')).json(), { items: [{ text: /^User: Who has a cat\?/, tags: ['chat', 'agent:anonymous'] }], next_cursor: null })
})

t.test('a Hindsight server is not asked for it', async t => {
  const fake = await fakeHindsight(t)
  const { add, kept } = of(await memoryHost(t, { url: fake.url }))
  for (let n = 0; n < 2; n++) t.notOk('known' in await add('Tea is hot.'))
  t.equal((await kept()).length, 2)
  t.notMatch(fake.seen.map(({ body }) => body).join(), 'unless_known')
})
