import t from 'tap'
import { textsOf } from '../../../plugins/dialects/gemini/embed.js'
import { chatRequest as geminiRequest } from '../../../plugins/dialects/gemini/request.js'
import { chatRequest as ollamaRequest, generateRequest } from '../../../plugins/dialects/ollama/talk/chat-request.js'
import { chatRequest as messagesAsChat } from '../../../plugins/v1/messages/chat-request.js'
import { NO_TOOL_LEFT, warningHeader } from '../../../plugins/v1/over-chat/ref.js'
import { messagesRequest } from '../../../plugins/v1/over-messages/messages-request.js'
import { chatRequest as responsesAsChat, NOT_KEPT } from '../../../plugins/v1/responses/chat-request.js'

interface Told { readonly body: object, readonly warnings: readonly string[] }
type Say = (message: object) => Told

const slot = { name: 'agent', enable_thinking: null } as never
const picture = 'iVBORw0KGgoAAAANSUhEUg'
const shown = { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }

const ollama: Say = message => ollamaRequest({ messages: [message, message] }, { model: 'm', slot, context: null, inserts: true })
const chat: Say = message => messagesRequest({ model: 'm', messages: [message, message] })
const messages: Say = block => messagesAsChat({ model: 'm', messages: [{ role: 'user', content: [block, block] }] }, slot)
const messagesTool: Say = tool => {
  const tools = [tool, tool].map(more => ({ name: 'f', input_schema: {}, ...more }))
  return messagesAsChat({ model: 'm', messages: [{ role: 'user', content: 'hi' }], tools }, slot)
}
const gemini: Say = part => geminiRequest({ contents: [{ parts: [part, part] }] }, 'm', slot, false)
const geminiTool: Say = more => geminiRequest({ contents: 'hi', tools: [{ functionDeclarations: [{ name: 'f', ...more }, { name: 'g', ...more }] }] }, 'm', slot, false)
const responses: Say = item => responsesAsChat({ model: 'm', input: [item, item] }, slot, NOT_KEPT)

const geminiCall = (more: object): object => ({ functionCall: { name: 'f', args: {}, ...more } })
const messagesSaid = (message: object): Told => messagesAsChat({ model: 'm', messages: [message, message] }, slot)
const chatAsked = (more: object): Told => messagesRequest({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more })
const responsesTool: Say = tool => responsesAsChat({ model: 'm', input: 'hi', tools: [tool, { ...tool, name: 'g' }] }, slot, NOT_KEPT)
const strange = { mood: 'good' }
const said = { type: 'text', text: 'x', ...strange }
const messagesAsked: Say = more => messagesAsChat({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more }, slot)
const geminiAsked: Say = more => geminiRequest({ contents: 'hi', ...more }, 'm', slot, false)
const responsesAsked: Say = more => responsesAsChat({ model: 'm', input: 'hi', ...more }, slot, NOT_KEPT)
const responsesAfar: Say = more => responsesAsChat({ model: 'm', input: 'hi', ...more }, null, NOT_KEPT)
const content = { parts: [{ text: 'x' }] }
const embedTold = (more: object, isBatch: boolean): Told => {
  const one = { content, ...more }
  const { warnings, ...body } = textsOf(isBatch ? { requests: [one, one] } : one, isBatch)
  return { body, warnings }
}
const geminiEmbed: Say = more => embedTold(more, false)
const geminiEmbeds: Say = more => embedTold(more, true)
const ollamaRaw: Say = more => generateRequest({ prompt: 'x', raw: true, ...more }, { model: 'm', slot, context: null, inserts: true })
const aFunction = { type: 'function', function: { name: 'f' } }
const ollamaCalls: Say = call => ollamaRequest({ messages: [{ role: 'assistant', content: '', tool_calls: [call, call] }] }, { model: 'm', slot, context: null, inserts: true })
const schema = { name: 'answer', schema: { type: 'object' } }

const document = { type: 'document', source: { type: 'text', data: 'a text' } }
const inline = { inlineData: { mimeType: 'image/png', data: picture } }

/** Where each member goes: into the body, into a warning, or nowhere, which its name refuses. */
type Goes = { readonly body: RegExp } | { readonly warning: string } | { readonly refused: string }
const rows: ReadonlyArray<readonly [say: Say, said: object, goes: Goes]> = [
  [ollama, { role: 'tool', content: 'x', images: [picture] }, { body: /"role":"user","content":\[\{"type":"image_url"/ }],
  [ollama, { role: 'system', content: 'x', images: [picture] }, { body: /"role":"user","content":\[\{"type":"image_url"/ }],
  [ollama, { role: 'assistant', content: 'x', images: [picture] }, { body: /"role":"user","content":\[\{"type":"image_url"/ }],
  [ollama, { role: 'user', content: 'x', mood: 'good' }, { warning: 'messages.*.mood: not known here and left out' }],
  [ollama, { role: 'user', content: 'x', tool_calls: [{}] }, { warning: 'messages.*.tool_calls: not known here and left out' }],
  [ollama, { role: 'user', content: 'x', images: [], thinking: '' }, { body: /"content":"x"/ }],
  [ollama, { role: 'constructor', content: 'x' }, { refused: 'messages.0.role' }],
  [chat, { role: 'user', content: 'x', name: 'Ann' }, { warning: 'messages.*.name: not known here and left out' }],
  [chat, { role: 'user', content: [{ ...shown, image_url: { ...shown.image_url, detail: 'high' } }] }, { warning: 'messages.*.content.*.image_url.detail: not known here and left out' }],
  [chat, { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }, { body: /"text":"no"/ }],
  [chat, { role: 'assistant', content: [shown] }, { refused: 'messages.0.content.0' }],
  [chat, { role: 'assistant', content: null, audio: { id: 'a' } }, { refused: 'messages.0.audio' }],
  [chat, { role: 'assistant', content: null, function_call: { name: 'f' } }, { refused: 'messages.0.function_call' }],
  [chat, { role: 'assistant', content: 'x', audio: null, refusal: null, annotations: [] }, { body: /"text":"x"/ }],
  [messages, { ...document, citations: { enabled: true } }, { warning: 'messages.*.content.*.citations: left out, citations are not supported here' }],
  [messages, { ...document, citations: { enabled: false } }, { body: /a text/ }],
  [messages, { type: 'tool_result', tool_use_id: 'c', content: [{ ...document, citations: { enabled: true } }] }, { warning: 'messages.*.content.*.citations: left out, citations are not supported here' }],
  [messagesTool, { input_examples: [{}] }, { warning: 'tools.*.input_examples: not known here and left out' }],
  [messagesTool, { defer_loading: true }, { body: /"name":"f"/ }],
  [messagesTool, { allowed_callers: ['code_execution_20250825'] }, { warning: 'tools.*.allowed_callers: not known here and left out' }],
  [messagesTool, { defer_loading: false, cache_control: { type: 'ephemeral' } }, { body: /"name":"f"/ }],
  [geminiTool, { response: { type: 'STRING' } }, { warning: 'tools.*.functionDeclarations.*.response: left out, chat completions have no such field' }],
  [geminiTool, { behavior: 'NON_BLOCKING' }, { warning: 'tools.*.functionDeclarations.*.behavior: left out, chat completions have no such field' }],
  [gemini, { ...inline, videoMetadata: { fps: 1 } }, { warning: 'contents.*.parts.*.videoMetadata: left out, chat completions have no such field' }],
  [gemini, { ...inline, media_resolution: { level: 'LOW' } }, { warning: 'contents.*.parts.*.mediaResolution: left out, chat completions have no such field' }],
  [() => geminiRequest({ contents: 'hi', toolConfig: { retrievalConfig: { languageCode: 'en' } } }, 'm', slot, false), {}, { warning: 'toolConfig.retrievalConfig: left out, retrieval is not supported here' }],
  [responses, { type: 'reasoning', encrypted_content: 'gAAA' }, { warning: 'input.*.encrypted_content: left out, only its provider can read it' }],
  [responses, { type: 'reasoning', encrypted_content: `svc1.${Buffer.from('hm').toString('base64')}` }, { body: /"reasoning_content":"hmhm"/ }],
  [messagesSaid, { role: 'user', content: 'x', ...strange }, { warning: 'messages.*.mood: not known here and left out' }],
  [messagesSaid, { role: 'system', content: [said] }, { warning: 'messages.*.content.*.mood: not known here and left out' }],
  [messagesSaid, { role: 'assistant', content: [said] }, { warning: 'messages.*.content.*.mood: not known here and left out' }],
  [messagesSaid, { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {}, ...strange }] }, { warning: 'messages.*.content.*.mood: not known here and left out' }],
  [messagesSaid, { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 's' }, { type: 'text', text: 'x', citations: null }] }, { body: /"reasoning_content":"hm"/ }],
  [messages, said, { warning: 'messages.*.content.*.mood: not known here and left out' }],
  [messages, { ...document, title: 't', context: 'c', cache_control: { type: 'ephemeral' } }, { body: /a text/ }],
  [messages, { type: 'document', source: { type: 'content', content: [said] } }, { warning: 'messages.*.content.*.source.content.*.mood: not known here and left out' }],
  [messages, { type: 'tool_result', tool_use_id: 'c', content: [said] }, { warning: 'messages.*.content.*.content.*.mood: not known here and left out' }],
  [() => messagesAsChat({ model: 'm', system: [said], messages: [] }, slot), {}, { warning: 'system.*.mood: not known here and left out' }],
  [() => messagesAsChat({ model: 'm', messages: [], output_config: { effort: 'low', task_budget: { type: 'tokens', total: 9 } } }, slot), {}, { warning: 'output_config.task_budget: not known here and left out' }],
  [gemini, { text: 'x', ...strange }, { warning: 'contents.*.parts.*.mood: not known here and left out' }],
  [gemini, { text: 'x', thought_signature: 'c2ln', part_metadata: {} }, { body: /"x/ }],
  [gemini, { inline_data: { mime_type: 'image/png', data: picture, display_name: 'p' } }, { body: /image_url/ }],
  [gemini, { functionResponse: { id: 'c', name: 'f', response: {}, scheduling: 'SILENT', willContinue: false } }, { warning: 'contents.*.parts.*.functionResponse.scheduling: not known here and left out' }],
  [() => geminiRequest({ contents: [{ role: 'model', parts: [geminiCall(strange), geminiCall(strange)] }] }, 'm', slot, false), {}, { warning: 'contents.*.parts.*.functionCall.mood: not known here and left out' }],
  [() => geminiRequest({ contents: [{ parts: [{ text: 'x' }], ...strange }] }, 'm', slot, false), {}, { warning: 'contents.*.mood: not known here and left out' }],
  [geminiTool, strange, { warning: 'tools.*.functionDeclarations.*.mood: not known here and left out' }],
  [() => geminiRequest({ contents: 'hi', generationConfig: { thinkingConfig: { thinking_budget: 9, ...strange } } }, 'm', slot, false), {}, { warning: 'generationConfig.thinkingConfig.mood: not known here and left out' }],
  [responses, { role: 'user', content: 'x', ...strange }, { warning: 'input.*.mood: not known here and left out' }],
  [responses, { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', phase: 'final', content: [{ type: 'output_text', text: 'x', annotations: [], logprobs: [] }] }, { body: /"content":"xx"/ }],
  [responses, { role: 'user', content: [{ type: 'input_text', text: 'x', ...strange }] }, { warning: 'input.*.content.*.mood: not known here and left out' }],
  [responses, { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', ...strange }, { warning: 'input.*.mood: not known here and left out' }],
  [responses, { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'x', ...strange }] }, { warning: 'input.*.output.*.mood: not known here and left out' }],
  [responsesTool, { type: 'function', name: 'f', parameters: {}, defer_loading: true }, { body: /"name":"f"/ }],
  [responsesTool, { type: 'function', name: 'f', parameters: {}, ...strange }, { warning: 'tools.*.mood: not known here and left out' }],
  [responsesTool, { type: 'custom', name: 'f', ...strange }, { warning: 'tools.*.mood: not known here and left out' }],
  [responsesTool, { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f', ...strange }] }, { warning: 'tools.*.tools.*.mood: not known here and left out' }],
  [responsesTool, { type: 'namespace', name: 'n', description: 'of many', tools: [{ type: 'function', name: 'f' }] }, { body: /"role":"system","content":"Of the tools whose names begin with `n__`: of many/ }],
  [responsesTool, { type: 'custom', name: 'f', format: { type: 'grammar', syntax: 'lark', definition: 'x', ...strange } }, { warning: 'tools.*.format.mood: not known here and left out' }],
  [ollamaCalls, { function: { name: 'f', arguments: {} }, ...strange }, { warning: 'messages.*.tool_calls.*.mood: not known here and left out' }],
  [ollamaCalls, { function: { name: 'f', arguments: {}, ...strange } }, { warning: 'messages.*.tool_calls.*.function.mood: not known here and left out' }],
  [ollamaCalls, { id: 'c', type: 'function', function: { index: 0, name: 'f', arguments: {} } }, { body: /"name":"f"/ }],
  [chat, { role: 'system', content: [said] }, { warning: 'messages.*.content.*.mood: not known here and left out' }],
  [chat, { role: 'assistant', content: [said] }, { warning: 'messages.*.content.*.mood: not known here and left out' }],
  [chat, { role: 'assistant', content: 'x', reasoning_content: 'hm' }, { warning: 'messages.*.reasoning_content: left out, a model takes back only what its provider signed' }],
  [chat, { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, ...strange }] }, { warning: 'messages.*.tool_calls.*.mood: not known here and left out' }],
  [chatAsked, { tools: [{ type: 'function', function: { name: 'f', ...strange } }] }, { warning: 'tools.*.function.mood: not known here and left out' }],
  [chatAsked, { tools: [{ type: 'function', function: { name: 'f' }, cache_control: { type: 'ephemeral' } }] }, { warning: 'tools.*.cache_control: not known here and left out' }],
  [chatAsked, { response_format: { type: 'json_schema', json_schema: { ...schema, description: 'about it' } } }, { warning: 'response_format.json_schema.description: not known here and left out' }],
  [chatAsked, { response_format: { type: 'json_schema', json_schema: { ...schema, strict: true } } }, { body: /"schema"/ }],
  [chat, { role: 'user', content: [{ type: 'file', file: { file_data: `data:application/pdf;base64,${picture}`, filename: 'a.pdf', file_id: 'f1' } }] }, { warning: 'messages.*.content.*.file.file_id: not known here and left out' }],
  [chatAsked, { response_format: { type: 'json_schema', json_schema: schema, ...strange } }, { warning: 'response_format.mood: not known here and left out' }],
  [chatAsked, { tools: [aFunction], tool_choice: { ...aFunction, ...strange } }, { warning: 'tool_choice.mood: not known here and left out' }],
  [chatAsked, { tools: [aFunction], tool_choice: { type: 'function', function: { name: 'f', ...strange } } }, { warning: 'tool_choice.function.mood: not known here and left out' }],
  [chatAsked, { tools: [], tool_choice: 'required' }, { warning: NO_TOOL_LEFT }],
  [messages, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture, ...strange } }, { warning: 'messages.*.content.*.source.mood: not known here and left out' }],
  [messages, { type: 'tool_result', tool_use_id: 'c', content: [{ ...document, source: { ...document.source, ...strange } }] }, { warning: 'messages.*.content.*.content.*.source.mood: not known here and left out' }],
  [messagesAsked, { thinking: { type: 'adaptive', display: 'omitted' } }, { warning: 'thinking.display: not known here and left out' }],
  [messagesAsked, { thinking: { type: 'much' } }, { refused: 'thinking.type' }],
  [messagesAsked, { metadata: { user_id: 'me', ...strange } }, { warning: 'metadata.mood: not known here and left out' }],
  [messagesAsked, { tools: [{ name: 'f', input_schema: {} }], tool_choice: { type: 'auto', ...strange } }, { warning: 'tool_choice.mood: not known here and left out' }],
  [messagesAsked, { tool_choice: { type: 'any' } }, { warning: NO_TOOL_LEFT }],
  [messagesAsked, { tool_choice: { type: 'none' } }, { body: /hi/ }],
  [messagesAsked, { output_config: { format: { type: 'json_schema', schema: {}, ...strange } } }, { warning: 'output_config.format.mood: not known here and left out' }],
  [messagesAsked, { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } }, { body: /hi/ }],
  [messagesAsked, { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }, { warning: 'context_management: left out, the context is not edited here' }],
  [geminiAsked, { toolConfig: { functionCallingConfig: { mode: 'AUTO', streamFunctionCallArguments: true } } }, { warning: 'toolConfig.functionCallingConfig.streamFunctionCallArguments: not known here and left out' }],
  [geminiAsked, { toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['f'] } } }, { warning: 'toolConfig.functionCallingConfig.allowedFunctionNames: left out, they are for the modes ANY and VALIDATED' }],
  [geminiAsked, { tool_config: { function_calling_config: { mode: 'ANY' } } }, { warning: 'toolConfig.functionCallingConfig: left out, there is no function to call' }],
  [geminiAsked, { toolConfig: { ...strange, includeServerSideToolInvocations: true } }, { warning: 'toolConfig.mood: not known here and left out' }],
  [geminiAsked, { systemInstruction: { parts: [{ text: 'x', ...strange }] } }, { warning: 'systemInstruction.parts.*.mood: not known here and left out' }],
  [geminiAsked, { generationConfig: { thinkingConfig: { thinkingLevel: 'MUCH' } } }, { refused: 'generationConfig.thinkingConfig.thinkingLevel' }],
  [geminiAsked, { generationConfig: { thinkingConfig: { thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED' } } }, { body: /hi/ }],
  [geminiAsked, { generationConfig: { responseSchema: { type: 'OBJECT' } } }, { refused: 'generationConfig.responseMimeType' }],
  [geminiAsked, { generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT' }, responseJsonSchema: { type: 'array' } } }, { warning: 'generationConfig.responseSchema: left out, responseJsonSchema replaces it' }],
  [geminiAsked, { generationConfig: { logprobs: 3 } }, { warning: 'generationConfig.logprobs: left out, it needs responseLogprobs' }],
  [geminiTool, { parameters: { type: 'OBJECT' }, parametersJsonSchema: {} }, { warning: 'tools.*.functionDeclarations.*.parameters: left out, parametersJsonSchema replaces it' }],
  [geminiEmbed, { taskType: 'RETRIEVAL_QUERY' }, { warning: 'taskType: not known here and left out' }],
  [geminiEmbed, { output_dimensionality: 3 }, { body: /"dimensions":3/ }],
  [geminiEmbeds, { title: 'x' }, { warning: 'requests.*.title: not known here and left out' }],
  [ollamaRaw, { system: 'x' }, { warning: 'system: left out, a raw prompt has no other messages' }],
  [ollamaRaw, { format: 'json' }, { body: /^(?!.*response_format).*"json_schema":\{"type":"object"\}/ }],
  [ollamaRaw, { think: true }, { warning: 'think: left out, a raw prompt goes through no template' }],
  [geminiAsked, { generationConfig: { thinkingConfig: { thinkingBudget: 2000 } } }, { body: /"enable_thinking":true\},"thinking_budget_tokens":2000/ }],
  [geminiAsked, { generationConfig: { thinkingConfig: 'much' } }, { refused: 'generationConfig.thinkingConfig' }],
  [responses, { role: 'user', content: [{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${picture}`, detail: 'high' }] }, { warning: 'input.*.content.*.detail: not known here and left out' }],
  [responses, { role: 'user', content: [{ type: 'input_image', image_url: shown.image_url.url, detail: 'high' }] }, { body: /"detail":"high"/ }],
  [responsesAsked, { text: { ...strange } }, { warning: 'text.mood: not known here and left out' }],
  [responsesAsked, { text: { format: { type: 'json_schema', ...schema, ...strange } } }, { warning: 'text.format.mood: not known here and left out' }],
  [responsesAsked, { reasoning: { effort: 'low', summary: 'auto', ...strange } }, { warning: 'reasoning.mood: not known here and left out' }],
  [responsesAsked, { tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'function', name: 'f', ...strange } }, { warning: 'tool_choice.mood: not known here and left out' }],
  [responsesAsked, { tool_choice: 'required' }, { warning: NO_TOOL_LEFT }],
  [responsesAsked, { chat_template_kwargs: { mood: 'good' }, reasoning: { effort: 'none' } }, { body: /"chat_template_kwargs":\{"mood":"good","enable_thinking":false\}/ }],
  [responsesAsked, { prompt_cache_key: 'k', safety_identifier: 'u', user: 'v', metadata: { a: 'b' } }, { body: /"user":"v"/ }],
  [responsesAfar, { prompt_cache_key: 'k', metadata: { a: 'b' } }, { body: /^(?!.*prompt_cache)/ }],
  [responsesAfar, { safety_identifier: 'u' }, { body: /"user":"u"/ }],
  [responsesAfar, { safety_identifier: 'u', user: 'v' }, { warning: 'safety_identifier: left out, user says whose request it is' }],
  [chatAsked, { safety_identifier: 'u' }, { body: /"metadata":\{"user_id":"u"\}/ }],
  [chatAsked, { safety_identifier: 'u', user: 'v' }, { warning: 'safety_identifier: left out, user says whose request it is' }],
  [chatAsked, { prompt_cache_key: 'k' }, { warning: 'prompt_cache_key: left out, the model\'s API has no such option' }],
  [chatAsked, { reasoning_effort: 'none' }, { body: /"thinking":\{"type":"disabled"\}/ }],
  [messagesAsked, { thinking: { type: 'disabled' }, chat_template_kwargs: { mood: 'good' } }, { body: /"chat_template_kwargs":\{"mood":"good","enable_thinking":false\}/ }],
  [messagesAsked, { thinking: { type: 'disabled' }, chat_template_kwargs: { enable_thinking: true } }, { body: /"enable_thinking":true/ }],
  [messagesAsked, { thinking: { type: 'enabled', budget_tokens: 2000 } }, { body: /"thinking_budget_tokens":2000/ }],
  [() => messagesAsChat({ model: 'm', messages: [], thinking: { type: 'disabled' } }, null), {}, { warning: 'thinking: left out, chat completions cannot turn thinking off' }],
  [() => geminiRequest({ contents: 'hi', generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, 'm', null, false), {}, { warning: 'generationConfig.thinkingConfig.thinkingBudget: left out, chat completions cannot turn thinking off' }],
  [() => geminiRequest({ contents: 'hi', generationConfig: { thinkingConfig: { thinkingBudget: 9 } } }, 'm', null, false), {}, { body: /"reasoning_effort":"low"/ }],
  [() => responsesAsChat({ model: 'm', input: 'hi', text: { verbosity: 'low' } }, slot, NOT_KEPT), {}, { warning: 'text.verbosity: left out, the engine of a slot has no such option' }],
  [() => responsesAsChat({ model: 'm', input: 'hi', text: { verbosity: 'low' } }, null, NOT_KEPT), {}, { body: /"verbosity":"low"/ }]
]

t.test('what a request says goes on, is named in a warning once, or is refused by its name', async t => {
  for (const [say, said, goes] of rows) {
    const what = JSON.stringify(said).slice(0, 120)
    if ('refused' in goes) {
      t.throws(() => say(said), { code: 'validation.invalid', param: goes.refused }, what)
      continue
    }
    const { body, warnings } = say(said)
    if ('body' in goes) t.match(JSON.stringify(body), goes.body, what)
    t.strictSame(warnings, 'warning' in goes ? [goes.warning] : [], what)
  }
})

t.test('pictures that a tool gave stand behind all results of the calls, in the next words of the user', async t => {
  const call = (name: string): object => ({ function: { name, arguments: {} } })
  const { body } = ollamaRequest({
    messages: [
      { role: 'assistant', content: '', tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_name: 'a', content: 'one', images: [picture] },
      { role: 'tool', tool_name: 'b', content: 'two' },
      { role: 'user', content: 'what is it?' }
    ]
  }, { model: 'm', slot, context: null, inserts: true })
  t.match(body.messages, [
    { role: 'assistant' }, { role: 'tool', content: 'one' }, { role: 'tool', content: 'two' },
    { role: 'user', content: [shown, { type: 'text', text: 'what is it?' }] }
  ])
  t.equal((body.messages as object[]).length, 4)
})

t.test('a warning header that would be too long says how many more there are', async t => {
  const header = (warnings: readonly string[]): string => warningHeader(warnings)['x-svc-warning'] ?? ''
  const many = Array.from({ length: 40 }, (_, i) => `${'x'.repeat(40)}${i}`)
  t.strictSame(warningHeader([]), {})
  t.equal(header(['a', 'é']), 'a; ?')
  t.equal(header(many.slice(0, 20)).split('; ').length, 20, 'what fits is told whole')
  const told = header(many)
  const [more] = /(?<=; and )\d+(?= more$)/.exec(told)!
  t.equal(told.split('; ').length - 1 + Number(more), 40)
  t.ok(told.length <= 1000)
  t.match(header(Array.from({ length: 50 }, () => 'x'.repeat(40))), /; and at least \d+ more$/)
  t.match(header(['y'.repeat(2000), 'x']), /^y{970}; and 1 more$/)
  t.match(header(['y'.repeat(2000)]), /^y{1000}$/)
  t.equal(header(['a', 'y'.repeat(2000), 'b']), 'a; and 2 more')
})

t.test('as many unknown members as a client likes are a few warnings', async t => {
  const message = { role: 'user', content: 'x', ...Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [`key${i}`, 1])) }
  t.equal(ollama(message).warnings.length, 50)
  t.equal(chat(message).warnings.length, 50)
  t.equal(messagesSaid(message).warnings.length, 50)
  t.equal(responses(message).warnings.length, 50)
  t.equal(gemini({ text: 'x', ...message }).warnings.length, 50)
  t.equal(messagesAsked({ metadata: message }).warnings.length, 50)
  t.equal(geminiAsked({ toolConfig: { functionCallingConfig: { ...message, mode: 'AUTO' } } }).warnings.length, 50)
})
