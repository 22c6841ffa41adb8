import type { JsonBody } from 'svc-gateway/plugin'

/*
 * What llama-server's own Messages and Responses APIs pass over or misread. Both turn a request into one of its chat API, so
 * the gateway's translation loses nothing by it, and names what it cannot say. From llama.cpp's tools/server/server-chat.cpp.
 */

type Member = Readonly<Record<string, unknown>>
type Keys = ReadonlySet<string>

const keys = (...names: readonly string[]): Keys => new Set(names)

/** Of the Messages API: what is read, and what an engine has no use for. */
const messagesKeys = keys('model', 'messages', 'system', 'max_tokens', 'stop_sequences', 'stream', 'tools', 'tool_choice', 'thinking',
  'metadata', 'temperature', 'top_p', 'top_k', 'chat_template_kwargs', 'cache_control', 'betas')
const thinkingKeys = keys('type', 'budget_tokens')
const metadataKeys = keys('user_id')
const choiceKeys = keys('type', 'name', 'disable_parallel_tool_use')
const messageToolKeys = keys('type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'eager_input_streaming', 'defer_loading')
const messageKeys = keys('role', 'content')
const textBlockKeys = keys('type', 'text', 'cache_control', 'citations')
const blockKeys: ReadonlyMap<unknown, Keys> = new Map([
  ['text', textBlockKeys],
  ['image', keys('type', 'source', 'cache_control')],
  ['tool_use', keys('type', 'id', 'name', 'input', 'cache_control', 'caller')],
  ['tool_result', keys('type', 'tool_use_id', 'content', 'is_error', 'cache_control')],
  ['thinking', keys('type', 'thinking', 'signature')]
])

/** Whether a request of the Messages API, or one that counts its tokens, is read only in part. Pure. */
export function ignoredInMessages (body: JsonBody): boolean {
  if (body.keys().some(key => !messagesKeys.has(key) && body.has(key))) return true
  const thinking = given(body, 'thinking')
  // `disabled` and `adaptive` are passed over, so that the model thinks as its template has it
  if (isMember(thinking) && (thinking.type !== 'enabled' || !hasOnly(thinking, thinkingKeys))) return true
  const metadata = given(body, 'metadata')
  if (isMember(metadata) && !hasOnly(metadata, metadataKeys)) return true
  const choice = given(body, 'tool_choice')
  if (isMember(choice) && (choice.type === 'none' || choice.disable_parallel_tool_use === true || !hasOnly(choice, choiceKeys))) return true
  return !areAll(given(body, 'tools'), isClientTool) || !areAll(systemOf(body), isTextBlock) || !areAll(given(body, 'messages'), isReadMessage)
}

function systemOf (body: JsonBody): unknown {
  return body.string('system') === null ? given(body, 'system') : undefined
}

/** A tool of the API's maker becomes a function without parameters. */
function isClientTool (tool: Member): boolean {
  return (tool.type ?? 'custom') === 'custom' && hasOnly(tool, messageToolKeys)
}

function isTextBlock (block: Member): boolean {
  return block.type === 'text' && hasOnly(block, textBlockKeys)
}

function isReadMessage (message: Member): boolean {
  const { content } = message
  if (!hasOnly(message, messageKeys)) return false
  if (!Array.isArray(content)) return true
  const results = content.filter(block => isMember(block) && block.type === 'tool_result').length
  // what the user says to results would be put before them
  return (results === 0 || results === content.length) && areAll(content, isReadBlock)
}

function isReadBlock (block: Member): boolean {
  const known = blockKeys.get(block.type)
  if (known === undefined || !hasOnly(block, known)) return false
  switch (block.type) {
    case 'image': return isMember(block.source) && (block.source.type === 'base64' || block.source.type === 'url')
    // pictures would stand in a message of a tool, which templates do not show
    case 'tool_result': return block.is_error !== true && (typeof block.content === 'string' || areAll(block.content, isTextBlock))
    default: return true
  }
}

/** Members of the Responses API that change what comes back. All others are read, or are nothing to an engine. */
const unread: ReadonlyArray<readonly [key: string, isHarmless: (value: unknown) => boolean]> = [
  ['background', value => value === false],
  ['context_management', isEmpty],
  ['conversation', () => false],
  ['include', isEmpty],
  ['max_tool_calls', () => false],
  // an answer repeats it
  ['metadata', isEmpty],
  ['prompt', () => false],
  ['service_tier', value => value === 'auto' || value === 'default'],
  ['top_logprobs', () => false],
  ['truncation', value => value === 'disabled']
]
const effortKeys = keys('effort')
const textKeys = keys('format')
const formatKeys = keys('type', 'name', 'description', 'schema', 'strict')
const functionKeys = keys('type', 'name', 'description', 'parameters', 'strict', 'defer_loading')
const chosenKeys = keys('type', 'name')
const itemKeys: ReadonlyMap<unknown, Keys> = new Map([
  ['message', keys('type', 'id', 'status', 'role', 'content', 'phase')],
  ['function_call', keys('type', 'id', 'status', 'call_id', 'name', 'arguments')],
  ['function_call_output', keys('type', 'id', 'status', 'call_id', 'output')],
  ['reasoning', keys('type', 'id', 'status', 'summary', 'content')]
])
const partKeys: ReadonlyMap<unknown, Keys> = new Map([
  ['input_text', keys('type', 'text')],
  ['output_text', keys('type', 'text', 'annotations', 'logprobs')],
  ['input_image', keys('type', 'image_url', 'detail')]
])

/** Whether a request of the Responses API is read only in part. Pure. */
export function ignoredInResponses (body: JsonBody): boolean {
  if (unread.some(([key, isHarmless]) => body.has(key) && !isHarmless(body.value(key)))) return true
  if (body.has('tools') && given(body, 'parallel_tool_calls') === false) return true
  const reasoning = given(body, 'reasoning')
  if (isMember(reasoning) && (reasoning.effort === 'none' || !hasOnly(reasoning, effortKeys))) return true
  const text = given(body, 'text')
  if (isMember(text) && (!hasOnly(text, textKeys) || (isMember(text.format) && !hasOnly(text.format, formatKeys)))) return true
  if (body.string('tool_choice') === null) {
    const choice = given(body, 'tool_choice')
    if (isMember(choice) && (choice.type !== 'function' || !hasOnly(choice, chosenKeys))) return true
  }
  if (!areAll(given(body, 'tools'), tool => tool.type === 'function' && hasOnly(tool, functionKeys))) return true
  return body.string('input') === null && !areAll(given(body, 'input'), isReadItem)
}

function isReadItem (item: Member): boolean {
  const { type = 'message', content, output } = item
  const known = itemKeys.get(type)
  if (known === undefined || !hasOnly(item, known)) return false
  switch (type) {
    case 'message': return typeof content === 'string' || areAll(content, isReadPart)
    case 'function_call_output': return typeof output === 'string' || areAll(output, part => part.type === 'input_text' && isReadPart(part))
    // the first part alone is read, and without one the request is refused
    case 'reasoning': return Array.isArray(content) && content.length === 1 && Array.isArray(item.summary)
    default: return true
  }
}

function isReadPart (part: Member): boolean {
  const known = partKeys.get(part.type)
  return known !== undefined && hasOnly(part, known) && (part.type !== 'input_image' || typeof part.image_url === 'string')
}

/** Undefined for what is not there, or null. */
function given (body: JsonBody, key: string): unknown {
  return body.has(key) ? body.value(key) : undefined
}

/** What is no list is the engine's to refuse. */
function areAll (list: unknown, isRead: (member: Member) => boolean): boolean {
  return !Array.isArray(list) || list.every(member => !isMember(member) || isRead(member))
}

/** Whether an object says nothing besides. */
function hasOnly (object: Member, known: Keys): boolean {
  return Object.keys(object).every(key => known.has(key) || isEmpty(object[key]))
}

function isMember (value: unknown): value is Member {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isEmpty (value: unknown): boolean {
  return value === null || value === '' || value === false || (typeof value === 'object' && Object.keys(value).length === 0)
}
