import type { NamedSlotConfig } from 'svc-gateway/plugin'
import { given, isObject, leave, leaveStrangers, malformed, MOST_WARNINGS, untranslatable, type Json } from '../../v1/over-chat/ref.js'
import { chatMessages } from './contents.js'
import { camelCase, member } from './members.js'
import { jsonSchemaOf } from './schema.js'
import { toolsOf } from './tools.js'

/** A request in the words of chat completions. */
export interface ChatRequest {
  readonly body: Readonly<Record<string, unknown>>
  /** Whether the client wants to see what the model thinks. */
  readonly showsThoughts: boolean
  /** What was left out, for people. */
  readonly warnings: readonly string[]
}

const known: ReadonlySet<string> = new Set(['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'safetySettings', 'cachedContent', 'model'])
const settings: ReadonlySet<string> = new Set([
  'temperature', 'topP', 'topK', 'maxOutputTokens', 'stopSequences', 'seed', 'presencePenalty', 'frequencyPenalty', 'candidateCount',
  'responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'responseLogprobs', 'logprobs', 'thinkingConfig',
  'responseModalities', 'speechConfig', 'imageConfig'
])
/** What Google's own models take, and what its clients say with every request. */
const USUAL_TOP_K = 64
const thinkingKeys: ReadonlySet<string> = new Set(['includeThoughts', 'thinkingBudget', 'thinkingLevel'])

/**
 * A body of `generateContent`. Throws `validation.invalid` for what chat completions have no words for. Pure.
 * @param model name under which the gateway knows it
 * @param slot that will serve it; null for an upstream
 */
export function chatRequest (asked: Json, model: string, slot: NamedSlotConfig | null, stream: boolean): ChatRequest {
  const warnings: string[] = []
  if (member(asked, 'cachedContent') !== null) throw untranslatable('cachedContent', 'a cache of the model\'s maker')
  if (member(asked, 'safetySettings') !== null) warnings.push('safetySettings: left out, the gateway does not filter answers')
  warnings.push(...strangers(asked, known, ''))
  const config = member(asked, 'generationConfig') ?? {}
  if (!isObject(config)) throw malformed('generationConfig', 'must be an object')
  warnings.push(...strangers(config, settings, 'generationConfig.'))
  refuseForms(config)
  const thinking = member(config, 'thinkingConfig')
  if (thinking !== null && !isObject(thinking)) throw malformed('generationConfig.thinkingConfig', 'must be an object')
  if (thinking !== null) leaveStrangers(thinking, thinkingKeys, 'generationConfig.thinkingConfig', warnings, camelCase)
  const topK = member(config, 'topK')
  // upstreams that do not know it refuse every request with it
  if (topK !== null && topK !== USUAL_TOP_K && slot === null) warnings.push('generationConfig.topK: left out, chat completions have no such field and upstreams may refuse it')
  return {
    body: given({
      model,
      messages: chatMessages(asked, slot !== null, warnings),
      ...toolsOf(asked, warnings),
      temperature: config.temperature,
      top_p: member(config, 'topP'),
      top_k: slot === null ? null : topK,
      max_tokens: member(config, 'maxOutputTokens'),
      stop: stopsOf(member(config, 'stopSequences')),
      seed: config.seed,
      presence_penalty: member(config, 'presencePenalty'),
      frequency_penalty: member(config, 'frequencyPenalty'),
      response_format: responseFormat(config, warnings),
      ...logprobs(config, warnings),
      ...reasoning(thinking, slot, warnings),
      ...stream ? { stream, stream_options: { include_usage: true } } : {}
    }),
    showsThoughts: thinking !== null && member(thinking, 'includeThoughts') === true,
    warnings
  }
}

/** What of a message is not known here, for people. */
function strangers (message: Json, names: ReadonlySet<string>, at: string): string[] {
  return Object.keys(message).filter(key => !names.has(camelCase(key)) && message[key] !== null).slice(0, MOST_WARNINGS)
    .map(key => `${at}${key.slice(0, 64)}: not known here and left out`)
}

function refuseForms (config: Json): void {
  const count = member(config, 'candidateCount')
  if (typeof count === 'number' && count > 1) throw untranslatable('generationConfig.candidateCount', 'more than one candidate')
  const modalities = member(config, 'responseModalities')
  if (Array.isArray(modalities) && modalities.some(one => typeof one !== 'string' || one.toUpperCase() !== 'TEXT')) {
    throw untranslatable('generationConfig.responseModalities', 'an answer that is not text')
  }
  for (const key of ['speechConfig', 'imageConfig']) {
    if (member(config, key) !== null) throw untranslatable(`generationConfig.${key}`, 'an answer that is not text')
  }
}

function stopsOf (stops: unknown): unknown {
  return Array.isArray(stops) && stops.length === 0 ? null : stops
}

function logprobs (config: Json, warnings: string[]): object {
  if (member(config, 'responseLogprobs') === true) return { logprobs: true, top_logprobs: config.logprobs }
  if (config.logprobs != null) leave(warnings, 'generationConfig.logprobs: left out, it needs responseLogprobs')
  return {}
}

function responseFormat (config: Json, warnings: string[]): object | null {
  const type = member(config, 'responseMimeType') ?? 'text/plain'
  const schema = member(config, 'responseJsonSchema') ?? config._responseJsonSchema ?? null
  const own = member(config, 'responseSchema')
  if (type === 'text/plain') {
    if (schema !== null || own !== null) throw malformed('generationConfig.responseMimeType', 'must be application/json where a schema is given')
    return null
  }
  if (schema !== null && own !== null) leave(warnings, 'generationConfig.responseSchema: left out, responseJsonSchema says it')
  if (type !== 'application/json') throw untranslatable('generationConfig.responseMimeType', 'a form other than text/plain and application/json')
  const wanted = schema ?? (own === null ? null : jsonSchemaOf(own, 'generationConfig.responseSchema'))
  return wanted === null ? { type: 'json_object' } : { type: 'json_schema', json_schema: { name: 'answer', schema: wanted, strict: true } }
}

/** A slot's template knows reasoning as on or off; others know how much. */
function reasoning (config: unknown, slot: NamedSlotConfig | null, warnings: string[]): object {
  const effort = isObject(config) ? effortOf(config) : null
  if (slot === null) {
    if (effort === 'off') leave(warnings, 'generationConfig.thinkingConfig.thinkingBudget: left out, chat completions cannot turn thinking off')
    return effort === null || effort === 'off' ? {} : { reasoning_effort: effort }
  }
  const isOn = effort === null ? slot.enable_thinking : effort !== 'off'
  const [level, budget] = isObject(config) ? [member(config, 'thinkingLevel'), member(config, 'thinkingBudget')] : []
  return {
    ...isOn === null ? {} : { chat_template_kwargs: { enable_thinking: isOn } },
    ...typeof level === 'string' && effort !== null && effort !== 'off' ? { reasoning_effort: effort } : {},
    ...typeof level !== 'string' && typeof budget === 'number' && budget > 0 ? { thinking_budget_tokens: budget } : {}
  }
}

/** Null where nothing is said. */
function effortOf (config: Json): 'off' | 'low' | 'medium' | 'high' | null {
  const level = member(config, 'thinkingLevel')
  if (typeof level === 'string') {
    switch (level.toUpperCase()) {
      case 'MINIMAL': case 'LOW': return 'low'
      case 'MEDIUM': return 'medium'
      case 'HIGH': return 'high'
      case 'THINKING_LEVEL_UNSPECIFIED': break
      default: throw malformed('generationConfig.thinkingConfig.thinkingLevel', 'must be MINIMAL, LOW, MEDIUM or HIGH')
    }
  }
  const budget = member(config, 'thinkingBudget')
  if (typeof budget !== 'number') return null
  if (budget === 0) return 'off'
  return budget < 0 ? 'medium' : budget < 4096 ? 'low' : budget < 16_384 ? 'medium' : 'high'
}
