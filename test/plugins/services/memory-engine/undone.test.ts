import t, { type Test } from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { isIndexed, isSound, keepsWhatItNames } from './killed/sound.js'
import { openWithChat, over, type Asked } from './models-support.js'
import { noModels, type Wire } from './support.js'

interface Bank extends Wire {
  /** What the model answers next; none of its own is no observation. */
  readonly next: (answer: (asked: Shown) => object) => void
  /** Retains a text, has it extracted if the graph is on, and returns the id of its memory. */
  readonly told: (text: string) => Promise<string>
  readonly consolidated: () => Promise<string>
  readonly undo: (operation: string) => Promise<{ readonly status: number, readonly body: { readonly detail?: string } }>
  readonly texts: () => Promise<string[]>
  /** Of the only observation. */
  readonly observation: () => Promise<{ readonly id: string, readonly text: string }>
}

interface Shown {
  readonly facts: readonly string[]
  readonly observations: readonly string[]
}

/** The ids that a question shows behind a heading. */
function idsIn (asked: Asked, heading: string): string[] {
  const part = asked.messages.at(-1)!.content.split(heading)[1]!.split('\n\n')[0]!
  return [...part.matchAll(/\[([0-9a-f-]{36})\]/g)].map(([, id]) => id!)
}

/** A bank `b` whose model says what the test lays down. With `extracts`, its fact of a text is the text in capitals. */
function openBank (t: Test, extracts = false): Bank {
  const answers: Array<(asked: Shown) => object> = []
  const wire = openWithChat(t, asked => {
    const question = asked.messages.at(-1)!.content
    if (!question.includes('NEW FACTS')) return JSON.stringify({ facts: [{ text: question.split('\n').at(-1)!.toUpperCase() }] })
    const shown = { facts: idsIn(asked, 'NEW FACTS'), observations: idsIn(asked, 'EXISTING OBSERVATIONS') }
    return JSON.stringify(answers.shift()?.(shown) ?? { creates: [] })
  }, { abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, extracts }) })
  const { call } = wire
  // each of the consolidations is one that the test asks for
  const prepared = (async () => {
    await call('PUT', 'b', {})
    await call('PATCH', 'b/config', { updates: { enable_auto_consolidation: false } })
  })()
  const list = async (query = ''): Promise<Array<{ id: string, text: string }>> => (await call('GET', `b/memories/list${query}`)).body.items
  return {
    ...wire,
    next: answer => { answers.push(answer) },
    told: async text => {
      await prepared
      const before = new Set((await list()).map(({ id }) => id))
      await call('POST', 'b/memories', { items: [{ content: text, document_id: text }] })
      for (const { id } of extracts ? (await call('GET', 'b/operations?type=graph_maintenance')).body.operations : []) await over(call, 'b', id)
      return (await list()).find(({ id }) => !before.has(id))!.id
    },
    consolidated: async () => {
      const { status, operation_id: id } = await over(call, 'b', (await call('POST', 'b/consolidate')).body.operation_id)
      t.equal(status, 'completed')
      return id as string
    },
    undo: operation => call('POST', `b/operations/${operation}/undo`),
    texts: async () => (await list()).map(({ text }) => text).toSorted(),
    observation: async () => {
      const all = await list('?type=observation&state=all')
      t.equal(all.length, 1)
      return all[0]!
    }
  }
}

/** A test of such a bank, whose database is sound behind it. */
function tested (name: string, work: (t: Test, bank: Bank) => Promise<void>, extracts = false): void {
  t.test(name, async t => {
    const bank = openBank(t, extracts)
    await work(t, bank)
    const store = openStore(bank.path)
    isSound(t, store)
    isIndexed(t, store)
    keepsWhatItNames(t, store)
    store.close()
  })
}

const creates = (text: string) => ({ facts }: Shown): object => ({ creates: [{ text, source_fact_ids: facts }] })
const updates = (text: string) => ({ facts, observations: [id] }: Shown): object =>
  ({ updates: [{ observation_id: id, text, source_fact_ids: facts }] })
const deletes = ({ observations }: Shown): object => ({ deletes: [{ observation_id: observations[0] }] })
const GONE = { status: 409, body: { detail: /no longer kept/ } }

tested('what has nothing to do with a consolidation leaves it to be undone: extractions, deletions and documents that are replaced', async (t, { call, next, told, consolidated, undo, texts }) => {
  await told('alice works at Acme')
  const other = await told('bob sails')
  next(creates('Alice is employed.'))
  const first = await consolidated()
  await told('carol runs')
  await told('dave swims')
  t.equal((await call('DELETE', 'b/memories/' + (await call('GET', 'b/memories/list?q=DAVE')).body.items[0].id)).status, 200)
  await told('eve reads')
  await call('POST', 'b/memories', { items: [{ content: 'eve writes', document_id: 'eve reads' }] })
  for (const { id } of (await call('GET', 'b/operations?type=graph_maintenance')).body.operations) await over(call, 'b', id)
  t.same(await texts(), ['ALICE WORKS AT ACME', 'Alice is employed.', 'BOB SAILS', 'CAROL RUNS', 'EVE WRITES'])
  t.match(await undo(first), { status: 200 })
  t.same(await texts(), ['ALICE WORKS AT ACME', 'BOB SAILS', 'CAROL RUNS', 'EVE WRITES'])
  t.match((await call('GET', 'b/stats')).body, { pending_consolidation: 4 })

  next(creates('Alice is employed.'))
  const again = await consolidated()
  t.equal((await call('DELETE', `b/memories/${other}`)).status, 200)
  t.match(await undo(again), GONE, 'one of its facts does not')
}, true)

tested('a consolidation that a deletion has made final leaves no earlier one to be undone beneath it', async (t, { call, next, told, consolidated, undo, texts, observation }) => {
  await told('Alice works at Acme.')
  next(creates('Alice has a job at Acme.'))
  const first = await consolidated()
  const job = (await observation()).id
  const gone = await told('Alice works nights.')
  await told('Alice works at Globex.')
  next(({ facts }) => ({ creates: [{ text: 'Alice works by night.', source_fact_ids: [facts[0]] }], updates: [{ observation_id: job, text: 'Alice has a job at Globex.', source_fact_ids: [facts[1]] }] }))
  const second = await consolidated()
  await told('Alice likes cats.')
  next(creates('Alice likes pets.'))
  const third = await consolidated()
  await call('DELETE', `b/memories/${gone}`)
  t.match(await undo(second), { status: 409 })
  t.match(await undo(third), { status: 200 }, 'one that came later has nothing to do with it')
  t.match(await undo(second), GONE)
  t.match(await undo(first), GONE)
  t.same(await texts(), ['Alice has a job at Globex.', 'Alice likes cats.', 'Alice works at Acme.', 'Alice works at Globex.'])
})

tested('a consolidation whose operation is removed from the list leaves no earlier one to be undone beneath it', async (t, { call, next, told, consolidated, undo, texts }) => {
  await told('Alice works at Acme.')
  next(creates('Alice has a job at Acme.'))
  const first = await consolidated()
  await told('Alice works at Globex.')
  next(updates('Alice has a job at Globex.'))
  const second = await consolidated()
  t.equal((await call('DELETE', `b/operations/${second}/delete`)).status, 200)
  t.match(await undo(first), GONE)
  t.same(await texts(), ['Alice has a job at Globex.', 'Alice works at Acme.', 'Alice works at Globex.'])
})

type Way = (bank: Bank, ids: { readonly fact: string, readonly observation: string }) => Promise<{ readonly status: number }>
const ways: Readonly<Record<string, Way>> = {
  'its deletion': ({ call }, { observation }) => call('DELETE', `b/memories/${observation}`),
  'the deletion of all observations': ({ call }) => call('DELETE', 'b/observations'),
  'the deletion of what was made of its fact': ({ call }, { fact }) => call('DELETE', `b/memories/${fact}/observations`),
  'an edit of its fact': ({ call }, { fact }) => call('PATCH', `b/memories/${fact}`, { text: 'Alice is retired.' }),
  'its fact being hidden': ({ call }, { fact }) => call('PATCH', `b/memories/${fact}`, { state: 'invalidated' }),
  'other tags of its document': ({ call }) => call('PATCH', 'b/documents/Alice%20works%20at%20Acme.', { tags: ['other'] })
}

for (const [name, remove] of Object.entries(ways)) {
  tested(`an observation does not come back after ${name}, and no byte of what it said before is left`, async (t, bank) => {
    const { next, told, consolidated, undo, observation, path } = bank
    const fact = await told('Alice works at Acme.')
    next(creates('Alice zqvormlath.'))
    const first = await consolidated()
    const { id } = await observation()
    await told('Alice works at Globex.')
    next(updates('Alice has moved on.'))
    const second = await consolidated()
    t.equal((await remove(bank, { fact, observation: id })).status, 200)
    t.match(await undo(second), GONE)
    t.match(await undo(first), GONE)
    const store = openStore(path)
    t.same(store.all(`SELECT 1 FROM consolidations WHERE before LIKE '%zqvormlath%'`), [])
    t.same(store.all(`SELECT 1 FROM memory_history WHERE change LIKE '%zqvormlath%'`), [])
    t.same(store.all(`SELECT 1 FROM memories WHERE text LIKE '%zqvormlath%' OR text = 'Alice has moved on.'`), [])
    store.close()
  })

  tested(`an observation that a consolidation has deleted does not come back after ${name}`, async (t, bank) => {
    const { call, next, told, consolidated, undo, observation } = bank
    const fact = await told('Alice works at Acme.')
    next(creates('Alice is employed.'))
    await consolidated()
    const { id } = await observation()
    await told('Alice never worked.')
    next(deletes)
    const second = await consolidated()
    t.match((await call('GET', `b/memories/${id}`)), { status: 404 })
    const { status } = await remove(bank, { fact, observation: id })
    t.match(await undo(second), status === 404 ? { status: 200 } : GONE)
  })
}

tested('an observation that came back by undoing is deleted for good like any other', async (t, { call, next, told, consolidated, undo, observation }) => {
  await told('Alice works at Acme.')
  next(creates('Alice is employed.'))
  const first = await consolidated()
  await told('Alice works at Globex.')
  next(updates('Alice has moved on.'))
  const second = await consolidated()
  await told('Alice never worked.')
  next(deletes)
  t.match(await undo(await consolidated()), { status: 200 })
  t.match(await observation(), { text: 'Alice has moved on.' })
  await call('DELETE', `b/memories/${(await observation()).id}`)
  for (const each of [second, first]) t.match(await undo(each), GONE)
})

tested('undoing gives an observation back with its context, its history and the time of its edit', async (t, { call, next, told, consolidated, undo, observation }) => {
  await told('Alice works at Acme.')
  next(creates('Alice is employed.'))
  await consolidated()
  const { id } = await observation()
  await call('PATCH', `b/memories/${id}`, { text: 'Alice is an employee.', context: 'work' })
  const known = async (): Promise<object> => {
    const { updated_at: _, ...body } = (await call('GET', `b/memories/${id}`)).body
    return { body, history: (await call('GET', `b/memories/${id}/history`)).body }
  }
  const before = await known()
  t.match(before, { body: { text: 'Alice is an employee.', context: 'work', edited_at: String }, history: [{ previous_text: 'Alice is employed.' }] })
  for (const change of [deletes, updates('Alice never worked.')]) {
    await told(`Alice never worked, says ${change.name || 'another'}.`)
    next(change)
    const operation = await consolidated()
    t.notSame((await call('GET', `b/memories/${id}`)).body.text, 'Alice is an employee.')
    t.match(await undo(operation), { status: 200 })
    t.same(await known(), before)
  }
})

for (const isHidden of [false, true]) {
  tested(`undoing takes back what a client changed meanwhile in an observation${isHidden ? ' and hid' : ''}, beside its text too`, async (t, { call, next, told, consolidated, undo, observation }) => {
    await told('Alice works at Acme.')
    next(creates('Alice is employed.'))
    await consolidated()
    const { id } = await observation()
    await call('PATCH', `b/memories/${id}`, { context: 'work', entities: ['Alice', 'Acme'], occurred_start: '2024-01-01T00:00:00Z', occurred_end: '2024-02-01T00:00:00Z' })
    const known = async (): Promise<object> => {
      const { updated_at: _, ...body } = (await call('GET', `b/memories/${id}`)).body
      return { body, history: (await call('GET', `b/memories/${id}/history`)).body }
    }
    const before = await known()
    await told('Alice works at Globex.')
    next(updates('Alice has moved on.'))
    const second = await consolidated()
    const edit = { context: 'gossip', entities: ['Bob'], occurred_start: '1999-01-01T00:00:00Z', occurred_end: '1999-02-01T00:00:00Z', fact_type: 'world' }
    t.equal((await call('PATCH', `b/memories/${id}`, edit)).status, 200)
    if (isHidden) await call('PATCH', `b/memories/${id}`, { state: 'invalidated' })
    t.match(await undo(second), { status: 200 })
    if (isHidden) await call('PATCH', `b/memories/${id}`, { state: 'valid' })
    t.same(await known(), before)
    t.same((await call('GET', 'b/entities')).body.items.map(({ canonical_name: name }: { canonical_name: string }) => name).toSorted(), ['Acme', 'Alice'])
    t.match((await call('POST', 'b/memories/recall', { query: 'gossip' })).body.results, { length: 0 })
  })
}

tested('what an observation said before its consolidation was undone goes with the fact that it was made from', async (t, { call, next, told, consolidated, undo, observation, path }) => {
  await told('Alice works at Acme.')
  next(creates('Alice is employed.'))
  await consolidated()
  const fact = await told('Alice zqvormlath.')
  next(updates('Alice zqvormlath, and is employed.'))
  t.match(await undo(await consolidated()), { status: 200 })
  await call('DELETE', `b/memories/${fact}`)
  t.match(await observation(), { text: 'Alice is employed.' })
  const store = openStore(path)
  for (const [table, column] of [['memories', 'text'], ['memory_history', 'change'], ['consolidations', 'before'], ['chunks', 'text']] as const) {
    t.same(store.all(`SELECT 1 FROM ${table} WHERE ${column} LIKE '%zqvormlath%'`), [], table)
  }
  store.close()
})

tested('of a consolidation that an earlier release has kept, undoing leaves nothing of what it said since in the history', async (t, { call, next, told, consolidated, undo, observation, path }) => {
  await told('Alice works at Acme.')
  next(creates('Alice is employed.'))
  await consolidated()
  const { id } = await observation()
  await told('Alice zqvormlath.')
  next(updates('Alice zqvormlath, and is employed.'))
  const second = await consolidated()
  const store = openStore(path)
  store.run(`UPDATE consolidations SET before = json_remove(before, '$.changed[0].edits') WHERE operation = ?`, [second])
  t.match(await undo(second), { status: 200 })
  t.match((await call('GET', `b/memories/${id}/history`)).body, [{ previous_text: 'Alice is employed.' }])
  t.same(store.all(`SELECT 1 FROM memory_history WHERE change LIKE '%zqvormlath%'`), [])
  store.close()
})

tested('undoing leaves an observation hidden that was hidden meanwhile, and its words in no index', async (t, { call, next, told, consolidated, undo, observation, path }) => {
  await told('Alice works at Acme.')
  next(creates('Alice is employed.'))
  await consolidated()
  const { id } = await observation()
  await told('Alice works at Globex.')
  next(updates('Alice has moved on.'))
  const second = await consolidated()
  await call('PATCH', `b/memories/${id}`, { state: 'invalidated', reason: 'wrong' })
  t.match(await undo(second), { status: 200 })
  t.match((await call('GET', `b/memories/${id}`)).body, { text: 'Alice is employed.', state: 'invalidated', invalidation_reason: 'wrong', proof_count: 1 })
  const store = openStore(path)
  isIndexed(t, store)
  store.close()
  t.match(await call('PATCH', `b/memories/${id}`, { state: 'valid' }), { status: 200, body: { text: 'Alice is employed.' } })
  t.match((await call('POST', 'b/memories/recall', { query: 'employed' })).body.results, [{ id }])
  await call('PATCH', `b/memories/${id}`, { state: 'invalidated' })
  t.match(await call('DELETE', `b/memories/${id}`), { status: 200 })
})

tested('a fact whose observation went with another one is consolidated again', async (t, { call, next, told, consolidated, texts }) => {
  const alice = await told('alice works at Acme')
  const bob = await told('bob works at Acme')
  next(creates('Two people work at Acme.'))
  await consolidated()
  t.match((await call('GET', 'b/stats')).body, { pending_consolidation: 0 })
  t.equal((await call('DELETE', `b/memories/${alice}`)).status, 200)
  t.match((await call('GET', 'b/stats')).body, { pending_consolidation: 1 })
  next(({ facts }) => {
    t.same(facts, [bob])
    return { creates: [{ text: 'Bob works.', source_fact_ids: facts }] }
  })
  await consolidated()
  t.same(await texts(), ['Bob works.', 'bob works at Acme'])
})
