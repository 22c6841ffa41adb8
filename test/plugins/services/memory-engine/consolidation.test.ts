import t, { type Test } from 'tap'
import { consolidationPlan } from '../../../../plugins/services/memory-engine/llm/consolidation.js'
import { extractedFacts } from '../../../../plugins/services/memory-engine/llm/extraction.js'
import type { ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { completion, consolidating, openWithChat, over, type Asked } from './models-support.js'
import { noModels, openEngine, type Wire } from './support.js'

/** The ids that a question shows behind a heading. */
function idsIn ({ messages }: Asked, heading: string): string[] {
  const part = messages.at(-1)!.content.split(heading)[1]!.split('\n\n')[0]!
  return [...part.matchAll(/\[([0-9a-f-]{36})\]/g)].map(([, id]) => id!)
}

async function observations (call: Wire['call'], bank = 'b'): Promise<ReadonlyArray<Record<string, unknown>>> {
  return (await call('GET', `${bank}/memories/list?type=observation`)).body.items
}

async function consolidated (call: Wire['call'], bank = 'b'): Promise<Record<string, unknown> & { readonly operation_id: string }> {
  return await over(call, bank, (await call('POST', `${bank}/consolidate`)).body.operation_id)
}

t.test('facts become observations in one change, by those who may read them, and the change can be undone', async t => {
  const asked: Asked[] = []
  const answers: Array<(question: Asked) => object> = [
    question => ({ creates: [{ text: 'Alice works at Acme.', source_fact_ids: idsIn(question, 'NEW FACTS') }] }),
    question => ({ creates: [{ text: 'Bob sails.', source_fact_ids: idsIn(question, 'NEW FACTS') }] }),
    question => ({ updates: [{ observation_id: idsIn(question, 'EXISTING OBSERVATIONS')[0], text: 'Alice worked at Acme, now at Globex.', source_fact_ids: idsIn(question, 'NEW FACTS') }] }),
    question => ({ deletes: [{ observation_id: idsIn(question, 'EXISTING OBSERVATIONS')[0] }] })
  ]
  const { call } = openWithChat(t, question => {
    asked.push(question)
    return JSON.stringify(answers.shift()!(question))
  })
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.', tags: ['a'] }, { content: 'Alice likes Acme.', tags: ['a'] }, { content: 'Bob sails.' }] })
  const first = await consolidated(call)
  t.match(first, { status: 'completed', operation_type: 'consolidation', result_metadata: { observations_created: 2, observations_updated: 0, memories_processed: 3 } })
  t.equal(asked.length, 2, 'facts of other tags are another question')
  t.notMatch(JSON.stringify(asked[0]), /Bob/)
  t.equal(asked[0]!.response_format!.type, 'json_object')
  t.match((await observations(call)).find(({ text }) => text === 'Alice works at Acme.'), { tags: ['a'], proof_count: 2, document_id: null, source_memory_ids: { length: 2 } })
  const { id } = (await observations(call)).find(({ text }) => text === 'Alice works at Acme.')!
  t.match((await call('GET', `b/memories/${String(id)}`)).body, {
    history: { length: 0 }, source_memories: [{ text: 'Alice works at Acme.', type: 'world', occurred_start: null }, { text: 'Alice likes Acme.' }]
  })
  t.match((await call('GET', 'b/observations/scopes')).body, { total: 2, scopes: [{ count: 1 }, { count: 1 }] })
  t.match((await call('GET', 'b/stats')).body, { pending_consolidation: 0, total_observations: 2, last_consolidated_at: String })

  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Globex.', tags: ['a'] }] })
  const second = await consolidated(call)
  t.match((await observations(call)).find(({ tags }) => (tags as string[]).includes('a')), { text: 'Alice worked at Acme, now at Globex.', proof_count: 3 })
  await call('POST', 'b/memories', { items: [{ content: 'Alice never worked.', tags: ['a'] }] })
  const third = await consolidated(call)
  t.match(third, { result_metadata: { observations_deleted: 1 } })
  t.equal((await observations(call)).length, 1)

  t.match(await call('POST', `b/operations/${second.operation_id}/undo`), { status: 409, body: { detail: new RegExp(`undo ${third.operation_id} first`) } })
  t.match((await call('POST', `b/operations/${third.operation_id}/undo`)).body, { success: true })
  t.match((await observations(call)).find(({ tags }) => (tags as string[]).includes('a')), { text: 'Alice worked at Acme, now at Globex.' }, 'what was deleted is back')
  t.match((await call('POST', `b/operations/${second.operation_id}/undo`)).body, { success: true })
  t.match((await observations(call)).find(({ tags }) => (tags as string[]).includes('a')), { text: 'Alice works at Acme.', proof_count: 2 })
  t.match(await call('POST', `b/operations/${second.operation_id}/undo`), { status: 409, body: { detail: /already undone/ } })
  t.match((await call('GET', 'b/stats')).body, { pending_consolidation: 2 }, 'its facts are open again')
  const fact = (await call('GET', 'b/memories/list?q=Bob&type=world')).body.items[0].id
  await call('DELETE', `b/memories/${fact}`)
  t.match(await call('POST', `b/operations/${first.operation_id}/undo`), { status: 409, body: { detail: /no longer kept/ } }, 'what was deleted for good does not come back')
  t.match((await call('DELETE', 'b/observations')).body, { success: true, deleted_count: 1 })
})

t.test('an observation that is deleted while the model answers has the consolidation tried again', async t => {
  const answers: Array<(question: Asked) => object | Promise<object>> = [
    question => ({ creates: [{ text: 'Alice works at Acme.', source_fact_ids: idsIn(question, 'NEW FACTS') }] }),
    async question => {
      const [id] = idsIn(question, 'EXISTING OBSERVATIONS')
      await call('DELETE', `b/memories/${id!}`)
      return { updates: [{ observation_id: id, text: 'Alice works at Globex.', source_fact_ids: idsIn(question, 'NEW FACTS') }] }
    }
  ]
  const { call } = openWithChat(t, async question => JSON.stringify(await answers.shift()!(question)))
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.' }] })
  await consolidated(call)
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Globex.' }] })
  t.match(await consolidated(call), { status: 'pending', next_retry_at: String, error_message: 'memories were changed while they were consolidated' })
})

t.test('an answer that is no sound JSON changes nothing, and the operation fails until it is recovered', async t => {
  let answer: (question: Asked) => string = () => ''
  const { call } = openWithChat(t, question => answer(question))
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.' }] })
  answer = question => JSON.stringify({ creates: [{ text: 'Alice works.', source_fact_ids: idsIn(question, 'NEW FACTS') }] })
  await consolidated(call)
  const before = await observations(call)
  const bad: ReadonlyArray<readonly [string, RegExp]> = [
    ['I would rather not.', /not JSON/], ['[]', /not a JSON object/], ['{"answer": 5}', /an unexpected format/], ['', /an empty answer/],
    [`{"creates": [], "deletes": [{"observation_id": "${before[0]!.id as string}x"}]}`, /was not shown/],
    ['{"creates": [{"text": "x", "source_fact_ids": ["5d8b8a04-fefb-4312-b6f8-04b65e09f014"]}]}', /was not shown/],
    ['{"creates": [{"text": "", "source_fact_ids": []}]}', /is not a string/], ['{"creates": {"text": "x"}}', /is not a list/]
  ]
  for (const [n, [text, why]] of bad.entries()) {
    await call('POST', 'b/memories', { items: [{ content: `Another fact, number ${n}.` }] })
    answer = () => text
    t.match(await consolidated(call), { status: 'failed', error_message: why, retry_count: 0 }, String(why))
    t.same(await observations(call), before)
  }
  t.match((await call('GET', 'b/stats')).body, { failed_consolidation: bad.length, pending_consolidation: 0 })
  answer = question => JSON.stringify({ creates: [{ text: 'Facts are known.', source_fact_ids: idsIn(question, 'NEW FACTS') }] })
  t.same((await call('POST', 'b/consolidation/recover')).body, { retried_count: bad.length })
  const [{ id }] = (await call('GET', 'b/operations?type=consolidation&limit=1')).body.operations
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { observations_created: 1 } })
  t.match((await call('GET', 'b/llm-requests')).body, { total: bad.length + 2, items: [{ operation: 'consolidation', call_type: undefined, status: 'success', input: null, total_tokens: 20 }] })
  t.match((await call('GET', 'b/llm-requests/stats')).body.buckets, [{ total: bad.length + 2, tokens: { total: 20 * (bad.length + 2) } }])
})

t.test('a passing trouble is tried again later, by hand at once, and a budget ends the day', async t => {
  let reply = (_: Asked): ReturnType<typeof completion> => ({ status: 503, body: Buffer.from('{}') })
  const { call, path } = openWithChat(t, question => reply(question))
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.' }] })
  const { body: { operation_id: id } } = await call('POST', 'b/consolidate')
  t.match(await over(call, 'b', id), { status: 'pending', retry_count: 1, next_retry_at: String, error_message: /answered 503/ })
  t.same((await call('POST', 'b/consolidate')).body, { operation_id: id, deduplicated: true })
  reply = question => completion(JSON.stringify({ creates: [{ text: 'x', source_fact_ids: idsIn(question, 'NEW FACTS') }] }), 300_000)
  t.match((await call('POST', `b/operations/${id}/retry`)).body, { success: true, message: `Operation ${id} queued for retry` })
  t.match(await over(call, 'b', id), { status: 'completed', retry_count: 0 })
  await call('POST', 'b/memories', { items: [{ content: 'Bob sails.' }] })
  t.match(await consolidated(call), { status: 'failed', error_message: /used its 500000 tokens for today/ })
  t.match((await call('GET', 'b/stats')).body, { failed_consolidation: 0, pending_consolidation: 1 }, 'its facts are open for another day')
  await call('POST', 'c/memories', { items: [{ content: 'Bob sails.' }] })
  t.match(await consolidated(call, 'c'), { status: 'completed' }, 'another bank has its own')
  const store = openStore(path)
  t.teardown(() => store.close())
  store.run('UPDATE token_use SET day = date(day, \'-1 day\')')
  t.match(await consolidated(call), { status: 'completed' }, 'what was used yesterday is not counted today')
})

t.test('a running operation that is cancelled leaves nothing behind', async t => {
  let isAsked = false
  const { call } = openEngine(t, {
    abilities: () => ({ ...noModels, chat: { model: 'm', why: null } }),
    run: (_, signal) => new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
      isAsked = true
    })
  })
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.' }] })
  const { body: { operation_id: id } } = await call('POST', 'b/consolidate')
  while (!isAsked) await call('GET', '/health')
  t.match((await call('GET', `b/operations/${id}`)).body, { status: 'processing', progress: { stage: 'consolidating', processed: 0, total: 1 } })
  t.match(await call('DELETE', `b/operations/${id}/delete`), { status: 409, body: { detail: /cancel it first/ } })
  t.match((await call('DELETE', `b/operations/${id}`)).body, { success: true, message: `Operation ${id} cancelled` })
  t.match((await call('GET', `b/operations/${id}`)).body, { status: 'cancelled', completed_at: String })
  t.match(await call('POST', `b/operations/${id}/retry`), { status: 409 })
  t.match((await call('GET', 'b/stats')).body, { failed_consolidation: 0, pending_consolidation: 1 })
})

t.test('where the graph is on, facts take the place of the text that they name as their source; nonsense leaves it', async t => {
  const asked: Asked[] = []
  let answer = JSON.stringify({
    facts: [
      { text: 'Alice works at Acme.', fact_type: 'world', entities: ['Alice', 'Acme'], occurred_start: '2024-03-01', occurred_end: 'never' },
      { text: 'The assistant greeted Alice.', fact_type: 'experience', entities: [] }
    ]
  })
  const { call } = openWithChat(t, question => {
    asked.push(question)
    return question.messages[0]!.content.includes('observations of a long-term memory') ? '{"creates": []}' : answer
  }, { abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts: true }) })
  await call('POST', 'b/memories', { items: [{ content: 'Hi! I am Alice and work at Acme.', document_id: 'd', tags: ['t'], context: 'chat' }] })
  const [{ id }] = (await call('GET', 'b/operations?type=graph_maintenance')).body.operations
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { facts_committed: 2, chunks: 1 } })
  const { body: { items } } = await call('GET', 'b/memories/list')
  t.match(items.toSorted((a: { text: string }, b: { text: string }) => a.text < b.text ? -1 : 1), [
    { text: 'Alice works at Acme.', fact_type: 'world', entities: 'Alice, Acme', occurred_start: /^2024-03-01/, occurred_end: null, document_id: 'd', chunk_id: 'b_d_0', tags: ['t'] },
    { text: 'The assistant greeted Alice.', fact_type: 'experience', document_id: 'd' }
  ])
  t.equal((await call('GET', 'b/documents/d')).body.original_text, 'Hi! I am Alice and work at Acme.')
  const text = 'Bob and Carol met in Rome.'
  for (let n = 0; n < 2; n += 1) {
    await call('POST', 'r/memories', { items: [{ content: text }] })
    const [last] = (await call('GET', 'r/operations?type=graph_maintenance&limit=1')).body.operations
    await over(call, 'r', last.id)
  }
  t.match((await call('GET', 'r/documents')).body, { total: 1 }, 'the same text again makes no second memory')
  t.match((await call('GET', 'r/memories/list')).body, { total: 2 })
  for (const nonsense of ['certainly!', '{"facts": "none"}', '{"facts": [{"text": 7}]}', '{"facts": []}']) {
    answer = nonsense
    await call('POST', 'c/memories', { items: [{ content: 'Bob sails.', document_id: 'e', update_mode: 'replace' }] })
    const [last] = (await call('GET', 'c/operations?type=graph_maintenance&limit=1')).body.operations
    await over(call, 'c', last.id)
    t.match((await call('GET', 'c/memories/list?document_id=e')).body, { total: 1, items: [{ text: 'Bob sails.' }] }, nonsense)
    await call('DELETE', 'c/documents/e')
  }
  answer = '{"facts": [{"what": "Dave runs.", "entities": [{"text": "Dave"}]}]}'
  t.match((await call('POST', 'b/memories/dry-run-extract', { content: 'I am Dave and run.' })).body, {
    facts: [{ text: 'Dave runs.', fact_type: 'world', entities: ['Dave'], chunk_index: 0 }], chunks: [{ fact_count: 1 }], usage: { total_tokens: 20 }
  })
  t.equal((await call('GET', 'b/memories/list?q=Dave')).body.total, 0)
  t.match((await call('POST', 'b/prompts/preview', { operation: 'reflect' })).body, { messages: [{ role: 'system' }, { role: 'user', blocks: [{ text: /\{memory\}/ }] }], skipped_reason: null })
  t.match((await call('POST', 'b/health/llm')).body, { operations: [{ operation: 'retain', ok: true, status: 'connected' }, {}, {}] })
})

t.test('a text whose facts are still to be found is not consolidated before it gives way to them', async t => {
  const shown: string[] = []
  const extractions: Array<() => void> = []
  const { call } = openWithChat(t, async question => {
    const text = question.messages.at(-1)!.content
    if (!text.includes('NEW FACTS')) {
      await new Promise<void>(resolve => { extractions.push(resolve) })
      return JSON.stringify({ facts: [{ text: `Known: ${text.split('\n').at(-1)!}` }] })
    }
    shown.push(text.split('NEW FACTS')[1]!)
    return JSON.stringify({ creates: [{ text: 'Things are known.', source_fact_ids: idsIn(question, 'NEW FACTS') }] })
  }, { abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts: true }) })
  const asked = async (): Promise<void> => {
    while (extractions.length === 0) await call('GET', '/health')
    extractions.shift()!()
  }
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.' }] })
  const { body: { operation_id: id } } = await call('POST', 'b/consolidate')
  await call('POST', 'b/memories', { items: [{ content: 'Bob sails.' }] })
  await asked()
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { memories_processed: 1 } })
  t.match(shown, [/Known: Alice/])
  t.notMatch(shown[0], /Bob/)
  await asked()
  while (shown.length === 1) await call('GET', '/health')
  t.match(shown[1], /Known: Bob/)
  const [{ id: last }] = (await call('GET', 'b/operations?type=consolidation&limit=1')).body.operations
  t.match(await over(call, 'b', last), { status: 'completed' })
  t.match((await call('GET', 'b/stats')).body, { total_observations: 2, pending_consolidation: 0 })
  for (const each of [last, id]) t.match(await call('POST', `b/operations/${each}/undo`), { status: 200 })
})

/** Extracts each text as the fact `Known: …`, makes one observation of what it is shown. Texts with `trouble` are another's. */
function openExtracting (t: Test, trouble: (text: string) => ErrandAnswer | Promise<ErrandAnswer>): {
  readonly call: Wire['call']
  /** What each consolidation was shown. */
  readonly shown: readonly string[]
  /** Of the last operation of a type, once it has ended. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
  readonly last: (type: string) => Promise<any>
} {
  const shown: string[] = []
  const { call } = openWithChat(t, async question => {
    const text = question.messages.at(-1)!.content
    const said = text.split('\n').at(-1)!
    const isText = !text.includes('NEW FACTS')
    if (isText) return said.includes('trouble') ? await trouble(said) : JSON.stringify({ facts: [{ text: `Known: ${said}` }] })
    shown.push(text.split('NEW FACTS')[1]!)
    return JSON.stringify({ creates: [{ text: 'Things are known.', source_fact_ids: idsIn(question, 'NEW FACTS') }] })
  }, { abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts: true }) })
  const last = async (type: string): Promise<unknown> => {
    const { body: { operations: [{ id }] } } = await call('GET', `b/operations?type=${type}&limit=1`)
    return await over(call, 'b', id)
  }
  return { call, shown, last }
}

t.test('while a text waits for the next try of its extraction, others are consolidated and nothing is consolidated for it in vain', async t => {
  const { call, last } = openExtracting(t, () => ({ status: 503, body: Buffer.from('{}') }))
  await call('POST', 'b/memories', { items: [{ content: 'Bob makes trouble.', document_id: 'bob' }] })
  t.match(await last('graph_maintenance'), { status: 'pending', next_retry_at: String })
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.', document_id: 'alice' }] })
  t.match(await last('graph_maintenance'), { status: 'completed' })
  const { operation_id: id, ...first } = await last('consolidation')
  t.match(first, { status: 'completed', result_metadata: { observations_created: 1, memories_processed: 1 } })
  t.equal((await call('GET', 'b/operations?type=consolidation')).body.total, 1)

  const { body: { operation_id: asked } } = await call('POST', 'b/consolidate')
  t.match(await over(call, 'b', asked), { status: 'completed', result_metadata: { memories_processed: 0 } })
  t.match(await call('POST', `b/operations/${asked}/undo`), { status: 409 }, 'there is nothing to be undone of one that changed nothing')
  t.match(await call('POST', `b/operations/${id}/undo`), { status: 200 }, 'and none stands on the one before')
})

t.test('a text whose extraction fails is consolidated as it is, and so is one whose extraction is cancelled while it waits or runs', async t => {
  const asked: string[] = []
  let release = (): void => {}
  const { call, shown, last } = openExtracting(t, async text => {
    asked.push(text)
    if (!text.startsWith('Bob')) await new Promise<void>(resolve => { release = resolve })
    return completion('certainly!')
  })
  await call('POST', 'b/memories', { items: [{ content: 'Bob makes trouble.', document_id: 'bob' }] })
  t.match(await last('graph_maintenance'), { status: 'failed' })
  t.match(await last('consolidation'), { status: 'completed' })
  t.match(shown, [/Bob makes trouble/])
  const { body: { total } } = await call('GET', 'b/operations?type=consolidation')
  for (const name of ['Carol', 'Dave']) await call('POST', 'b/memories', { items: [{ content: `${name} is in trouble.`, document_id: name }] })
  while (asked.length < 2) await call('GET', '/health')
  const [waits, runs] = (await call('GET', 'b/operations?type=graph_maintenance')).body.operations
  t.match([waits, runs], [{ status: 'pending' }, { status: 'processing' }])
  await call('DELETE', `b/operations/${waits.id}`)
  t.equal((await call('GET', 'b/operations?type=consolidation')).body.total, total + 1)
  await call('DELETE', `b/operations/${runs.id}`)
  release()
  t.match(await last('consolidation'), { status: 'completed' })
  t.match(shown.slice(1).join(), /Carol[^]*Dave/)
  t.match((await call('GET', 'b/stats')).body, { pending_consolidation: 0 })
})

t.test('facts of a document that another text is appended to are consolidated before the facts of that are found', async t => {
  const { call, shown, last } = openExtracting(t, () => ({ status: 503, body: Buffer.from('{}') }))
  await call('PUT', 'b', {})
  await call('PATCH', 'b/config', { updates: { enable_auto_consolidation: false } })
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.', document_id: 'session' }] })
  t.match(await last('graph_maintenance'), { status: 'completed' })
  await call('POST', 'b/memories', { items: [{ content: 'Alice is in trouble.', document_id: 'session', update_mode: 'append' }] })
  t.match(await last('graph_maintenance'), { status: 'pending', next_retry_at: String })
  t.match((await call('GET', 'b/memories/list')).body, { total: 2 })
  await call('POST', 'b/consolidate')
  t.match(await last('consolidation'), { status: 'completed', result_metadata: { memories_processed: 1 } })
  t.match(shown, [/Known: Alice works at Acme/])
})

t.test('what is being extracted when the graph is switched off, and what waits for it, is cancelled; the text stays', async t => {
  let [asked, extracts, nonsense] = [0, true, false]
  const options: Parameters<typeof openEngine>[1] = {
    abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts }),
    run: (_, signal) => nonsense ? Promise.resolve(completion('certainly!')) : new Promise((_resolve, reject) => {
      asked++
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  }
  const { call, engine, path } = openEngine(t, options)
  const builds = async (of: Wire['call'], bank = 'b'): Promise<string[]> =>
    (await of('GET', `${bank}/operations?type=graph_maintenance`)).body.operations.map(({ status }: { status: string }) => status)
  const texts = async (of: Wire['call']): Promise<string[]> => (await of('GET', 'b/memories/list')).body.items.map(({ text }: { text: string }) => text).sort()
  for (const content of ['Alice works at Acme.', 'Bob sails.']) await call('POST', 'b/memories', { items: [{ content, document_id: content }] })
  while (asked === 0) await call('GET', '/health')
  t.same(await builds(call), ['pending', 'processing'])
  t.match((await call('GET', 'b/operations?status=processing&type=graph_maintenance')).body.operations, [{ progress: { stage: 'extracting', processed: 0, total: 1 } }])
  extracts = false
  engine.abilitiesChanged()
  t.same(await builds(call), ['cancelled', 'cancelled'])
  await call('POST', 'b/memories', { items: [{ content: 'Carol runs.' }] })
  t.same(await builds(call), ['cancelled', 'cancelled'], 'and no other one comes')
  t.same(await texts(call), ['Alice works at Acme.', 'Bob sails.', 'Carol runs.'])
  t.equal(asked, 1, 'the second one is never asked')

  extracts = true
  engine.abilitiesChanged()
  nonsense = true
  // each question that is counted is one of an extraction
  await call('PUT', 'c', {})
  await call('PATCH', 'c/config', { updates: { enable_auto_consolidation: false } })
  await call('POST', 'c/memories', { items: [{ content: 'Dave swims.' }] })
  const [{ id }] = (await call('GET', 'c/operations?type=graph_maintenance')).body.operations
  t.match(await over(call, 'c', id), { status: 'failed' })
  nonsense = false
  await call('POST', 'b/memories', { items: [{ content: 'Eve reads.' }] })
  while (asked === 1) await call('GET', '/health')
  await engine.close()
  extracts = false
  const again = openEngine(t, { ...options, path: () => path })
  t.same(await builds(again.call), ['cancelled', 'cancelled', 'cancelled'], 'so is what was left when it was switched off while the engine was closed')
  await again.call('POST', `c/operations/${id}/retry`)
  t.match(await over(again.call, 'c', id), { status: 'failed', retry_count: 0, error_message: 'the graph is off: svc memory graph enable' }, 'one that had failed is not extracted by hand either')
  t.equal(asked, 2)
})

t.test('another model that embeds makes vectors anew, and asks no language model for facts again', async t => {
  const asked: Asked[] = []
  let identity = 'one'
  const { call, engine } = openWithChat(t, question => {
    asked.push(question)
    return question.messages[0]!.content.includes('observations of a long-term memory') ? '{"creates": []}' : '{"facts": [{"text": "Alice works at Acme."}]}'
  }, { abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts: true, embed: { model: 'e', identity, why: null } }) }, consolidating)
  const settled = async (wanted: string): Promise<void> => {
    for (;;) {
      const { body: { operations } } = await call('GET', 'b/operations?limit=100')
      const { body: { pending, stale, model } } = await call('GET', 'b/embeddings')
      if (operations.every(({ status }: { status: string }) => status === 'completed') && pending === 0 && stale === 0 && model === wanted) return
    }
  }
  await call('POST', 'b/memories', { items: [{ content: 'Hi! I am Alice and work at Acme.', document_id: 'd' }] })
  await settled('one')
  const { body: before } = await call('GET', 'b/memories/list')
  t.match(before, { total: 1, items: [{ text: 'Alice works at Acme.' }] })
  const [questions, { body: { total } }] = [asked.length, await call('GET', 'b/operations')]
  identity = 'two'
  engine.abilitiesChanged()
  await settled('two')
  t.equal(asked.length, questions, 'no further question')
  t.equal((await call('GET', 'b/operations')).body.total, total)
  t.same((await call('GET', 'b/memories/list')).body, before)
})

t.test('answers of models are read strictly, within a fence or behind thoughts', t => {
  const fact = { id: 'f', text: 'x', at: null }
  const creates = (text: string): unknown => consolidationPlan(text, [fact], []).creates
  const plain = '{"creates":[{"text":" y ","source_fact_ids":["f","f"]}]}'
  for (const text of [plain, `\`\`\`json\n${plain}\n\`\`\``, `<think>hm {</think>\n${plain}`]) t.same(creates(text), [{ text: 'y', sources: ['f'] }])
  t.throws(() => creates(`Here you are: ${plain}`), /not JSON/)
  t.throws(() => consolidationPlan('{"updates":[{"observation_id":"o","text":"a","source_fact_ids":["f"]}],"deletes":[{"observation_id":"o"}]}', [fact], [{ id: 'o', text: 'a' }]), /twice/)
  t.equal(extractedFacts(JSON.stringify({ facts: Array.from({ length: 999 }, () => ({ text: 'x'.repeat(9000) })) })).length, 200)
  t.end()
})
