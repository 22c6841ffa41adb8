import t from 'tap'
import { BodyView } from '../../../../kernel/dispatch/body/body-view.js'
import { ignoredInMessages, ignoredInResponses } from '../../../../plugins/providers/llm-server/ignored.js'
import { registeredProvider } from './support.js'

type Fields = Readonly<Record<string, unknown>>

const look = (ignores: typeof ignoredInMessages, base: Fields) => (fields: Fields): boolean => {
  const view = BodyView.of(Buffer.from(JSON.stringify({ ...base, ...fields })))
  if (typeof view === 'string') throw new Error(view)
  return ignores(view)
}
const user = { role: 'user', content: 'hi' }
const inMessages = look(ignoredInMessages, { model: 'agent', max_tokens: 9, messages: [user] })
const inResponses = look(ignoredInResponses, { model: 'agent', input: 'hi' })
const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const result = (fields: Fields): object => ({ type: 'tool_result', tool_use_id: 'a', content: 'x', ...fields })
const said = (...content: object[]): Fields => ({ messages: [{ role: 'user', content }] })
const tool = { name: 'weather', description: 'Tells it', input_schema: { type: 'object' } }
const called = { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: true }
const items = (...input: object[]): Fields => ({ input })

t.test('what llama-server\'s Messages API reads in full stays there', t => {
  for (const fields of [
    {}, { system: 'be brief' }, { system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }] },
    { temperature: 0, top_p: 1, top_k: 4, stream: true, stop_sequences: ['x'], metadata: { user_id: 'u' }, output_config: null },
    { thinking: { type: 'enabled', budget_tokens: 2000 } }, { chat_template_kwargs: { enable_thinking: false } },
    { tools: [tool, { type: 'custom', ...tool, cache_control: {} }], tool_choice: { type: 'tool', name: 'weather' } },
    said({ type: 'text', text: 'hi', citations: null }, picture), said(result({}), result({ content: [{ type: 'text', text: 'x' }] })),
    { messages: [user, { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: '' }, { type: 'tool_use', id: 'a', name: 'weather', input: {} }] }] }
  ]) t.notOk(inMessages(fields), JSON.stringify(fields))
  t.end()
})

t.test('what llama-server\'s Messages API passes over or misreads goes over chat', t => {
  for (const fields of [
    { output_config: { effort: 'high' } }, { output_format: {} }, { context_management: { edits: [] } }, { seed: 4 }, { mcp_servers: [] },
    { service_tier: 'standard_only' }, { thinking: { type: 'disabled' } }, { thinking: { type: 'adaptive' } },
    { thinking: { type: 'enabled', budget_tokens: 1, display: 'omitted' } }, { metadata: { user_id: 'u', team: 't' } },
    { tools: [tool], tool_choice: { type: 'none' } }, { tools: [tool], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, { tools: [{ ...tool, input_examples: [{}] }] },
    { system: [{ type: 'image' }] }, { messages: [{ ...user, name: 'Ada' }] },
    said({ type: 'document', source: { type: 'text', data: 'x' } }), said({ type: 'search_result' }), said({ type: 'redacted_thinking', data: 'x' }),
    said({ type: 'image', source: { type: 'file', file_id: 'f' } }), said({ type: 'text', text: 'x', citations: [{}] }, { type: 'server_tool_use' }),
    said(result({ is_error: true })), said(result({ content: [picture] })), said(result({}), { type: 'text', text: 'and?' })
  ]) t.ok(inMessages(fields), JSON.stringify(fields))
  t.end()
})

t.test('what llama-server\'s Responses API reads in full stays there', t => {
  for (const fields of [
    { instructions: 'be brief', store: true, stream: true, temperature: 0, max_output_tokens: 9, user: 'u', min_p: 0.1, seed: 4, metadata: {} },
    { reasoning: { effort: 'high', summary: null }, text: { format: { type: 'json_schema', name: 'a', schema: {} } }, include: [], truncation: 'disabled' },
    { tools: [called], tool_choice: { type: 'function', name: 'weather' }, parallel_tool_calls: true }, { tools: [called], tool_choice: 'none' },
    items(user, { role: 'user', content: [{ type: 'input_text', text: 'a' }, { type: 'input_image', image_url: 'data:', detail: 'low' }] }),
    items({ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [{ type: 'output_text', text: 'a', annotations: [] }] }),
    items({ type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'a' }] },
      { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{}' }, { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'x' }] })
  ]) t.notOk(inResponses(fields), JSON.stringify(fields))
  t.end()
})

t.test('what llama-server\'s Responses API passes over or refuses goes over chat', t => {
  for (const fields of [
    ...['custom', 'namespace', 'web_search', 'mcp', 'image_generation'].map(type => ({ tools: [called, { type, name: 'x' }] })),
    { tools: [called], parallel_tool_calls: false }, { tools: [called], tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [] } },
    { tools: [called], tool_choice: { type: 'custom', name: 'weather' } }, { include: ['reasoning.encrypted_content'] }, { metadata: { a: 'b' } },
    { reasoning: { effort: 'none' } }, { reasoning: { summary: 'auto' } }, { text: { verbosity: 'low' } }, { truncation: 'auto' },
    { max_tool_calls: 3 }, { service_tier: 'flex' }, { top_logprobs: 2 }, { context_management: [{}] }, { prompt: { id: 'p' } }, { background: true },
    items({ role: 'user', content: [{ type: 'input_file', file_data: 'data:text/plain;base64,YQ==' }] }),
    items({ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }), items({ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }),
    items({ role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }), items({ type: 'custom_tool_call', call_id: 'a', name: 'x', input: '' }),
    items({ type: 'function_call', call_id: 'a', name: 'x', namespace: 'mcp__a', arguments: '{}' }), items({ type: 'web_search_call', id: 'w' }),
    items({ type: 'function_call_output', call_id: 'a', output: [{ type: 'input_image', image_url: 'data:' }] }),
    items({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'a' }] }), items({ type: 'reasoning', summary: [], content: [{}], encrypted_content: 'x' })
  ]) t.ok(inResponses(fields), JSON.stringify(fields))
  t.end()
})

t.test('llama-server counts tokens itself only where it would read all of the message', t => {
  const { surfaces } = registeredProvider()
  t.equal(surfaces['count-tokens']?.ignores, surfaces.messages?.ignores)
  t.end()
})
