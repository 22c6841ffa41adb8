import type { NamedSlotConfig } from 'svc-gateway/plugin'
import { given, isObject, leave, leaveStrangers, malformed, MOST_WARNINGS, untranslatable, type Json } from '../../v1/over-chat/ref.js'
import { chatMessages } from './contents.js'
import { camelCase, named } from './members.js'
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
export function chatRequest (written: Json, model: string, slot: NamedSlotConfig | null, stream: boolean): ChatRequest {
  const warnings: string[] = []
  const asked = named(written)
  if (asked.cachedContent != null) throw untranslatable('cachedContent', 'a cache at the model\'s provider')
  if (asked.safetySettings != null) warnings.push('safetySettings: left out, the gateway does not filter answers')
  tellStrangers(written, known, '', warnings)
  const set = asked.generationConfig ?? {}
  if (!isObject(set)) throw malformed('generationConfig', 'must be an object')
  tellStrangers(set, settings, 'generationConfig.', warnings)
  const config = named(set)
  refuseForms(config)
  const thought = config.thinkingConfig ?? null
  if (thought !== null && !isObject(thought)) throw malformed('generationConfig.thinkingConfig', 'must be an object')
  if (thought !== null) leaveStrangers(thought, thinkingKeys, 'generationConfig.thinkingConfig', warnings, camelCase)
  const thinking = thought === null ? null : named(thought)
  const topK = config.topK ?? null
  // upstreams that do not know it refuse every request with it
  if (topK !== null && topK !== USUAL_TOP_K && slot === null) warnings.push('generationConfig.topK: left out, chat completions have no such field and upstreams may refuse it')
  return {
    body: given({
      model,
      messages: chatMessages(asked, slot !== null, warnings),
      ...toolsOf(asked, warnings),
      temperature: config.temperature,
      top_p: config.topP,
      top_k: slot === null ? null : topK,
      max_tokens: config.maxOutputTokens,
      stop: stopsOf(config.stopSequences),
      seed: config.seed,
      presence_penalty: config.presencePenalty,
      frequency_penalty: config.frequencyPenalty,
      response_format: responseFormat(config, warnings),
      ...logprobs(config, warnings),
      ...reasoning(thinking, slot, warnings),
      ...stream ? { stream, stream_options: { include_usage: true } } : {}
    }),
    showsThoughts: thinking?.includeThoughts === true,
    warnings
  }
}

/** What of a message is not known here, for people. */
function tellStrangers (message: Json, names: ReadonlySet<string>, at: string, warnings: string[]): void {
  let told = 0
  for (const key of Object.keys(message)) {
    if (names.has(camelCase(key)) || message[key] === null) continue
    if (told++ === MOST_WARNINGS) return
    warnings.push(`${at}${key.slice(0, 64)}: not known here and left out`)
  }
}

function refuseForms (config: Json): void {
  const { candidateCount: count, responseModalities: modalities, speechConfig: speech, imageConfig: image } = config
  if (typeof count === 'number' && count > 1) throw untranslatable('generationConfig.candidateCount', 'more than one candidate')
  if (Array.isArray(modalities) && modalities.some(one => typeof one !== 'string' || one.toUpperCase() !== 'TEXT')) {
    throw untranslatable('generationConfig.responseModalities', 'an answer that is not text')
  }
  if (speech != null) throw untranslatable('generationConfig.speechConfig', 'an answer that is not text')
  if (image != null) throw untranslatable('generationConfig.imageConfig', 'an answer that is not text')
}

function stopsOf (stops: unknown): unknown {
  return Array.isArray(stops) && stops.length === 0 ? null : stops
}

function logprobs (config: Json, warnings: string[]): object {
  if (config.responseLogprobs === true) return { logprobs: true, top_logprobs: config.logprobs }
  if (config.logprobs != null) leave(warnings, 'generationConfig.logprobs: left out, it needs responseLogprobs')
  return {}
}

function responseFormat (config: Json, warnings: string[]): object | null {
  const type = config.responseMimeType ?? 'text/plain'
  const schema = config.responseJsonSchema ?? config._responseJsonSchema ?? null
  const own = config.responseSchema ?? null
  if (type === 'text/plain') {
    if (schema !== null || own !== null) throw malformed('generationConfig.responseMimeType', 'must be application/json where a schema is given')
    return null
  }
  if (schema !== null && own !== null) leave(warnings, 'generationConfig.responseSchema: left out, responseJsonSchema replaces it')
  if (type !== 'application/json') throw untranslatable('generationConfig.responseMimeType', 'a form other than text/plain and application/json')
  const wanted = schema ?? (own === null ? null : jsonSchemaOf(own, 'generationConfig.responseSchema'))
  return wanted === null ? { type: 'json_object' } : { type: 'json_schema', json_schema: { name: 'answer', schema: wanted, strict: true } }
}

/** A slot's template knows reasoning as on or off; others know how much. */
function reasoning (config: Json | null, slot: NamedSlotConfig | null, warnings: string[]): object {
  const effort = config === null ? null : effortOf(config)
  if (slot === null) {
    if (effort === 'off') leave(warnings, 'generationConfig.thinkingConfig.thinkingBudget: left out, chat completions cannot turn thinking off')
    return effort === null || effort === 'off' ? {} : { reasoning_effort: effort }
  }
  const isOn = effort === null ? slot.enable_thinking : effort !== 'off'
  const { thinkingLevel: level, thinkingBudget: budget } = config ?? {}
  return {
    ...isOn === null ? {} : { chat_template_kwargs: { enable_thinking: isOn } },
    ...typeof level === 'string' && effort !== null && effort !== 'off' ? { reasoning_effort: effort } : {},
    ...typeof level !== 'string' && typeof budget === 'number' && budget > 0 ? { thinking_budget_tokens: budget } : {}
  }
}

/** Null where nothing is said. */
function effortOf (config: Json): 'off' | 'low' | 'medium' | 'high' | null {
  const { thinkingLevel: level, thinkingBudget: budget } = config
  if (typeof level === 'string') {
    switch (level.toUpperCase()) {
      case 'MINIMAL': case 'LOW': return 'low'
      case 'MEDIUM': return 'medium'
      case 'HIGH': return 'high'
      case 'THINKING_LEVEL_UNSPECIFIED': break
      default: throw malformed('generationConfig.thinkingConfig.thinkingLevel', 'must be MINIMAL, LOW, MEDIUM or HIGH')
    }
  }
  if (typeof budget !== 'number') return null
  if (budget === 0) return 'off'
  return budget < 0 ? 'medium' : budget < 4096 ? 'low' : budget < 16_384 ? 'medium' : 'high'
}
