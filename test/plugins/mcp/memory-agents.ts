import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Test } from 'tap'

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
type Any = any

/** A client of a tool server as it comes. */
export async function connect (t: Test, url: string, headers: Record<string, string>, server = 'memory'): Promise<Client> {
  const client = new Client({ name: 'Memory Tester', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp/${server}`), { requestInit: { headers } }))
  t.teardown(() => client.close())
  return client
}

export async function call (client: Client, name: string, args: Record<string, unknown> = {}): Promise<Any> {
  const { content } = await client.callTool({ name, arguments: args }) as { content: Array<{ text: string }> }
  return JSON.parse(content[0]!.text) as unknown
}

/** What an agent has in its own dataset, by id. */
export interface OwnThings {
  readonly memory: string
  readonly document: string
  readonly others?: { readonly operation: string, readonly directive: string, readonly model: string | null }
}

/** Ways in which an agent may try to get at what another one keeps for itself. */
export const attempts = (
  { memory, document, others }: OwnThings
): ReadonlyArray<readonly [tool: string, args: Record<string, unknown>]> => [
  ['memory_search', { query: 'Monday', dataset: 'private:alice' }], ['memory_list', { dataset: 'private:alice' }],
  ['memory_recall', { query: 'Monday', dataset: 'private:alice' }], ['memory_recall', { query: 'Monday', dataset: 'private__alice' }],
  ['memory_history', { memory_id: memory }], ['memory_history', { memory_id: memory, dataset: 'private:alice' }],
  ['memory_curate', { memory_id: memory, state: 'invalidated' }], ['bank_stats', { dataset: 'private:alice' }],
  ['memory_reflect', { query: 'doctor', dataset: 'private:alice' }], ['tags_list', { dataset: 'private__alice' }],
  ['memory_delete', { ids: [document], dataset: 'private:alice' }], ['memory_curate', { memory_id: '../../private__alice/memories/x', text: 'x' }],
  ...others === undefined ? [] : [
    ['directive_delete', { id: others.directive }], ['directive_delete', { id: `../../private__alice/directives/${others.directive}` }],
    ['operation_cancel', { operation_id: others.operation }], ['operation_retry', { operation_id: others.operation }]
  ] as const,
  ...others === undefined || others.model === null ? [] : [
    ['mental_model_get', { id: others.model }], ['mental_model_refresh', { id: others.model }], ['mental_model_delete', { id: others.model }]
  ] as const
]

/** Until an answer is what is waited for. */
async function until (client: Client, tool: string, args: Record<string, unknown>, isIt: (answer: Any) => boolean): Promise<Any> {
  for (;;) {
    const answer = await call(client, tool, args)
    if (isIt(answer)) return answer
    await new Promise(resolve => { setTimeout(resolve, 100) })
  }
}

const isOver = ({ status }: { readonly status: string }): boolean => status !== 'pending' && status !== 'processing'

/** Until nothing is done behind the answers any more, in the dataset that the agent writes to. */
async function quiet (client: Client): Promise<void> {
  await until(client, 'operation_list', { limit: 100 }, ({ operations }) => operations === undefined || operations.every(isOver))
}

async function added (client: Client, note: Record<string, unknown>): Promise<Any> {
  const answer = await call(client, 'memory_add', note)
  if (answer.operation_id !== undefined) await until(client, 'operation_get', { operation_id: answer.operation_id }, isOver)
  await quiet(client)
  return answer
}

/** Which of these words an agent comes upon, whatever it asks for them. */
async function finds (client: Client, words: readonly string[]): Promise<readonly string[]> {
  const answers = [
    await call(client, 'memory_search', { query: 'Who meets on Monday?' }), await call(client, 'memory_recall', { query: 'Who meets on Monday?' }),
    await call(client, 'memory_list'), await call(client, 'memory_search', { query: 'meets', dataset: ['shared', 'private:alice'] })
  ]
  const notes: Array<{ readonly text: string }> = answers.flatMap(({ results, items }) => [...results ?? [], ...items ?? []])
  const texts = notes.map(({ text }) => text)
  return words.filter(word => texts.some(text => text.includes(word)))
}

/**
 * The same calls whatever the engine is: what one agent remembers over MCP is another one's to see or not, each tool does what
 * it says, and of deletions several wait for an operator.
 * @param hasModel whether something answers questions
 */
export async function agentsRemember (t: Test, url: string, hasModel: boolean): Promise<void> {
  const alice = await connect(t, url, { 'x-svc-agent': 'alice', 'x-svc-private': '1' })
  const bob = await connect(t, url, { 'x-svc-agent': 'bob', 'x-svc-private': '1' })
  const open = await connect(t, url, { 'x-svc-agent': 'alice' })
  const words = ['team', 'doctor', 'dentist']
  const shared = await added(open, { text: 'The team meets on Monday.', tags: 'team, dates' })
  t.match(shared, { status: 'ok', id: /.+/, timestamp: /Z$/ })
  const own = await added(alice, { text: 'Alice meets her doctor on Monday.', dataset: 'shared' })
  await added(bob, { text: 'Bob meets his dentist on Monday.', tags: ['agent:alice', 'visibility:shared'] })

  await t.test('an agent finds its own and what is shared', async t => {
    t.strictSame(await finds(alice, words), ['team', 'doctor'])
    t.strictSame(await finds(bob, words), ['team', 'dentist'])
    t.strictSame(await finds(open, words), ['team'], 'and out of its private mode what is shared alone')
    const { results } = await call(bob, 'memory_search', { query: 'Who meets his dentist?' })
    const found = results.find(({ text }: { text: string }) => text.includes('dentist'))
    t.match(found, { dataset: 'private:bob', source: 'bob' }, 'it cannot say that another one wrote it')
  })

  const { items } = await call(alice, 'memory_list', { dataset: 'private:alice' })
  const unit = items.find(({ id }: { id: string }) => id === own.id)
  await t.test('each other tool is about what the agent may see', async t => {
    t.match(await call(alice, 'bank_stats'), { bank_id: 'private__alice' })
    t.match(await call(alice, 'bank_stats', { dataset: 'shared' }), { bank_id: 'shared' })
    const tags = (await call(open, 'tags_list')).items.map(({ tag }: { tag: string }) => tag)
    t.match(['agent:alice', 'dates', 'team'].filter(tag => !tags.includes(tag)), { length: 0 })
    t.match(await call(alice, 'memory_history', { memory_id: unit.memory_id }), { items: Array, count: Number })
    t.match(await call(alice, 'memory_curate', { memory_id: unit.memory_id, state: 'invalidated', reason: 'moved' }), { state: 'invalidated' })
    t.strictSame(await finds(alice, ['doctor']), [])
    t.match(await call(alice, 'memory_curate', { memory_id: unit.memory_id, state: 'valid' }), { state: 'valid' })
    await quiet(alice)
    t.strictSame(await finds(alice, ['doctor']), ['doctor'])
    // a dataset is there once something is remembered in it
    await added(open, { text: 'Agents write here.', dataset: 'agents' })
    t.match(await call(open, 'directive_create', { name: 'short', content: 'Answer briefly', dataset: 'agents' }), { id: /.+/, bank_id: 'agents' })
    t.match(await call(bob, 'directive_list', { dataset: 'agents', limit: 5 }), { items: [{ name: 'short' }] })
    t.strictSame((await call(bob, 'directive_list')).items ?? [], [])
    if (hasModel) {
      t.match(await call(open, 'memory_reflect', { query: 'Who meets on Monday?' }), { text: /./ })
      t.notMatch((await call(bob, 'memory_reflect', { query: 'What is on Monday?' })).text, /doctor/)
      t.match(await call(alice, 'bank_consolidate'), { operation_id: /.+/ })
      await quiet(alice)
    } else {
      t.match(await call(open, 'memory_reflect', { query: 'Who meets on Monday?' }), { status: 'error', http_status: 501, error: { code: 'memory.engine_unsupported' } })
    }
  })

  await t.test('what an agent keeps for itself is reached by no name and no id', async t => {
    const { id: directive } = await call(alice, 'directive_create', { name: 'mine', content: 'Say nothing of doctors' })
    let model: string | null = null
    if (hasModel) {
      const made = await call(alice, 'mental_model_create', { name: 'Health', source_query: 'Which doctor is met?' })
      model = made.mental_model_id as string
      await quiet(alice)
      t.match(await call(alice, 'mental_model_get', { id: model }), { id: model, name: 'Health' })
      t.match((await call(alice, 'mental_model_list')).items, [{ id: model }])
      t.match(await call(alice, 'mental_model_refresh', { id: model }), { operation_id: /.+/ })
      await quiet(alice)
    }
    const { operations: [operation] } = await call(alice, 'operation_list')
    const others = operation === undefined ? {} : { others: { operation: operation.id, directive, model } }
    for (const [tool, args] of attempts({ memory: unit.memory_id, document: own.id, ...others })) {
      t.match(await call(bob, tool, args), { status: 'error' }, `${tool} ${JSON.stringify(args)}`)
    }
    if (operation !== undefined) {
      t.match(await call(alice, 'operation_get', { operation_id: operation.id }), { status: 'completed' })
      t.match(await call(bob, 'operation_get', { operation_id: operation.id }), { status: 'not_found' })
      t.match(await call(alice, 'operation_cancel', { operation_id: operation.id }), { status: 'error', http_status: 409 })
    }
    t.strictSame(await call(bob, 'memory_delete', { ids: [own.id] }), { deleted: 0 })
    t.strictSame((await call(alice, 'directive_list')).items.map(({ name }: { name: string }) => name), ['mine'])
    t.match(await call(alice, 'directive_delete', { id: directive }), { status: 'deleted' })
    if (model !== null) t.match(await call(alice, 'mental_model_delete', { id: model }), { status: 'deleted' })
    t.strictSame(await finds(alice, words), ['team', 'doctor'], 'and all of it is still there')
  })

  await t.test('one memory is deleted at once, several wait for an operator', async t => {
    const second = await added(open, { text: 'The team meets on Friday, too.' })
    const before = (await call(open, 'memory_list')).items.length
    const waiting = await call(open, 'memory_delete', { ids: [shared.id, second.id] })
    t.match(waiting, { status: 'pending_approval', approval_id: /.+/ })
    t.equal((await call(open, 'memory_list')).items.length, before, 'nothing is deleted before it is approved')
    t.strictSame(await finds(bob, ['team']), ['team'])
    const denied = await call(open, 'memory_delete', { ids: [second.id, shared.id] })
    await decided(t, url, denied.approval_id, 'deny')
    t.equal((await call(open, 'memory_list')).items.length, before, 'nor when it is denied')
    t.match(await decided(t, url, waiting.approval_id, 'approve'), { state: 'executed', result: { deleted: 2 } })
    t.strictSame(await finds(bob, words), ['dentist'])
    t.strictSame(await call(alice, 'memory_delete', { ids: [own.id, own.id] }), { deleted: 1 }, 'the same id twice is one')
    t.strictSame(await finds(alice, words), [])
    const { records } = await (await fetch(`${url}/api/activity?category=memory`)).json() as { records: Array<{ outcome: string }> }
    t.match(records.filter(({ outcome }) => outcome !== 'pending'), [
      { action: 'memory.items.delete', actor: 'mcp:alice', outcome: 'ok', after: { deleted: 1 } }, { action: 'memory.items.delete', after: { deleted: 2 } }
    ])
  })
}

async function decided (t: Test, url: string, approval: string, decision: 'approve' | 'deny'): Promise<Any> {
  const answer = await fetch(`${url}/api/agent/approvals/${approval}/${decision}`, { method: 'POST' })
  t.equal(answer.status, 200)
  return (await answer.json() as Any).approval
}
