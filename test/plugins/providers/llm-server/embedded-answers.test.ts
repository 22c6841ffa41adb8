import t from 'tap'
import { answerReader, ChatReader, type ReaderOptions } from '../../../../plugins/providers/llm-server/embedded/chat/answer-reader.js'
import type { AnswerReader } from '../../../../plugins/providers/llm-server/embedded/chat/answer-part.js'
import { toolFamilies, type ToolFamily } from '../../../../plugins/providers/llm-server/embedded/chat/tool-family.js'
import { toolTypes } from '../../../../plugins/providers/llm-server/embedded/chat/tool-types.js'
import { nothingSaid, say } from '../../../../plugins/providers/llm-server/embedded/wire.js'
import fc from '../../../property.js'

const tools = [
  { function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' }, sure: { type: 'boolean' }, tags: { type: 'array' } } } } },
  { function: { name: 'clock' } }
]

interface Wish extends Partial<Pick<ReaderOptions, 'thoughts'>> {
  readonly family?: ToolFamily | null
  readonly parallel?: boolean
}

/** What an answer comes to: its text, thoughts and calls as `name(arguments)`. */
interface Sum {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: readonly string[]
}

function readerOf ({ family = null, thoughts = 'none', parallel = true }: Wish): AnswerReader {
  const names = new Set(tools.map(tool => tool.function.name))
  if (family === null) return new ChatReader({ thoughts, tools: null })
  return answerReader({ family, thoughtsAs: 'reasoning', thoughts, tools: { family, names, types: toolTypes(tools), parallel } })
}

function read (pieces: readonly string[], wish: Wish): Sum {
  const [reader, said] = [readerOf(wish), nothingSaid()]
  for (const piece of pieces) say(said, reader.push(piece), [])
  say(said, reader.end(), [])
  return {
    ...said.text === '' ? {} : { text: said.text },
    ...said.reasoning === '' ? {} : { reasoning: said.reasoning },
    ...said.calls.length === 0 ? {} : { calls: said.calls.map(call => `${call.name}(${call.arguments})`) }
  }
}

const inOrder = ({ text, reasoning, calls }: Sum): string => JSON.stringify([text, reasoning, calls])
const { hermes, qwenCoder, mistral, mistralArgs, llama3, generic, glm, deepseek3, deepseek31, kimi, harmony } = toolFamilies
const tag = (name: string, args: string): string => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`
const bern = '{"city": "Bern"}'
const fenced = (name: string, args: string): string => `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${args}\n\`\`\`<｜tool▁call▁end｜>`
const plainCall = (name: string, args: string): string => `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${args}<｜tool▁call▁end｜>`
const deepseekSection = (...calls: readonly string[]): string => `<｜tool▁calls▁begin｜>${calls.join('\n')}<｜tool▁calls▁end｜>`
const kimiCall = (id: string, args: string): string => `<|tool_call_begin|>${id}<|tool_call_argument_begin|>${args}<|tool_call_end|>`
const kimiSection = (...calls: readonly string[]): string => `<|tool_calls_section_begin|>${calls.join('')}<|tool_calls_section_end|>`
const channel = (head: string, text: string): string => `<|channel|>${head}<|message|>${text}`

/** Answers as the models of each family write them. */
const recorded: ReadonlyArray<readonly [what: string, text: string, wish: Wish, sum: Sum]> = [
  ['text alone', 'Hello there.\n', { family: hermes }, { text: 'Hello there.\n' }],
  ['text where no tools are given', tag('clock', '{}'), {}, { text: tag('clock', '{}') }],
  ['a call', tag('weather', bern), { family: hermes }, { calls: [`weather(${bern})`] }],
  ['a call behind text', `Let me see.\n\n${tag('weather', bern)}`, { family: hermes }, { text: 'Let me see.', calls: [`weather(${bern})`] }],
  ['two calls', `${tag('weather', bern)}\n${tag('clock', '{}')}\n`, { family: hermes }, { calls: [`weather(${bern})`, 'clock({})'] }],
  ['two calls where one is allowed', `${tag('weather', bern)}\n${tag('clock', '{}')}\n`, { family: hermes, parallel: false }, { calls: [`weather(${bern})`] }],
  ['text behind a call', `${tag('clock', '{}')}\nDone.`, { family: hermes }, { text: '\nDone.', calls: ['clock({})'] }],
  ['no closing tag', '<tool_call>{"name": "clock", "arguments": {}}', { family: hermes }, { calls: ['clock({})'] }],
  ['braces and quotes inside of strings', tag('weather', '{"city": "a } \\" ] \\\\"}'), { family: hermes }, { calls: ['weather({"city": "a } \\" ] \\\\"})'] }],
  ['arguments before the name', `<tool_call>{"arguments": ${bern}, "name": "weather"}</tool_call>`, { family: hermes }, { calls: [`weather(${bern})`] }],
  ['arguments as a string', '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Bern\\"}"}</tool_call>', { family: hermes }, { calls: [`weather(${bern})`] }],
  ['no arguments', '<tool_call>{"name": "clock"}</tool_call>', { family: hermes }, { calls: ['clock({})'] }],
  ['arguments twice', '<tool_call>{"name": "clock", "arguments": {"a": 1}, "parameters": {"b": 2}, "arguments": {}}</tool_call>', { family: hermes }, { calls: ['clock({"a": 1})'] }],
  ['arguments twice before the name', '<tool_call>{"arguments": {}, "arguments": {"a": 1}, "name": "clock"}</tool_call>', { family: hermes }, { calls: ['clock({})'] }],
  ['null for arguments', '<tool_call>{"name": "clock", "arguments": null}</tool_call>', { family: hermes }, { calls: ['clock({})'] }],
  ['other keys', '<tool_call>{"id": {"a": [1, "}"]}, "name": "clock", "arguments": {}, "more": 1.5}</tool_call>', { family: hermes }, { calls: ['clock({})'] }],
  ['a tag that opens no call', 'Write <tool_call> and then more', { family: hermes }, { text: 'Write <tool_call> and then more' }],
  ['an object that is no call', '<tool_call>{"city": "Bern"} so', { family: hermes }, { text: '<tool_call>{"city": "Bern"} so' }],
  ['a call that is cut off', '<tool_call>\n{"name": "weather", "arguments": {"city": "Be', { family: hermes }, { calls: ['weather({"city": "Be)'] }],
  ['a name that is cut off', '<tool_call>\n{"name": "weat', { family: hermes }, { text: '<tool_call>\n{"name": "weat' }],
  ['a mark that is cut off', 'a < b and <tool_', { family: hermes }, { text: 'a < b and <tool_' }],
  ['signs that are a mark\'s beginning', '<<tool_call <tool', { family: hermes }, { text: '<<tool_call <tool' }],
  ['letters of several bytes', tag('weather', '{"city": "Zürich 東京 🌧"}'), { family: hermes }, { calls: ['weather({"city": "Zürich 東京 🌧"})'] }],
  ['thoughts', '<think>\nHm.\n\nYes.\n</think>\n\nHello', { family: hermes, thoughts: 'maybe' }, { reasoning: 'Hm.\n\nYes.', text: 'Hello' }],
  ['thoughts that the prompt has begun', 'Hm.\n</think>\n\nHello', { thoughts: 'open' }, { reasoning: 'Hm.', text: 'Hello' }],
  ['thoughts without an end', '<think>Hm. <', { thoughts: 'maybe' }, { reasoning: 'Hm. <' }],
  ['no thoughts', '<thin air>', { thoughts: 'maybe' }, { text: '<thin air>' }],
  ['a call that is only thought of', `<think>${tag('clock', '{}')}</think>${tag('weather', bern)}`, { family: hermes, thoughts: 'maybe' },
    { reasoning: tag('clock', '{}'), calls: [`weather(${bern})`] }],
  ['each argument in a tag', '<tool_call>\n<function=weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=sure>\nTrue\n</parameter>\n' +
  '<parameter=tags>\n["a", {"b": "</x>"}]\n</parameter>\n</function>\n</tool_call>', { family: qwenCoder }, { calls: ['weather({"city": "Bern", "days": 3, "sure": true, "tags": ["a", {"b": "</x>"}]})'] }],
  ['text with line breaks, quotes and tags in a tag', 'I write.\n<tool_call>\n<function=weather>\n<parameter=city>\n<p>\n "a"\n</p>\n\n</parameter>\n</function>\n</tool_call>\n', { family: qwenCoder },
    { text: 'I write.', calls: ['weather({"city": "<p>\\n \\"a\\"\\n</p>\\n"})'] }],
  ['tags without the one around them', '<function=clock>\n</function>\n</tool_call>', { family: qwenCoder }, { calls: ['clock({})'] }],
  ['much white space in front of JSON in a tag', `<function=weather><parameter=tags>${' '.repeat(256)}[1]</parameter></function>`, { family: qwenCoder }, { calls: [`weather({"tags": ${' '.repeat(256)}[1]})`] }],
  ['more white space than is waited for', `<function=weather><parameter=tags>${' '.repeat(257)}[1]</parameter></function>`, { family: qwenCoder }, { calls: [`weather({"tags": "${' '.repeat(257)}[1]"})`] }],
  ['a closing tag that was forgotten', '<function=weather><parameter=city>\nBern\n<parameter=days>\n3\n</function>', { family: qwenCoder }, { calls: ['weather({"city": "Bern", "days": 3})'] }],
  ['a number that is none', '<function=weather><parameter=days>many</parameter></function>', { family: qwenCoder }, { calls: ['weather({"days": "many"})'] }],
  ['a tagged call that is cut off', '<tool_call><function=weather><parameter=city>\nBe\n</para', { family: qwenCoder }, { calls: ['weather({"city": "Be)'] }],
  ['two tagged calls', '<tool_call><function=clock></function></tool_call>\n<tool_call><function=clock></function></tool_call>', { family: qwenCoder }, { calls: ['clock({})', 'clock({})'] }],
  ['each argument in a tag behind its key', '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n' +
  '<arg_key>tags</arg_key>\n<arg_value>["a", {"b": "</x>"}]</arg_value>\n</tool_call>', { family: glm }, { calls: ['weather({"city": "Bern", "days": 3, "tags": ["a", {"b": "</x>"}]})'] }],
  ['everything on one line', '<tool_call>weather<arg_key>city</arg_key><arg_value>a "b"\n</arg_value></tool_call><tool_call>clock</tool_call>', { family: glm },
    { calls: ['weather({"city": "a \\"b\\"\\n"})', 'clock({})'] }],
  ['thoughts, text and a call', '\n<think>Hm.</think>\nI look.\n<tool_call>clock\n</tool_call>', { family: glm, thoughts: 'maybe' }, { reasoning: 'Hm.', text: 'I look.', calls: ['clock({})'] }],
  ['a value that is missing', '<tool_call>weather\n<arg_key>city</arg_key>\n</tool_call>', { family: glm }, { text: '</tool_call>', calls: ['weather({"city": null})'] }],
  ['a tag that opens no call', 'Write <tool_call> as you like, or <tool_call>', { family: glm }, { text: 'Write <tool_call> as you like, or <tool_call>' }],
  ['a value that is cut off', '<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Be</arg_', { family: glm }, { calls: ['weather({"city": "Be)'] }],
  ['calls in fences', `I look.\n\n${deepseekSection(fenced('weather', bern), fenced('clock', '{}'))}`, { family: deepseek3 }, { text: 'I look.', calls: [`weather(${bern})`, 'clock({})'] }],
  ['a fence that is missing, and a line break in front of the name', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>\nclock\n{"a": "`}"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', { family: deepseek3 },
    { calls: ['clock({"a": "`}"})'] }],
  ['calls without fences', deepseekSection(plainCall('weather', bern), plainCall('clock', '{}')), { family: deepseek31 }, { calls: [`weather(${bern})`, 'clock({})'] }],
  ['a section whose beginning was forgotten', `${plainCall('clock', '{}')} so`, { family: deepseek31 }, { text: 'so', calls: ['clock({})'] }],
  ['thoughts that the prompt has begun, and a call', `Hm.\n</think>${deepseekSection(plainCall('clock', '{}'))}`, { family: deepseek31, thoughts: 'open' }, { reasoning: 'Hm.', calls: ['clock({})'] }],
  ['a second call where one is allowed', deepseekSection(plainCall('clock', '{}'), plainCall('clock', '{}')), { family: deepseek31, parallel: false }, { calls: ['clock({})'] }],
  ['no arguments', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜><｜tool▁call▁end｜><｜tool▁calls▁end｜>', { family: deepseek31 }, { calls: ['clock({})'] }],
  ['arguments that are cut off', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Be', { family: deepseek31 }, { calls: ['weather({"city": "Be)'] }],
  ['a head that is cut off', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>wea', { family: deepseek31 }, { text: '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>wea' }],
  ['a section of something else', '<｜tool▁calls▁begin｜>none, <｜tool▁call', { family: deepseek31 }, { text: '<｜tool▁calls▁begin｜>none, <｜tool▁call' }],
  ['calls with numbers', `Sure.${kimiSection(kimiCall('functions.weather:0', bern), kimiCall('functions.clock:1', '{}'))}`, { family: kimi }, { text: 'Sure.', calls: [`weather(${bern})`, 'clock({})'] }],
  ['line breaks between the marks', '<|tool_calls_section_begin|>\n<|tool_call_begin|>\nfunctions.weather:0<|tool_call_argument_begin|>\n{"city": "Bern"}\n<|tool_call_end|>\n<|tool_calls_section_end|>\nDone.', { family: kimi },
    { text: '\nDone.', calls: [`weather(${bern})`] }],
  ['a name with a point and without a number', kimiSection(kimiCall('functions.board.list', '{}')), { family: kimi }, { calls: ['board.list({})'] }],
  ['thoughts, words, a call', `${channel('analysis', 'Hm.')}<|end|><|start|>assistant${channel('commentary', 'I look.')}<|end|><|start|>assistant${channel('commentary to=functions.weather <|constrain|>json', bern)}<|call|>`,
    { family: harmony }, { reasoning: 'Hm.', text: 'I look.', calls: [`weather(${bern})`] }],
  ['an answer', `${channel('analysis', 'Hm.')}<|end|><|start|>assistant${channel('final', 'a < b\n')}<|return|>`, { family: harmony }, { reasoning: 'Hm.', text: 'a < b\n' }],
  ['a tool in front of its channel', ` to=functions.clock${channel('commentary json', '{}')}`, { family: harmony }, { calls: ['clock({})'] }],
  ['a call without arguments', `${channel('commentary to=functions.clock', '')}<|call|>`, { family: harmony }, { calls: ['clock({})'] }],
  ['calls where one is allowed', `${channel('commentary to=functions.clock', '{}')}<|call|><|start|>assistant${channel('commentary to=functions.clock', '{}')}`, { family: harmony, parallel: false }, { calls: ['clock({})'] }],
  ['two messages to read', `${channel('commentary', 'One.')}<|end|><|start|>assistant${channel('final', 'Two.')}`, { family: harmony }, { text: 'One.\n\nTwo.' }],
  ['no channels', '{"mood": "good"}', { family: harmony }, { text: '{"mood": "good"}' }],
  ['a head that is cut off', `${channel('analysis', 'Hm.')}<|end|><|start|>assis`, { family: harmony }, { reasoning: 'Hm.' }],
  ['a head without an end', `<|channel|>${'x'.repeat(600)}`, { family: harmony }, { text: `<|channel|>${'x'.repeat(600)}` }],
  ['white space without end behind a mark', `<tool_call>${' '.repeat(2000)}{"name": "clock"}</tool_call>`, { family: hermes }, { text: `<tool_call>${' '.repeat(2000)}{"name": "clock"}</tool_call>` }],
  ['white space behind a mark', `<tool_call>${'\n'.repeat(1024)}{"name": "clock"}</tool_call>`, { family: hermes }, { calls: ['clock({})'] }],
  ['a list behind a mark', `[TOOL_CALLS][{"name": "weather", "arguments": ${bern}, "id": "VvvODy9mT"}, {"name": "clock", "arguments": {}}]`, { family: mistral }, { calls: [`weather(${bern})`, 'clock({})'] }],
  ['a list where one is allowed', '[TOOL_CALLS] [{"name": "clock", "arguments": {}}, {"name": "clock", "arguments": {}}]', { family: mistral, parallel: false }, { calls: ['clock({})'] }],
  ['a mark for each call', `Well.[TOOL_CALLS]weather[ARGS]${bern}[TOOL_CALLS]clock[CALL_ID]a1[ARGS]{}`, { family: mistralArgs }, { text: 'Well.', calls: [`weather(${bern})`, 'clock({})'] }],
  ['a name and its arguments without a mark between', '[TOOL_CALLS]clock{"a": 1}', { family: mistralArgs }, { calls: ['clock({"a": 1})'] }],
  ['brackets that are no call', '[TOOL_CALL] [TOOL_CALLS] [1]', { family: mistral }, { text: '[TOOL_CALL] [TOOL_CALLS] [1]' }],
  ['an object without a mark', `{"name": "weather", "parameters": ${bern}}`, { family: llama3 }, { calls: [`weather(${bern})`] }],
  ['objects without a mark', `\n{"type": "function", "name": "weather", "parameters": ${bern}}; {"name": "clock", "parameters": {}}`, { family: llama3 }, { calls: [`weather(${bern})`, 'clock({})'] }],
  ['an object behind the tag of code', '<|python_tag|>{"name": "clock", "parameters": {}}', { family: llama3 }, { calls: ['clock({})'] }],
  ['code behind the tag of code', '<|python_tag|>print(1)', { family: llama3 }, { text: '<|python_tag|>print(1)' }],
  ['an object that names no tool', '{"name": "Bern", "arguments": {}} is it', { family: llama3 }, { text: '{"name": "Bern", "arguments": {}} is it' }],
  ['an object behind text', 'It is {"name": "clock", "parameters": {}}', { family: llama3 }, { text: 'It is {"name": "clock", "parameters": {}}' }],
  ['JSON of another kind', '{"mood": "good"}', { family: generic }, { text: '{"mood": "good"}' }],
  ['a list of JSON', '[{"mood": 1}]', { family: generic }, { text: '[{"mood": 1}]' }],
  ['a wrapped call', '{"tool_call": {"name": "clock", "arguments": {}}}', { family: generic }, { calls: ['clock({})'] }],
  ['wrapped calls', `{ "tool_calls" : [ {"name": "clock", "arguments": {}} , {"name": "weather", "arguments": ${bern}} ] }`, { family: generic }, { calls: ['clock({})', `weather(${bern})`] }],
  ['a list of calls', '[{"name": "clock", "arguments": {}}]', { family: generic }, { calls: ['clock({})'] }],
  ['an object of a sentence', '{', { family: generic }, { text: '{' }]
]

t.test('the answers of each family are told apart, wherever a piece ends', async t => {
  for (const [what, text, wish, sum] of recorded) {
    const name = `${wish.family?.name ?? 'plain'}: ${what}`
    t.strictSame(read([text], wish), sum, name)
    const others = Array.from({ length: text.length + 1 }, (_, cut) => read([text.slice(0, cut), text.slice(cut)], wish))
    t.strictSame(others.filter(other => inOrder(other) !== inOrder(sum)), [], `${name}: cut at every character`)
    t.strictSame(read([...text].flatMap(char => [char, '']), wish), sum, `${name}: one character at a time`)
  }
})

t.test('whatever a model writes comes out once, however it is cut', async t => {
  const words = ['<tool_call>', '</tool_call>', '<function=', 'clock', '>', '<parameter=', '</parameter>', '</function>', '{', '}', '"name"', ':', '"clock"', ',', '"arguments"', '[TOOL_CALLS]',
    '<tool_call>clock', '<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>', '<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>', '<｜tool▁call▁begin｜>', '<｜tool▁call▁end｜>', '<｜tool▁sep｜>',
    'function', '```json', '<|tool_calls_section_begin|>', '<|tool_call_begin|>', '<|tool_call_argument_begin|>', '<|tool_call_end|>', '<|tool_calls_section_end|>',
    '<|start|>', '<|channel|>', '<|message|>', '<|end|>', 'analysis', ' to=functions.clock', '[ARGS]', '[', ']', '<think>', '</think>', '\n', ' ', 'x', '\\', '"', '<|python_tag|>']
  const families = Object.values<ToolFamily>(toolFamilies)
  const parts = fc.array(fc.constantFrom(...words), { maxLength: 24 })
  const thinking = fc.constantFrom('none', 'maybe', 'open')
  fc.assert(fc.property(parts, fc.nat(), fc.constantFrom(...families), thinking, (list, at, family, thoughts) => {
    const text = list.join('')
    const cut = at % (text.length + 1)
    const whole = JSON.stringify(read([text], { family, thoughts }))
    const pieces = [[text.slice(0, cut), text.slice(cut)], [...text]]
    return pieces.every(some => JSON.stringify(read(some, { family, thoughts })) === whole)
  }))
  t.pass('holds')
})

t.test('arguments and text are told as they come, and only the start of a mark is held', async t => {
  const reader = readerOf({ family: hermes })
  t.strictSame(reader.push('Let me'), [{ kind: 'text', text: 'Let me' }])
  t.strictSame(reader.push(' see. <tool'), [{ kind: 'text', text: ' see.' }])
  t.strictSame(reader.push('_call>{"name": "weather", '), [{ kind: 'call', name: 'weather' }])
  t.strictSame(reader.push('"arguments": {"ci'), [{ kind: 'arguments', text: '{"ci' }])
  t.strictSame(reader.push('ty": "a'), [{ kind: 'arguments', text: 'ty": "a' }])
  t.strictSame(reader.push('"}}</tool_call>'), [{ kind: 'arguments', text: '"}' }])
  t.strictSame(reader.end(), [])
  const tags = readerOf({ family: qwenCoder })
  t.strictSame(tags.push('<function=weather><parameter=city>\nBer'), [{ kind: 'call', name: 'weather' }, { kind: 'arguments', text: '{"city": "Ber' }])
  t.strictSame(tags.push('n</para'), [{ kind: 'arguments', text: 'n' }])
  t.strictSame(tags.push('meter></function>'), [{ kind: 'arguments', text: '"}' }])
  const one = readerOf({ family: hermes, parallel: false })
  one.push(tag('clock', '{}'))
  t.ok(one.enough, 'the engine need not go on')
})

t.test('a long answer costs what its length is, in pieces and at once', async t => {
  const calls = 4000
  const text = `${tag('weather', bern)}\n`.repeat(calls)
  const told = read([text], { family: hermes })
  t.equal(told.calls?.length, calls)
  const deep = `{"city": ${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  t.strictSame(read([tag('weather', deep)], { family: hermes }).calls, [`weather(${deep})`], 'nested deeply')
  const open = `${'<'.repeat(100_000)}${'\n'.repeat(100_000)}<tool_call>${' '.repeat(100_000)}`
  t.equal(read([open], { family: hermes }).text, open)
  const blank = '\n'.repeat(2_000_000)
  t.strictSame(read([`<function=clock>${blank}</function>`], { family: qwenCoder }).calls, ['clock({})'], 'white space between tags')
  t.equal(read([`<function=weather><parameter=tags>${blank}`], { family: qwenCoder }).calls?.[0]?.slice(0, 20), 'weather({"tags": "\\n', 'white space for a value')
  const many = Array.from({ length: calls }, () => plainCall('weather', bern))
  t.equal(read([deepseekSection(...many)], { family: deepseek31 }).calls?.length, calls)
  t.strictSame(read([`<tool_call>clock${blank}</tool_call>`], { family: glm }).calls, ['clock({})'], 'white space behind a name')
  t.strictSame(read([`<｜tool▁call▁begin｜>clock<｜tool▁sep｜>${blank}{}${blank}<｜tool▁call▁end｜>`], { family: deepseek31 }).calls, ['clock({})'], 'around arguments')
  const words = '<|chan'.repeat(300_000)
  t.equal(read([channel('final', words)], { family: harmony }).text, words, 'beginnings of marks')
  const early = `<tool_call>{"arguments": {"a": "${'x'.repeat(200_000)}`
  t.equal(read([early], { family: hermes }).text, early, 'arguments before a name are held up to a limit')
})
