import type { NamedSlotConfig } from 'svc-gateway/plugin'
import {
  given, isObject, leave, leaveStrangers, malformed, MOST_WARNINGS, stringIn, thinkingKwargs, typeName, untranslatable, type Json
} from '../over-chat/ref.js'
import { ChatMessages } from './chat-messages.js'
import { ChatTools } from './chat-tools.js'

export interface ChatRequest {
  /** A chat completion request. */
  readonly body: Readonly<Record<string, unknown>>
  readonly tools: ChatTools
  /** What the response repeats of its request. */
  readonly echo: Readonly<Record<string, unknown>>
  readonly stream: boolean
  /** Whether reasoning goes back as `encrypted_content` too. */
  readonly sealsThoughts: boolean
  /** Whether the client wants a summary of the reasoning. */
  readonly summarizes: boolean
  readonly warnings: readonly string[]
}

/** How the request stands to what is kept. */
export interface Standing {
  /** Whether it is kept unless it says otherwise. */
  readonly keeps: boolean
  /** Id of the response whose items stand in front of its own. */
  readonly previous: string | null
  /** Id of the conversation whose items do. */
  readonly conversation: string | null
}

export const NOT_KEPT: Standing = { keeps: false, previous: null, conversation: null }

/** Keys that are said in another way, or mean nothing to an engine. Any other key passes as it is. */
const ownKeys: ReadonlySet<string> = new Set([
  'model', 'input', 'instructions', 'max_output_tokens', 'max_tool_calls', 'tools', 'tool_choice', 'text', 'reasoning', 'include',
  'store', 'previous_response_id', 'conversation', 'prompt', 'background', 'truncation', 'stream', 'stream_options', 'metadata',
  'client_metadata', 'prompt_cache_key', 'prompt_cache_retention', 'safety_identifier', 'service_tier', 'context_management',
  'top_logprobs', 'parallel_tool_calls'
])

/** Members of the request that are objects of the API's own, and what is known in each. */
const memberKeys: ReadonlyArray<readonly [member: string, known: ReadonlySet<string>]> = Object.entries({
  text: ['format', 'verbosity'],
  reasoning: ['effort', 'summary', 'generate_summary'],
  stream_options: ['include_obfuscation']
}).map(([member, keys]) => [member, new Set(keys)])
const formatKeys: ReadonlySet<string> = new Set(['type', 'name', 'description', 'schema', 'strict'])

const LOGPROBS = 'message.output_text.logprobs'
const SEALED = 'reasoning.encrypted_content'

/**
 * A request of the Responses API in the words of chat completions. Throws `validation.invalid` for what they have no words for.
 * @param slot that will serve it; null for an upstream
 */
export function chatRequest (asked: Json, slot: NamedSlotConfig | null, standing: Standing): ChatRequest {
  refuseMembers(asked)
  const include: readonly unknown[] = Array.isArray(asked.include) ? asked.include : []
  const warnings = leftOut(asked, include)
  for (const [member, known] of memberKeys) {
    const said = asked[member]
    if (isObject(said)) leaveStrangers(said, known, member, warnings)
  }
  const tools = new ChatTools(asked.tools, warnings)
  const hasTools = tools.functions.length > 0
  const messages = new ChatMessages(slot !== null, warnings)
  if (asked.instructions != null) messages.system(stringIn(asked.instructions, 'instructions'))
  if (tools.groups !== '') messages.system(tools.groups)
  messages.input(asked.input)
  const logprobs = include.includes(LOGPROBS) || asked.top_logprobs != null
  const text = isObject(asked.text) ? asked.text : {}
  if (slot !== null && text.verbosity != null) leave(warnings, 'text.verbosity: left out, the engine of a slot has no such option')
  const stream = asked.stream === true
  return {
    body: given({
      ...Object.fromEntries(Object.entries(asked).filter(([key]) => !ownKeys.has(key))),
      model: asked.model,
      messages: messages.list,
      max_tokens: asked.max_output_tokens,
      tools: hasTools ? tools.functions : null,
      parallel_tool_calls: hasTools ? asked.parallel_tool_calls : null,
      ...tools.choice(asked.tool_choice),
      response_format: responseFormat(text.format, warnings),
      verbosity: slot === null ? text.verbosity : null,
      ...slot === null ? forUpstream(asked, warnings) : {},
      ...logprobs ? { logprobs: true, top_logprobs: asked.top_logprobs } : {},
      ...reasoning(asked, slot),
      ...stream ? { stream, stream_options: { include_usage: true } } : {}
    }),
    tools,
    echo: echoOf(asked, standing),
    stream,
    sealsThoughts: include.includes(SEALED),
    summarizes: isObject(asked.reasoning) && (asked.reasoning.summary ?? asked.reasoning.generate_summary) != null,
    warnings
  }
}

/**
 * Whose request it is, in chat's own word, which upstreams of every kind know. A key of a cache stays here: it changes no answer,
 * and those that speak chat alone refuse requests with members of one maker.
 */
function forUpstream ({ user, safety_identifier: identifier }: Json, warnings: string[]): object {
  if (user != null && identifier != null && user !== identifier) leave(warnings, 'safety_identifier: left out, user says whose request it is')
  return user == null ? { user: identifier } : {}
}

/** What no engine has a use for, and changes nothing that the model is told. */
function leftOut (
  { truncation, context_management: management, max_tool_calls: most, service_tier: tier }: Json, include: readonly unknown[]
): string[] {
  const others = [...new Set(include)].filter(what => what !== LOGPROBS && what !== SEALED).slice(0, MOST_WARNINGS)
  return [
    ...truncation === 'auto' ? ['truncation: left out, what is too long for the model is refused'] : [],
    ...management == null ? [] : ['context_management: left out, the context is not edited here'],
    ...most == null ? [] : ['max_tool_calls: left out, it counts calls of tools that nothing here runs'],
    ...tier == null || tier === 'auto' || tier === 'default' ? [] : ['service_tier: left out, there are no tiers here'],
    ...others.map(what => `include: ${typeName(what)} was left out, nothing here makes it`)
  ]
}

function refuseMembers (asked: Json): void {
  if (asked.conversation != null) throw untranslatable('conversation', 'a conversation that is not kept here')
  if (asked.prompt != null) throw untranslatable('prompt', 'a prompt kept by its provider')
  if (asked.background === true) throw untranslatable('background', 'background mode')
  if (asked.truncation != null && asked.truncation !== 'disabled' && asked.truncation !== 'auto') throw untranslatable('truncation', 'this truncation strategy')
  if (asked.previous_response_id != null) throw untranslatable('previous_response_id', 'a response that is not kept here')
}

function responseFormat (format: unknown, warnings: string[]): object | null {
  if (format == null) return null
  if (!isObject(format)) throw malformed('text.format', 'must be an object')
  leaveStrangers(format, formatKeys, 'text.format', warnings)
  if (format.type === 'text') return null
  if (format.type === 'json_object') return { type: 'json_object' }
  if (format.type !== 'json_schema') throw untranslatable('text.format', `a format of type ${typeName(format.type)}`)
  const { name = 'answer', description, schema, strict } = format
  return { type: 'json_schema', json_schema: given({ name, description, schema, strict }) }
}

/** A slot's template knows reasoning as on or off; others know how much. */
function reasoning ({ reasoning: asked, chat_template_kwargs: own }: Json, slot: NamedSlotConfig | null): object {
  const effort = isObject(asked) && typeof asked.effort === 'string' ? asked.effort : null
  if (slot === null) return { reasoning_effort: effort }
  const isOn = effort === null ? slot.enable_thinking : effort !== 'none'
  return {
    reasoning_effort: effort === 'none' ? null : effort,
    ...thinkingKwargs(isOn, own)
  }
}

/** What a response repeats of its request. */
export function echoOf (asked: Json, { keeps, previous, conversation }: Standing): Record<string, unknown> {
  const { effort = null, summary = null } = isObject(asked.reasoning) ? asked.reasoning : {} as Json
  const text = isObject(asked.text) ? asked.text : {}
  return {
    ...conversation === null ? {} : { conversation: { id: conversation } },
    instructions: asked.instructions ?? null,
    max_output_tokens: asked.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: asked.metadata ?? {},
    parallel_tool_calls: asked.parallel_tool_calls ?? true,
    previous_response_id: previous,
    reasoning: { effort, summary },
    service_tier: 'default',
    store: keeps && asked.store !== false,
    temperature: asked.temperature ?? 1,
    text: { ...text, format: text.format ?? { type: 'text' } },
    tool_choice: asked.tool_choice ?? 'auto',
    tools: asked.tools ?? [],
    top_logprobs: asked.top_logprobs ?? 0,
    top_p: asked.top_p ?? 1,
    truncation: 'disabled',
    user: asked.user ?? null
  }
}
