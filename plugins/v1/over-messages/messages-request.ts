import {
  given, isObject, leave, leaveStrangers, malformed, NO_TOOL_LEFT, objectsIn, stringIn, typeName, untranslatable, type Json
} from '../over-chat/ref.js'
import { conversationOf, type Turn } from './conversation.js'

export interface MessagesRequest {
  /** A request of the Messages API. */
  readonly body: Readonly<Record<string, unknown>>
  readonly stream: boolean
  /** Whether the client wants a stream's usage told. */
  readonly tellsUsage: boolean
  /** What was left out and changes nothing that the model is told, for people. */
  readonly warnings: readonly string[]
}

/** The Messages API wants a limit; chat completions do without one. */
const USUAL_LIMIT = 4096

/** Keys that are said in another way, or mean nothing there. Any other key passes as it is. */
const ownKeys: ReadonlySet<string> = new Set([
  'model', 'messages', 'max_tokens', 'max_completion_tokens', 'stop', 'stream', 'stream_options', 'tools', 'tool_choice',
  'parallel_tool_calls', 'response_format', 'reasoning_effort', 'user', 'n', 'logprobs', 'top_logprobs', 'logit_bias', 'modalities',
  'audio', 'prediction', 'functions', 'function_call', 'frequency_penalty', 'presence_penalty', 'seed', 'store', 'metadata',
  'service_tier', 'prompt_cache_key', 'prompt_cache_retention', 'safety_identifier', 'verbosity', 'chat_template_kwargs',
  'web_search_options', 'omni', 'memory', 'thinking'
])
const toolKeys: ReadonlySet<string> = new Set(['type', 'function'])
const functionKeys: ReadonlySet<string> = new Set(['name', 'description', 'parameters', 'strict'])
const choiceKeys: ReadonlySet<string> = new Set(['type', 'function'])
const chosenKeys: ReadonlySet<string> = new Set(['name'])
const formatKeys: ReadonlySet<string> = new Set(['type', 'json_schema'])
const schemaKeys: ReadonlySet<string> = new Set(['name', 'schema', 'strict'])
/** Leaving these out would be another request than the client's. */
const refused: ReadonlyArray<readonly [key: string, isAsked: (value: unknown) => boolean, what: string]> = [
  ['n', value => value !== 1, 'more than one answer'],
  ['logprobs', value => value === true, 'the probabilities of tokens'],
  ['logit_bias', value => isObject(value) && Object.keys(value).length > 0, 'a token bias'],
  ['frequency_penalty', value => value !== 0, 'a penalty'],
  ['presence_penalty', value => value !== 0, 'a penalty'],
  ['audio', () => true, 'an audio answer'],
  ['modalities', value => !Array.isArray(value) || value.some(kind => kind !== 'text'), 'an answer other than text'],
  ['prediction', () => true, 'a prediction'],
  ['functions', () => true, 'the legacy form of tools'],
  ['web_search_options', () => true, 'a search by the model\'s provider']
]
/** Leaving these out makes no other request of it. */
const hints: ReadonlyArray<readonly [key: string, isAsked: (value: unknown) => boolean]> = [
  ['seed', () => true],
  ['prompt_cache_key', () => true],
  ['prompt_cache_retention', () => true],
  ['verbosity', () => true],
  ['chat_template_kwargs', () => true],
  ['service_tier', value => value !== 'auto' && value !== 'default'],
  ['store', value => value === true],
  ['metadata', value => isObject(value) && Object.keys(value).length > 0]
]

/** A chat completion request in the words of the Messages API. Throws `validation.invalid` for what it has no words for. */
export function messagesRequest (asked: Json): MessagesRequest {
  for (const [key, isAsked, what] of refused) if (asked[key] != null && isAsked(asked[key])) throw untranslatable(key, what)
  const warnings = hints.filter(([key, isAsked]) => asked[key] != null && isAsked(asked[key]))
    .map(([key]) => `${key}: left out, the model's API has no such option`)
  const { system, messages } = conversationOf(asked.messages, warnings)
  const tools = asked.tools == null ? [] : objectsIn(asked.tools, 'tools').map((tool, i) => toolOf(tool, `tools.${i}`, warnings))
  const stream = asked.stream === true
  const thinking = thinkingOf(asked, messages, warnings)
  return {
    body: given({
      ...Object.fromEntries(Object.entries(asked).filter(([key]) => !ownKeys.has(key))),
      model: asked.model,
      max_tokens: asked.max_completion_tokens ?? asked.max_tokens ?? USUAL_LIMIT,
      system: system === '' ? null : system,
      messages,
      stop_sequences: typeof asked.stop === 'string' ? [asked.stop] : asked.stop,
      metadata: metadataOf(asked, warnings),
      tools: tools.length === 0 ? null : tools,
      tool_choice: toolChoice(asked, tools.length, warnings),
      thinking,
      output_config: outputConfig(asked, warnings),
      stream: stream ? true : null
    }),
    stream,
    tellsUsage: isObject(asked.stream_options) && asked.stream_options.include_usage === true,
    warnings
  }
}

/** Between calls and their results the API wants the thoughts that led there, signed by its maker, which chat does not carry. */
function thinkingOf ({ thinking, reasoning_effort: effort }: Json, messages: readonly Turn[], warnings: string[]): unknown {
  const asked = thinking ?? (effort === 'none' ? { type: 'disabled' } : null)
  const answersCalls = messages.at(-1)?.content.some(block => 'type' in block && block.type === 'tool_result') === true
  if (!answersCalls || !isObject(asked) || asked.type !== 'enabled') return asked
  leave(warnings, 'thinking: left out, the last calls have no thoughts that their provider signed')
  return null
}

/** Whose request it is. */
function metadataOf ({ user, safety_identifier: identifier }: Json, warnings: string[]): object | null {
  const id = user ?? identifier
  if (identifier != null && identifier !== id) leave(warnings, 'safety_identifier: left out, user says whose request it is')
  return typeof id === 'string' ? { user_id: id } : null
}

function toolOf (tool: Json, at: string, warnings: string[]): object {
  const { type, function: said } = tool
  if (type !== 'function' || !isObject(said)) throw untranslatable(at, `a tool of type ${typeName(type)}`)
  leaveStrangers(tool, toolKeys, 'tools.*', warnings)
  leaveStrangers(said, functionKeys, 'tools.*.function', warnings)
  const { name, description, parameters, strict } = said
  return given({
    name: stringIn(name, `${at}.function.name`), description, input_schema: parameters ?? { type: 'object', properties: {} }, strict
  })
}

function toolChoice (
  { tool_choice: choice, parallel_tool_calls: parallel }: Json, tools: number, warnings: string[]
): object | null {
  const isSerial = parallel === false
  if (tools === 0) {
    if (choice === 'required' || isObject(choice)) leave(warnings, NO_TOOL_LEFT)
    return null
  }
  const serial = isSerial ? { disable_parallel_tool_use: true } : {}
  if (choice == null) return isSerial ? { type: 'auto', ...serial } : null
  if (choice === 'none') return { type: 'none' }
  if (choice === 'auto') return { type: 'auto', ...serial }
  if (choice === 'required') return { type: 'any', ...serial }
  if (isObject(choice) && isObject(choice.function)) {
    leaveStrangers(choice, choiceKeys, 'tool_choice', warnings)
    leaveStrangers(choice.function, chosenKeys, 'tool_choice.function', warnings)
    return { type: 'tool', name: choice.function.name, ...serial }
  }
  throw malformed('tool_choice', 'must be auto, none, required or a function')
}

function outputConfig ({ response_format: format, reasoning_effort: effort }: Json, warnings: string[]): object | null {
  const isAsked = effort != null && effort !== 'none'
  const config = given({ effort: isAsked ? effort === 'minimal' ? 'low' : effort : null, format: formatOf(format, warnings) })
  return Object.keys(config).length === 0 ? null : config
}

function formatOf (format: unknown, warnings: string[]): object | null {
  if (!isObject(format) || format.type === 'text') return null
  if (format.type !== 'json_schema' || !isObject(format.json_schema)) {
    throw untranslatable('response_format', `a format of type ${typeName(format.type)} that is not a JSON schema`)
  }
  leaveStrangers(format, formatKeys, 'response_format', warnings)
  leaveStrangers(format.json_schema, schemaKeys, 'response_format.json_schema', warnings)
  return { type: 'json_schema', schema: format.json_schema.schema }
}
