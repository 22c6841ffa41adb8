import t from 'tap'
import { chatMessages } from '../../../plugins/dialects/gemini/contents.js'
import { jsonSchemaOf } from '../../../plugins/dialects/gemini/schema.js'
import { toolsOf } from '../../../plugins/dialects/gemini/tools.js'
import { ChatReader, OpenCalls } from '../../../plugins/v1/over-chat/ref.js'

/** So many that one look at all for each would take minutes. */
const MANY = 150_000
const numbers = Array.from({ length: MANY }, (_, i) => i)

t.test('results find their calls by id, by name and by order', t => {
  const open = new OpenCalls()
  t.strictSame(['a', 'b', 'a', 'c', '__proto__'].map(name => open.made('', name)), ['call_0', 'call_1', 'call_2', 'call_3', 'call_4'])
  t.equal(open.made('mine', 'a'), 'mine')
  t.equal(open.answered('', 'a'), 'call_0', 'the first of its name')
  t.equal(open.answered('call_2', 'whatever'), 'call_2', 'its own id')
  t.equal(open.answered('', 'a'), 'mine', 'what is answered is passed over')
  t.equal(open.answered('', 'a'), 'call_1', 'without one of its name the first that is open')
  t.equal(open.answered('', '__proto__'), 'call_4')
  t.equal(open.answered('', ''), 'call_3')
  t.equal(open.answered('', 'c'), 'call_5', 'a result of no call has an id all the same')
  t.equal(open.answered('strange', ''), 'strange')
  t.end()
})

t.test('a conversation of very many calls, answered in the other order, costs no more for each', t => {
  const role = (name: string, parts: readonly object[]): object => ({ role: name, parts })
  const withIds = chatMessages({
    contents: [
      role('model', numbers.map(i => ({ functionCall: { id: `i${i}`, name: 'f' } }))),
      role('user', numbers.map(i => ({ functionResponse: { id: `i${MANY - 1 - i}`, response: {} } })))
    ]
  }, true, [])
  t.match(withIds.at(-1), { role: 'tool', tool_call_id: 'i0' })
  const named = chatMessages({
    contents: [
      role('model', numbers.map(i => ({ functionCall: { name: `f${i}` } }))),
      role('user', numbers.map(i => ({ functionResponse: { name: `f${MANY - 1 - i}`, response: {} } })))
    ]
  }, true, [])
  t.match(named[1], { tool_call_id: `call_${MANY - 1}` })
  t.match(named.at(-1), { tool_call_id: 'call_0' })
  t.end()
})

t.test('very many tools that may be called, and tools that are left out, cost no more for each', t => {
  const warnings: string[] = []
  const { tools } = toolsOf({
    tools: [{ functionDeclarations: numbers.map(i => ({ name: `f${i}` })) }, ...numbers.map(() => ({ googleSearch: {} }))],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: numbers.map(i => `f${MANY - i}`) } }
  }, warnings) as { tools: unknown[] }
  t.equal(tools.length, MANY - 1)
  t.equal(warnings.length, 50)
  t.end()
})

t.test('types in capitals are JSON schema\'s wherever a schema stands', t => {
  const text = { type: 'STRING' }
  t.strictSame(jsonSchemaOf({ type: 'OBJECT', additionalProperties: text, properties: { pair: { type: 'ARRAY', prefix_items: [text, { type: 'INTEGER' }] } } }, 's'), {
    type: 'object',
    additionalProperties: { type: 'string' },
    properties: { pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }] } }
  })
  t.strictSame(jsonSchemaOf({ additional_properties: false }, 's'), { additionalProperties: false })
  t.end()
})

t.test('what only Google\'s schemas say is said in JSON schema', t => {
  const [a, b] = [{ type: 'STRING' }, { type: 'INTEGER' }]
  const ordered = jsonSchemaOf({ type: 'OBJECT', properties: { a, b, c: a }, property_ordering: ['c', 'x', 'b'] }, 's')
  t.strictSame(Object.keys(ordered.properties as object), ['c', 'b', 'a'], 'engines write members in the order of the schema')
  t.strictSame(jsonSchemaOf({ type: 'STRING', nullable: true, enum: ['x'], format: 'enum' }, 's'), { type: ['string', 'null'], enum: ['x', null] })
  t.strictSame(jsonSchemaOf({ nullable: true, anyOf: [a, b] }, 's'), { anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] })
  t.strictSame(jsonSchemaOf({ type: 'TYPE_UNSPECIFIED', example: 'x', minLength: '2' }, 's'), { examples: ['x'], minLength: 2 })
  t.end()
})

t.test('an engine that calls without an end is given up', async t => {
  const reader = new ChatReader({ begin () {}, text () {}, reasoning () {}, call () {}, logprobs () {}, end () {} })
  t.throws(() => {
    for (let index = 0; index < 5000; index++) {
      reader.event(JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index, id: `c${index}`, function: { name: 'f', arguments: '' } }] } }] }))
    }
  }, { code: 'dispatch.upstream_failed', message: /more than 4096 calls/ })
})
