import type { NamedSlotConfig } from 'svc-gateway/plugin'
import {
  given, isObject, leave, leaveStrangers, malformed, NO_TOOL_LEFT, objectsIn, stringIn, thinkingKwargs, typeName, untranslatable,
  type Json
} from '../over-chat/ref.js'
import { chatMessages } from './chat-messages.js'

export interface ChatRequest {
  /** A chat completion request. */
  readonly body: Readonly<Record<string, unknown>>
  readonly stream: boolean
  /** What was left out and changes nothing that the model is told, for people. */
  readonly warnings: readonly string[]
}

/** Keys that are said in another way, or mean nothing to an engine. Any other key passes as it is. */
const ownKeys: ReadonlySet<string> = new Set([
  'model', 'messages', 'system', 'max_tokens', 'stop_sequences', 'stream', 'tools', 'tool_choice', 'thinking', 'output_config',
  'output_format', 'metadata', 'service_tier', 'cache_control', 'betas', 'inference_geo', 'context_management', 'container',
  'mcp_servers', 'fallbacks'
])
const toolKeys: ReadonlySet<string> = new Set([
  'type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'eager_input_streaming',
  // every tool is the model's from the beginning here
  'defer_loading'
])
/** Members of the request that are objects of the API's own, and what is known in each. */
const memberKeys: ReadonlyArray<readonly [member: string, known: ReadonlySet<string>]> = Object.entries({
  output_config: ['effort', 'format'],
  thinking: ['type', 'budget_tokens'],
  metadata: ['user_id'],
  tool_choice: ['type', 'name', 'disable_parallel_tool_use']
}).map(([member, keys]) => [member, new Set(keys)])
const formatKeys: ReadonlySet<string> = new Set(['type', 'schema'])
/** Tools that the maker of the Messages API runs on its own servers. */
const SERVER_TOOL = /^(web_search|web_fetch|code_execution|tool_search_tool)(_|$)/

/** Efforts beyond those that chat completions know. */
const efforts: ReadonlyMap<string, string> = new Map([['xhigh', 'high'], ['max', 'high']])

/**
 * A request of the Messages API in the words of chat completions. Throws `validation.invalid` for what they have no words for.
 * @param slot that will serve it; null for an upstream
 */
export function chatRequest (asked: Json, slot: NamedSlotConfig | null): ChatRequest {
  const warnings = leftOut(asked)
  const { max_tokens: limit, stop_sequences: stops, output_config: output, metadata } = asked
  refuseMembers(asked)
  for (const [member, known] of memberKeys) {
    const said = asked[member]
    if (isObject(said)) leaveStrangers(said, known, member, warnings)
  }
  const messages = chatMessages(asked, slot !== null, warnings)
  const tools = asked.tools == null ? [] : functionTools(asked.tools, warnings)
  const stream = asked.stream === true
  return {
    body: given({
      ...Object.fromEntries(Object.entries(asked).filter(([key]) => !ownKeys.has(key))),
      model: asked.model,
      messages,
      max_tokens: limit,
      stop: Array.isArray(stops) && stops.length === 0 ? null : stops,
      user: isObject(metadata) ? metadata.user_id : null,
      tools: tools.length === 0 ? null : tools,
      ...toolChoice(asked.tool_choice, tools.length, warnings),
      response_format: isObject(output) && output.format != null
        ? responseFormat(output.format, 'output_config.format', warnings)
        : responseFormat(asked.output_format, 'output_format', warnings),
      ...reasoning(asked, slot, warnings),
      ...stream ? { stream, stream_options: { include_usage: true } } : {}
    }),
    stream,
    warnings
  }
}

/** What no engine has a use for, and changes nothing that the model is told. */
function leftOut (asked: Json): string[] {
  const { service_tier: tier, context_management: management } = asked
  const [effort, told] = [effortIn(asked), toldEffort(asked)]
  return [
    ...tier == null || tier === 'auto' ? [] : ['service_tier: left out, there are no tiers here'],
    ...told === effort ? [] : [`output_config.effort: '${effort}' is sent as '${told}', chat completions support no more`],
    ...management == null || clearsNothing(management) ? [] : ['context_management: left out, the context is not edited here']
  ]
}

/** What claude-code sends with each request: it keeps all thoughts. */
function clearsNothing (management: unknown): boolean {
  if (!isObject(management) || Object.keys(management).some(key => key !== 'edits') || !Array.isArray(management.edits)) return false
  return management.edits.every(edit => isObject(edit) && edit.type === 'clear_thinking_20251015' && edit.keep === 'all')
}

function refuseMembers ({ mcp_servers: servers, container, inference_geo: geo, fallbacks }: Json): void {
  if (Array.isArray(servers) && servers.length > 0) throw untranslatable('mcp_servers', 'a tool server called by the model\'s provider')
  if (container != null) throw untranslatable('container', 'a container at the model\'s provider')
  if (geo != null && geo !== 'global') throw untranslatable('inference_geo', 'a region for the model to run in')
  if (Array.isArray(fallbacks) ? fallbacks.length > 0 : fallbacks != null) throw untranslatable('fallbacks', 'a fallback model for refusals')
}

function functionTools (asked: unknown, warnings: string[]): object[] {
  return objectsIn(asked, 'tools').flatMap((tool, i) => {
    const { type = 'custom', name, description, input_schema: parameters, strict } = tool
    if (typeof type === 'string' && SERVER_TOOL.test(type)) {
      warnings.push(`tools.${i}: '${type}' was left out, the gateway cannot run it`)
      return []
    }
    if (type !== 'custom' && type !== null && parameters === undefined) throw untranslatable(`tools.${i}`, `a tool of type ${typeName(type)}`)
    leaveStrangers(tool, toolKeys, 'tools.*', warnings)
    return [{ type: 'function', function: given({ name: stringIn(name, `tools.${i}.name`), description, parameters, strict }) }]
  })
}

function toolChoice (choice: unknown, tools: number, warnings: string[]): object {
  if (choice == null) return {}
  if (!isObject(choice)) throw malformed('tool_choice', 'must be an object')
  if (tools === 0) {
    if (choice.type === 'any' || choice.type === 'tool') leave(warnings, NO_TOOL_LEFT)
    return {}
  }
  const parallel = choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}
  switch (choice.type) {
    case 'auto': return { tool_choice: 'auto', ...parallel }
    case 'any': return { tool_choice: 'required', ...parallel }
    case 'none': return { tool_choice: 'none' }
    case 'tool': return { tool_choice: { type: 'function', function: { name: choice.name } }, ...parallel }
    default: throw malformed('tool_choice.type', 'must be auto, any, none or tool')
  }
}

function responseFormat (format: unknown, at: string, warnings: string[]): object | null {
  if (format == null) return null
  if (!isObject(format) || format.type !== 'json_schema') throw untranslatable(at, 'a format other than json_schema')
  leaveStrangers(format, formatKeys, at, warnings)
  return { type: 'json_schema', json_schema: { name: 'answer', schema: format.schema, strict: true } }
}

function effortIn ({ output_config: output }: Json): string | null {
  return isObject(output) && typeof output.effort === 'string' ? output.effort : null
}

function toldEffort (asked: Json): string | null {
  const effort = effortIn(asked)
  return effort === null ? null : efforts.get(effort) ?? effort
}

/** A slot's template knows reasoning as on or off; others know how much. */
function reasoning (body: Json, slot: NamedSlotConfig | null, warnings: string[]): object {
  const { thinking } = body
  const asked = toldEffort(body)
  const kind = thinkingKind(thinking)
  const effort = kind === 'disabled' ? null : asked ?? (isObject(thinking) && kind === 'enabled' ? effortOf(thinking.budget_tokens) : null)
  if (slot === null) {
    if (kind === 'disabled') leave(warnings, 'thinking: left out, chat completions cannot turn thinking off')
    return { reasoning_effort: effort }
  }
  const isOn = kind === 'disabled' ? false : kind === 'enabled' || kind === 'adaptive' ? true : slot.enable_thinking
  const budget = isObject(thinking) && kind === 'enabled' ? thinking.budget_tokens : null
  return {
    ...asked === null || kind === 'disabled' ? {} : { reasoning_effort: asked },
    // what llama-server calls it
    ...typeof budget === 'number' ? { thinking_budget_tokens: budget } : {},
    ...thinkingKwargs(isOn, body.chat_template_kwargs)
  }
}

function thinkingKind (thinking: unknown): 'enabled' | 'disabled' | 'adaptive' | null {
  if (thinking == null) return null
  const kind = isObject(thinking) ? thinking.type : null
  if (kind === 'enabled' || kind === 'disabled' || kind === 'adaptive') return kind
  throw malformed('thinking.type', 'must be enabled, disabled or adaptive')
}

function effortOf (budget: unknown): string {
  if (typeof budget !== 'number') return 'medium'
  return budget < 4096 ? 'low' : budget < 16_384 ? 'medium' : 'high'
}
