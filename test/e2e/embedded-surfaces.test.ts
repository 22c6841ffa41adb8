import t from 'tap'
import { embeddedGateway } from './engine-gateways.js'
import { refusesPictures, speaksEveryDialect } from './dialect-cells.js'
import {
  anthropic, callsForcedTool, callsOnce, callsTools, chats, completes, keepsToShape, openai, recalls, refusesBothModes, reranks,
  usesTools
} from './text-surfaces.js'

t.setTimeout(300_000)

t.test('the text surfaces of the embedded engine, with no container engine at all', async t => {
  const gateway = await embeddedGateway(t)
  await t.test('a client chats, at once and as a stream that it may leave', t => chats(t, gateway.url))
  await t.test('an answer keeps to the schema that its request gives', t => keepsToShape(t, gateway.url))
  await t.test('a client that forces a tool gets its call', t => callsForcedTool(t, gateway.url))
  await t.test('a client that wants one call at a time gets one', t => callsOnce(t, gateway.url, 'agent'))
  await t.test('a model that calls tools calls that of a client', t => callsTools(t, gateway.url))
  await t.test('a model that calls tools is led through a loop of them', t => usesTools(t, gateway.url))
  await t.test('every dialect gets words and calls, whole and streamed', t => speaksEveryDialect(t, gateway.url))
  await t.test('a picture is refused in every dialect', t => refusesPictures(t, gateway.url))
  await t.test('the list of models tells what its slots can do', async t => {
    interface Row { readonly id: string, readonly capabilities?: readonly string[] }
    const { data } = await openai(gateway.url).models.list() as unknown as { data: readonly Row[] }
    const able = new Map(data.map(({ id, capabilities }) => [id, capabilities]))
    t.strictSame([able.get('caller'), able.get('agent')], [['chat', 'tools', 'json_schema'], ['chat', 'json_schema']])
  })
  await t.test('a client completes a text', t => completes(t, gateway.url))
  await t.test('a client finds by meaning with embeddings', t => recalls(t, gateway.url))
  await t.test('a client has documents put in order', t => reranks(t, gateway.url))
  await t.test('embeddings and reranking in one engine are refused', t => refusesBothModes(t, gateway.url))
  await t.test('what it does not speak is said over chat', async t => {
    const asked = { model: 'agent', max_tokens: 5, messages: [{ role: 'user' as const, content: 'hi' }] }
    const expected = { type: 'message', role: 'assistant', stop_reason: 'max_tokens', usage: { output_tokens: 5 } }
    t.match(await anthropic(gateway.url).messages.create(asked), expected)
    t.match(await anthropic(gateway.url).messages.stream(asked).finalMessage(), expected)
    const { model, messages } = asked
    const { input_tokens: counted } = await anthropic(gateway.url).messages.countTokens({ model, messages })
    const { usage } = await anthropic(gateway.url).messages.create(asked)
    const told = usage.input_tokens + (usage.cache_read_input_tokens ?? 0)
    t.ok(Math.abs(counted - told) <= 1, `${counted} tokens counted by its tokenizer, ${told} used`)
    const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, usage: { output_tokens: 5 } }
    const question = { model: 'agent', input: 'hi', max_output_tokens: 5 }
    t.match(await openai(gateway.url).responses.create(question), cut)
    t.match(await openai(gateway.url).responses.stream(question).finalResponse(), cut)
  })
  t.equal(await gateway.kill('SIGTERM'), 0)
})
