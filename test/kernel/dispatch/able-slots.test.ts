import t from 'tap'
import type { SlotAbility, SurfaceName } from '../../../kernel/contract/index.js'
import { slotAbilities, slotRoleOf } from '../../../kernel/contract/index.js'
import { BodyView } from '../../../kernel/dispatch/body/body-view.js'
import { ableSlot, choiceOf } from '../../../kernel/dispatch/route/able-slots.js'
import { needsOf, type RequestNeeds } from '../../../kernel/dispatch/route/request-needs.js'
import type { SlotRoute } from '../../../kernel/dispatch/route/route-snapshot.js'

function needs (surface: SurfaceName, body: unknown, space?: number): RequestNeeds | null {
  const view = BodyView.of(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body, null, space)))
  if (typeof view === 'string') throw new Error(view)
  return needsOf(view, surface)
}

const tool = { type: 'function', function: { name: 'image_url', parameters: { type: 'object', properties: { image_url: { type: 'string' } } } } }
const user = (content: unknown): object => ({ role: 'user', content })
const schema = { type: 'json_schema', json_schema: { name: 'x', schema: {} }, schema: {} }

t.test('what a request needs is read from its body, in the words of its API', t => {
  const cases: ReadonlyArray<readonly [what: string, surface: SurfaceName, body: unknown, expected: readonly SlotAbility[]]> = [
    ['text alone', 'chat', { messages: [user('hi')] }, []],
    ['tools', 'chat', { messages: [user('hi')], tools: [tool] }, ['tools']],
    ['tools that no call may be made of', 'chat', { messages: [], tools: [tool], tool_choice: 'none' }, []],
    ['an empty list of tools', 'chat', { messages: [], tools: [] }, []],
    ['tools that are null', 'chat', { messages: [], tools: null }, []],
    ['an image', 'chat', { messages: [user([{ type: 'image_url', image_url: { url: 'data:' } }])] }, ['vision']],
    ['an image whose type stands last', 'chat', { messages: [user([{ image_url: { url: 'data:' }, type: 'image_url' }])] }, ['vision']],
    ['an image without a type', 'chat', { messages: [user([{ image_url: 'data:' }])] }, ['vision']],
    ['a text with an empty place for an image and for sound', 'chat', { messages: [user([{ type: 'text', text: 'hi', image_url: null, input_audio: null }])] }, []],
    ['sound', 'chat', { messages: [user([{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }])] }, ['audio']],
    ['words about images', 'chat', { messages: [user('a part of "type": "image_url" has an "image_url": …')] }, []],
    ['a text of just that word', 'chat', { messages: [user('image_url'), { content: 'image_url', role: 'user' }] }, []],
    ['an image outside of the conversation', 'chat', { messages: [], metadata: { type: 'image_url' }, image_url: 'x' }, []],
    ['a schema', 'chat', { messages: [], response_format: schema }, ['json_schema']],
    ['any JSON', 'chat', { messages: [], response_format: { type: 'json_object' } }, []],
    ['a format that is no object', 'chat', { messages: [], response_format: 'json_schema' }, []],
    ['everything', 'chat', { tools: [tool], response_format: schema, messages: [user([{ type: 'image_url' }, { type: 'input_audio' }])] }, [...slotAbilities]],
    ['an image of Responses', 'responses', { input: [user([{ type: 'input_image', image_url: 'data:' }])] }, ['vision']],
    ['a schema of Responses', 'responses', { input: 'hi', text: { format: schema } }, ['json_schema']],
    ['an image of Messages', 'messages', { messages: [user([{ type: 'image', source: {} }])] }, ['vision']],
    ['an image that a tool gave', 'messages', { messages: [user([{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'image', source: {} }] }])] }, ['vision']],
    ['a tool that was called with the word', 'messages', { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'run', input: { image: 'postgres', block: { type: 'image' } } }] }] }, []],
    ['a schema of Messages', 'messages', { messages: [], output_config: { format: schema } }, ['json_schema']],
    ['the last of two conversations counts', 'chat', '{"messages":[{"content":[{"type":"image_url"}]}],"messages":[]}', []]
  ]
  for (const [what, surface, body, expected] of cases) {
    for (const space of [undefined, 2]) {
      const found = needs(surface, body, space)!
      t.strictSame(slotAbilities.filter(ability => found.has(ability)), expected, what)
    }
  }
  t.equal(needs('embeddings', { input: 'x' }), null, 'vectors need nothing special')
  t.equal(needs('completions', { prompt: 'x' }), null)
  t.end()
})

t.test('a conversation is measured by its bytes, and not at all with images in it', t => {
  t.equal(needs('chat', { messages: [user('x'.repeat(40_000))] })!.tokens, 10_011)
  t.equal(needs('chat', { messages: [user([{ type: 'image_url', image_url: 'x'.repeat(40_000) }])] })!.tokens, 0)
  t.end()
})

t.test('the field that needs an ability is named in the words of its API', t => {
  const fields = (surface: SurfaceName): string[] => slotAbilities.map(ability => needs(surface, '{}')!.field(ability))
  t.strictSame(fields('chat'), ['tools', 'messages', 'messages', 'response_format'])
  t.strictSame(fields('responses'), ['tools', 'input', 'input', 'text'])
  t.strictSame(fields('messages'), ['tools', 'messages', 'messages', 'output_config'])
  t.end()
})

function slot (name: string, route: Partial<SlotRoute> = {}): SlotRoute {
  return {
    name, type: 'llm', enabled: true, state: 'offline', modelId: 'm', configuredModel: 'm', needsModel: true, isNpu: false,
    anchor: null, role: slotRoleOf({ name, role: null }), isDefault: false, surfaces: new Set(['chat'] as const), abilities: {}, contextSize: 8192,
    catalogue: [], ...route
  }
}

/** Where a request goes, or what it lacks. */
function goes (body: object, among: readonly SlotRoute[], standIns: readonly SlotRoute[] = []): string {
  const choice = choiceOf(among, standIns)
  if (choice === null) return `${among[0]!.name} unasked`
  const able = ableSlot(choice, needs('chat', { messages: [], ...body })!)
  return 'ability' in able ? `${able.slots.join(' and ')} lack ${able.ability}` : able.name
}

t.test('a request goes to the first slot that does not lack what it needs', t => {
  const image = { messages: [user([{ type: 'image_url' }])] }
  const blind = slot('blind', { abilities: { vision: false } })
  const unknown = slot('unknown')
  const sees = slot('sees', { abilities: { vision: true } })
  t.equal(goes(image, [unknown]), 'unknown unasked', 'a slot of which nothing is known is not asked about')
  t.equal(goes(image, [unknown, sees]), 'unknown unasked')
  t.equal(goes({}, [blind, sees]), 'blind', 'what needs nothing goes to the first')
  t.equal(goes(image, [blind, sees]), 'sees')
  t.equal(goes(image, [blind, unknown, sees]), 'unknown', 'the engine judges what is unknown')
  t.equal(goes(image, [blind]), 'blind lack vision')
  t.equal(goes(image, [blind, slot('npu', { abilities: { vision: false, json_schema: false } })]), 'blind and npu lack vision')
  t.equal(goes({ ...image, response_format: schema }, [blind, slot('npu', { abilities: { json_schema: false } })]), 'blind and npu lack vision',
    'each lacks something else: that of the first is told')
  t.end()
})

t.test('a stand-in takes what every slot of a role lacks, and only what it certainly can', t => {
  const image = { messages: [user([{ type: 'image_url' }])] }
  const blind = slot('blind', { abilities: { vision: false } })
  const sees = slot('sees', { abilities: { vision: true } })
  t.equal(goes(image, [blind], [slot('unknown'), sees]), 'sees')
  t.equal(goes(image, [blind], [sees, slot('up', { state: 'ready', abilities: { vision: true } })]), 'up', 'one that is up comes first')
  t.equal(goes({ ...image, tools: [tool] }, [blind], [sees]), 'blind lack vision', 'it would have to know tools, too')
  t.equal(goes({}, [blind], [sees]), 'blind')
  t.end()
})

t.test('a conversation goes to a slot whose context holds it, else to the longest', t => {
  const words = (bytes: number): object => ({ messages: [user('x'.repeat(bytes))] })
  const [short, long, none] = [slot('short'), slot('long', { contextSize: 32_768 }), slot('none', { contextSize: null })]
  t.equal(goes(words(80_000), [short]), 'short unasked')
  t.equal(goes(words(80_000), [short, slot('twin')]), 'short unasked', 'twins do not differ')
  t.equal(goes(words(100), [short, long]), 'short')
  t.equal(goes(words(80_000), [short, long]), 'long')
  t.equal(goes(words(800_000), [short, long]), 'long')
  t.equal(goes(words(800_000), [short, none]), 'none')
  t.equal(goes({ ...words(80_000), tools: [tool] }, [short, slot('long', { contextSize: 32_768, abilities: { tools: false } })]), 'short',
    'an ability counts more')
  t.end()
})
