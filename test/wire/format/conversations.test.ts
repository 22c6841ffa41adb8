import OpenAI from 'openai'
import t, { type Test } from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { chatOnlyGateway, type ChatOnly } from './chat-only.js'

const clientOf = ({ baseUrl }: { readonly baseUrl: string }, headers: Record<string, string> = {}): OpenAI =>
  new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'anything', maxRetries: 0, defaultHeaders: headers })

const failure = (work: Promise<unknown>): Promise<unknown> => work.then(() => null, (error: unknown) => error)

const talk = ({ messages }: { readonly messages?: unknown }): unknown =>
  (messages as Array<{ role: string, content: string }>).map(({ role, content }) => `${role}: ${content}`)

const textsOf = async (client: OpenAI, id: string): Promise<string[]> => {
  const texts: string[] = []
  for await (const item of client.conversations.items.list(id, { order: 'asc', limit: 2 })) {
    texts.push((item as { content: Array<{ text: string }> }).content[0]!.text)
  }
  return texts
}

async function gatewayFor (t: Test, svc = ''): Promise<ChatOnly & { client: OpenAI }> {
  const made = await chatOnlyGateway(t, [responseRoutes], svc)
  return { ...made, client: clientOf(made.gateway) }
}

t.test('a client keeps what is said in a conversation, and goes on with it', async t => {
  const { gateway, says, asked, client } = await gatewayFor(t)
  const model = 'agent'
  const saying = (content: string): void => says({ deltas: [{ content }] })

  t.test('what is said in a conversation stands before the next response, and each response becomes a part of it', async t => {
    const { id } = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'My name is Ada.' }], metadata: { topic: 'names' } })
    t.match(id, /^conv_[0-9a-f]{32}$/)
    saying('Hello Ada.')
    const first = await client.responses.create({ model, input: 'Say hello.', conversation: id })
    t.match(first, { conversation: { id }, previous_response_id: null, store: true })
    saying('Ada.')
    const second = await client.responses.stream({ model, input: 'Who am I?', conversation: { id } }).finalResponse()
    t.match(second, { conversation: { id } })
    t.strictSame(talk(asked()), ['user: My name is Ada.', 'user: Say hello.', 'assistant: Hello Ada.', 'user: Who am I?'])
    t.strictSame(await textsOf(client, id), ['My name is Ada.', 'Say hello.', 'Hello Ada.', 'Who am I?', 'Ada.'])
    t.match(await client.responses.retrieve(first.id), { conversation: { id }, output_text: 'Hello Ada.' })
    t.match(await failure(client.responses.create({ model, input: 'x', previous_response_id: first.id })), { status: 400, message: new RegExp(id) })
    saying('Unkept.')
    const unkept = await client.responses.create({ model, input: 'And now?', conversation: id, store: false })
    t.match(await failure(client.responses.retrieve(unkept.id)), { status: 404 })
    t.strictSame((await textsOf(client, id)).slice(-2), ['And now?', 'Unkept.'], 'a conversation that is named takes part in what is not kept by itself')
  })

  t.test('a response in the background becomes a part of its conversation when it is complete', async t => {
    const { id } = await client.conversations.create()
    saying('Done.')
    const queued = await client.responses.create({ model, input: 'Do it.', conversation: id, background: true })
    t.match(queued, { status: 'queued', conversation: { id } })
    let made = queued
    while (made.status === 'queued' || made.status === 'in_progress') made = await client.responses.retrieve(queued.id)
    t.match(made, { status: 'completed', conversation: { id } })
    t.strictSame(await textsOf(client, id), ['Do it.', 'Done.'])
  })

  t.test('a conversation and its items can be read, changed and deleted', async t => {
    const { id } = await client.conversations.create({ metadata: { a: 'b' } })
    t.match(await client.conversations.retrieve(id), { id, object: 'conversation', metadata: { a: 'b' } })
    t.match(await client.conversations.update(id, { metadata: { c: 'd' } }), { id, metadata: { c: 'd' } })
    t.strictSame((await client.conversations.retrieve(id)).metadata, { c: 'd' })
    const user = (content: string): { type: 'message', role: 'user', content: string } => ({ type: 'message', role: 'user', content })
    const added = await client.conversations.items.create(id, { items: [user('one'), user('two'), { ...user('three'), id: 'mine' } as never] })
    t.equal(added.data.length, 3)
    t.not(added.data[2]!.id, 'mine', 'ids are those of the gateway')
    const two = added.data[1]!.id!
    t.match(await client.conversations.items.retrieve(two, { conversation_id: id }), { id: two, content: [{ type: 'input_text', text: 'two' }] })
    t.match(await client.conversations.items.delete(two, { conversation_id: id }), { id, object: 'conversation' })
    t.strictSame(await textsOf(client, id), ['one', 'three'])
    t.match(await failure(client.conversations.items.retrieve(two, { conversation_id: id })), { status: 404, code: 'responses.no_conversation' })
    t.match((await client.conversations.items.list(id, { limit: 1 })).data, [{ content: [{ text: 'three' }] }], 'the newest first where nothing is said')
    t.match(await client.conversations.delete(id), { id, object: 'conversation.deleted', deleted: true })
    for (const call of [
      () => client.conversations.retrieve(id), () => client.conversations.delete(id),
      () => client.conversations.update(id, { metadata: {} }),
      () => client.conversations.items.create(id, { items: [user('x')] })
    ]) t.match(await failure(call()), { status: 404, code: 'responses.no_conversation' })
  })

  t.test('an answer that broke off, or comes when its conversation was deleted, adds nothing', async t => {
    const { id } = await client.conversations.create()
    says({ deltas: [{ content: 'Half' }], finish: null } as never)
    await failure(client.responses.stream({ model, input: 'Go on.', conversation: id }).finalResponse())
    t.strictSame(await textsOf(client, id), [])
  })

  t.test('what cannot be done with conversations is refused with the field that asks for it', async t => {
    const { id } = await client.conversations.create()
    saying('x')
    const made = await client.responses.create({ model, input: 'x' })
    const cases: Array<[() => Promise<unknown>, object]> = [
      [() => client.responses.create({ model, input: 'x', conversation: id, previous_response_id: made.id }), { status: 400, param: 'conversation' }],
      [() => client.responses.create({ model, input: 'x', conversation: `conv_${'0'.repeat(32)}` }), { status: 400, param: 'conversation' }],
      [() => client.responses.create({ model, input: 'x', conversation: made.id }), { status: 400, param: 'conversation' }],
      [() => client.responses.create({ model, input: 'x', previous_response_id: id }), { status: 400, param: 'previous_response_id' }],
      [() => client.responses.create({ model, input: 'x', conversation: { id: 7 } as never }), { status: 400, param: 'conversation.id' }],
      [() => clientOf(gateway, { 'x-svc-private': '1' }).responses.create({ model, input: 'x', conversation: id }), { status: 400, param: 'conversation' }],
      [() => client.responses.retrieve(id), { status: 404 }],
      [() => client.responses.delete(id), { status: 404 }],
      [() => client.conversations.retrieve(made.id), { status: 404 }],
      [() => client.conversations.items.create(id, { items: [] }), { status: 400 }],
      [() => client.conversations.create({ items: Array.from({ length: 21 }, () => ({ type: 'message' as const, role: 'user' as const, content: 'x' })) }), { status: 400 }],
      [() => client.conversations.create({ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])) }), { status: 400 }]
    ]
    for (const [call, expected] of cases) t.match(await failure(call()), expected)
  })
})
