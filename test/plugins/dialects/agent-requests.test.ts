import t from 'tap'
import { chatRequest as geminiRequest } from '../../../plugins/dialects/gemini/request.js'
import { chatRequest as messagesAsChat } from '../../../plugins/v1/messages/chat-request.js'
import { chatRequest as responsesAsChat, NOT_KEPT } from '../../../plugins/v1/responses/chat-request.js'

const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'], additionalProperties: false }
const inNamespace = (name: string): object => ({ type: 'function', name, description: `To ${name}`, strict: false, parameters })

// requests as programs send them in the middle of a task, with fewer tools and words; rings/agent-programs.ring.ts runs the
// programs themselves

const codex = {
  model: 'scripted',
  stream: true,
  input: [
    { type: 'message', id: 'msg_1', role: 'developer', content: [{ type: 'input_text', text: 'You work in a terminal.' }] },
    { type: 'message', id: 'msg_2', role: 'user', content: [{ type: 'input_text', text: 'Which slots are there?' }] },
    { type: 'function_call', id: 'fc_1', name: 'slot_list', namespace: 'mcp__svc', arguments: '{}', call_id: 'call_1', status: 'completed' },
    { type: 'function_call_output', id: 'fc_2', call_id: 'call_1', output: '[]' },
    { type: 'function_call', id: 'fc_3', name: 'exec_command', arguments: '{"command":"ls"}', call_id: 'call_2', status: 'completed' },
    { type: 'function_call_output', id: 'fc_4', call_id: 'call_2', output: 'made.txt' }
  ],
  tools: [
    inNamespace('exec_command'),
    { type: 'namespace', name: 'multi_agent_v1', description: 'Tools for sub-agents.', tools: [inNamespace('spawn_agent')] },
    { type: 'namespace', name: 'mcp__svc', description: 'Begin with slot_list.', tools: [inNamespace('slot_list')] },
    { type: 'web_search', external_web_access: false }
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { summary: 'auto' },
  store: false,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '01a21ee4',
  client_metadata: { session_id: '01a21ee4' }
}

const claudeCode = {
  model: 'scripted',
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Today is Friday.' }, { type: 'text', text: 'Which slots are there?' }] },
    { role: 'system', content: 'Skills can be called.' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'made.txt', is_error: false, cache_control: { type: 'ephemeral' } }] }
  ],
  system: [{ type: 'text', text: 'You are an agent.' }, { type: 'text', text: 'Be careful.', cache_control: { type: 'ephemeral' } }],
  tools: [{ name: 'Bash', description: 'Runs a command', input_schema: parameters }],
  metadata: { user_id: '{"session_id":"e6b11a4b"}' },
  max_tokens: 32_000,
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'high' },
  stream: true
}

const geminiCli = {
  contents: [
    { role: 'user', parts: [{ text: 'Today is Friday.' }, { text: 'Which slots are there?' }] },
    { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'run_shell_command', args: { command: 'ls' } }, thoughtSignature: 'skip_thought_signature_validator' }] },
    { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'run_shell_command', response: { output: 'made.txt' } } }] }
  ],
  systemInstruction: { role: 'user', parts: [{ text: 'You are an agent.' }] },
  tools: [{ functionDeclarations: [{ name: 'run_shell_command', description: 'Runs a command', parametersJsonSchema: parameters }] }],
  generationConfig: { temperature: 1, topP: 0.95, topK: 64, thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 } }
}

const slot = { name: 'agent', enable_thinking: null } as never

t.test('a program is warned only of what its user misses: codex of its web search, and others of nothing', async t => {
  for (const server of [slot, null]) {
    t.strictSame(responsesAsChat(codex, server, NOT_KEPT).warnings, ['tools.3: \'web_search\' was left out, the gateway cannot run it'])
    t.strictSame(messagesAsChat(claudeCode, server).warnings, [])
    t.strictSame(geminiRequest(geminiCli, 'gemini-2.5-pro', server, true).warnings, [])
  }
  const withoutSearch = { ...codex, tools: codex.tools.slice(0, 3) }
  t.strictSame(responsesAsChat(withoutSearch, slot, NOT_KEPT).warnings, [])
})

t.test('what a server of tools says of itself reaches the model of codex, in the one system message', async t => {
  const { body } = responsesAsChat({ ...codex, instructions: 'Be brief.' }, slot, NOT_KEPT)
  t.match(body.messages, [{
    role: 'system',
    content: 'Be brief.\n\nOf the tools whose names begin with `multi_agent_v1__`: Tools for sub-agents.\n\n' +
      'Of the tools whose names begin with `mcp__svc__`: Begin with slot_list.\n\nYou work in a terminal.'
  }, { role: 'user' }, { role: 'assistant', tool_calls: [{ function: { name: 'mcp__svc__slot_list' } }] }])
})
