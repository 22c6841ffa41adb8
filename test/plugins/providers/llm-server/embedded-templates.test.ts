import t from 'tap'
import { createChatRenderer } from '../../../../plugins/providers/llm-server/embedded/chat-template.js'
import { familyOf } from '../../../../plugins/providers/llm-server/embedded/chat/tool-family.js'
import { chatSchema } from '../../../../plugins/providers/llm-server/embedded/requests.js'

const each = (message: string): string => `{% for message in messages %}${message}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`
const said = '{% if tools is defined and tools %}{{ tools | tojson }}{% endif %}'
const calls = (call: string): string => `${each(`<|{{ message.role }}|>{{ message.content }}{% for call in message.tool_calls or [] %}${call}{% endfor %}`)}`

/** The turns of phrase in which templates of each family write a call. */
const templates = {
  qwen: `${said}${calls('<tool_call>\n{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>')}`,
  qwen3: `${said}${calls('<tool_call>\n{"name": "{{ call.function.name }}", "arguments": {% if call.function.arguments is string %}{{ call.function.arguments }}{% else %}{{ call.function.arguments | tojson }}{% endif %}}\n</tool_call>')}<think>`,
  coder: `${said}${calls('<tool_call><function={{ call.function.name }}>{% for key, value in call.function.arguments | items %}<parameter={{ key }}>{{ value }}</parameter>{% endfor %}</function></tool_call>')}`,
  text: `${said}${calls('{{ "<call>" + call.function.name + "\\n" + call.function.arguments }}')}`,
  mistral: `${said}${calls('{% if call.id | length != 9 %}{{ raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}{% endif %}[TOOL_CALLS][{{ call.function | tojson }}, {{ call.id }}]')}`,
  llama: `${said}<|start_header_id|>{"name": function name, "parameters": dictionary}${calls('{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}')}`,
  plain: each('<|{{ message.role }}|>{{ message.content }}'),
  strict: each('{% if message.role not in ["user", "assistant", "system"] %}{{ raise_exception("no such role") }}{% endif %}<|{{ message.role }}|>{{ message.content }}')
} as const

const tools = [{ type: 'function', function: { name: 'weather', description: 'b first', parameters: { type: 'object', properties: { z: {}, a: {} } } } }]
const asked = {
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_abcdefghijklmnop', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }] },
    { role: 'tool', tool_call_id: 'call_abcdefghijklmnop', content: 'rain' }
  ]
}

t.test('what a template makes of calls is found out by rendering some', async t => {
  const traits = (source: string): object => createChatRenderer(source, { bos: '', eos: '' }).traits
  t.match(traits(templates.qwen), { tools: true, calls: 'object', nineLetterIds: false, results: false, thinks: false })
  t.match(traits(templates.qwen3), { calls: 'object', thinks: true })
  t.match(traits(templates.coder), { tools: true, calls: 'object' })
  t.match(traits(templates.text), { calls: 'text' })
  t.match(traits(templates.mistral), { calls: 'object', nineLetterIds: true })
  t.match(traits(templates.llama), { calls: 'object' })
  t.match(traits(templates.plain), { tools: false, calls: null, results: false })
  t.match(traits(`${templates.plain}{# message.role == "tool" #}`), { results: true })
  t.match(traits('{{ nothing.at.all }}'), { tools: false, calls: null, results: false })
})

t.test('a conversation with calls and results reads as its family writes it, and in words elsewhere', async t => {
  const render = (name: keyof typeof templates): string => createChatRenderer(templates[name], { bos: '', eos: '' }).render(chatSchema.parse(asked)).prompt
  t.match(render('qwen'), /<tool_call>\n\{"name": "weather", "arguments": \{"city": "Bern"\}\}\n<\/tool_call>/)
  t.match(render('coder'), '<function=weather><parameter=city>Bern</parameter></function>')
  t.match(render('text'), '<call>weather\n{"city":"Bern"}')
  t.match(render('mistral'), /"arguments": \{"city": "Bern"\}\}, hijklmnop\]/)
  t.match(render('llama'), '{"name": "weather", "parameters": {"city": "Bern"}}')
  t.equal(render('strict'), '<|user|>hi<|assistant|>{"name":"weather","arguments":{"city":"Bern"}}<|user|>{"tool_response":{"tool_call_id":"call_abcdefghijklmnop","content":"rain"}}<|assistant|>')
  const given = createChatRenderer(templates.qwen, { bos: '', eos: '' }).render(chatSchema.parse({ ...asked, tools })).prompt
  t.match(given, '[{"type": "function", "function": {"name": "weather", "description": "b first", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}}]', 'in the order of their keys')
})

t.test('a template tells the family of its model', async t => {
  t.strictSame(Object.entries(templates).map(([name, template]) => `${name}: ${familyOf(template).name}`), [
    'qwen: hermes', 'qwen3: hermes', 'coder: qwen-coder', 'text: generic', 'mistral: mistral', 'llama: llama-3', 'plain: generic', 'strict: generic'
  ])
  t.equal(familyOf('[TOOL_CALLS]x[ARGS]').name, 'mistral-args')
  for (const [template, name] of [
    [`{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\\n\`\`\`json\\n' }}`, 'deepseek-3'],
    [`{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['function']['name'] + '<｜tool▁sep｜>' + tool['function']['arguments'] }}`, 'deepseek-3.1'],
    ['<|tool_calls_section_begin|><|tool_call_begin|>{{ tc.id }}<|tool_call_argument_begin|>{{ tc.function.arguments | tojson }}<|tool_call_end|>', 'kimi'],
    ['<tool_call>{{ tc.name }}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>', 'glm'],
    ['<|start|>assistant to=functions.{{ name }}<|channel|>commentary json<|message|>{{ args | tojson }}<|call|>', 'harmony']
  ] as const) t.equal(familyOf(template).name, name)
})

t.test('where thoughts begin is told by the end of the prompt', async t => {
  const thoughts = (end: string, kwargs = {}): string =>
    createChatRenderer(`{{ messages[0].content }}{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}${end}{% endif %}`, { bos: '', eos: '' })
      .render(chatSchema.parse({ messages: [{ role: 'user', content: 'hi' }], chat_template_kwargs: kwargs })).thoughts
  t.equal(thoughts('<|assistant|>'), 'maybe')
  t.equal(thoughts('<think>\n'), 'open')
  t.equal(thoughts('', { enable_thinking: false }), 'none')
  t.equal(createChatRenderer(templates.plain, { bos: '', eos: '' }).render(chatSchema.parse(asked)).thoughts, 'none')
})
