import type { NamedSlotConfig } from 'svc-gateway/plugin'
import { given, malformed, objectsIn, textOr, untranslatable, type Json } from '../../../v1/over-chat/ref.js'
import { isStream, NOT_CUT, unknownKeys } from '../body.js'
import { chatMessages, withPictures } from './messages.js'
import { engineOptions, responseFormat } from './options.js'
import type { Server } from './server.js'

/** A request in the words of `/v1`. */
export interface Wanted {
  readonly body: Readonly<Record<string, unknown>>
  /** `fim` is a completion of the older kind with a `suffix`. */
  readonly to: 'chat' | 'completions' | 'fim'
  /** Nothing is asked: the model is to be loaded, or unloaded. */
  readonly isEmpty: boolean
  readonly stream: boolean
  /** What was left out, for people. */
  readonly warnings: readonly string[]
}

const shared = ['model', 'name', 'stream', 'format', 'options', 'keep_alive', 'think', 'truncate', 'shift', 'logprobs', 'top_logprobs']
const chatKeys: ReadonlySet<string> = new Set([...shared, 'messages', 'tools'])
const generateKeys: ReadonlySet<string> = new Set([...shared, 'prompt', 'suffix', 'system', 'template', 'context', 'raw', 'images'])
const efforts: ReadonlySet<unknown> = new Set(['low', 'medium', 'high'])

/** A body of `/api/chat`. Throws `validation.invalid`. Pure. */
export function chatRequest (asked: Json, server: Server): Wanted {
  const warnings = unknownKeys(asked, chatKeys)
  const messages = asked.messages == null ? [] : chatMessages(asked.messages, server.slot !== null, warnings)
  const tools = asked.tools == null ? [] : objectsIn(asked.tools, 'tools')
  return {
    to: 'chat',
    isEmpty: messages.length === 0,
    stream: isStream(asked),
    body: chatBody(asked, server, messages, tools, warnings),
    warnings
  }
}

/** A body of `/api/generate`. Throws `validation.invalid`. Pure. */
export function generateRequest (asked: Json, server: Server): Wanted {
  const warnings = unknownKeys(asked, generateKeys)
  const { prompt, suffix, system, images, raw, template, context } = asked
  if (prompt != null && typeof prompt !== 'string') throw malformed('prompt', 'must be a string')
  const text = textOr(prompt, '')
  if (textOr(template, '') !== '') throw untranslatable('template', 'a template of the request; the engine uses the one of its model, and with raw: true none')
  if (Array.isArray(context) && context.length > 0) throw untranslatable('context', 'the tokens of an earlier answer; send the conversation to /api/chat')
  const isInsert = textOr(suffix, '') !== ''
  if (isInsert && !server.inserts) throw malformed('suffix', `cannot be used: ${server.model} does not support insert`)
  const stream = isStream(asked)
  const isEmpty = text === '' && textOr(system, '') === '' && (!Array.isArray(images) || images.length === 0)
  if (raw === true || isInsert) {
    if (Array.isArray(images) && images.length > 0) throw untranslatable('images', 'a picture beside a raw prompt')
    return { to: isInsert ? 'fim' : 'completions', isEmpty, stream, body: rawBody(asked, server, text, warnings), warnings }
  }
  const said = [
    ...textOr(system, '') === '' ? [] : [{ role: 'system', content: system }],
    { role: 'user', content: withPictures(text, images, 'images') }
  ]
  return { to: 'chat', isEmpty, stream, body: chatBody(asked, server, said, [], warnings), warnings }
}

function chatBody (asked: Json, server: Server, messages: readonly object[], tools: readonly object[], warnings: string[]): Wanted['body'] {
  return given({
    model: server.model,
    messages,
    tools: tools.length === 0 ? null : tools,
    response_format: responseFormat(asked.format),
    ...reasoning(asked.think, server.slot, warnings),
    ...common(asked, server, warnings)
  })
}

function rawBody (asked: Json, server: Server, prompt: string, warnings: string[]): Wanted['body'] {
  const suffix = textOr(asked.suffix, '')
  if (textOr(asked.system, '') !== '') warnings.push('system: left out, a raw prompt has no other messages')
  if (asked.think != null) warnings.push('think: left out, a raw prompt goes through no template')
  return given({
    model: server.model, prompt, suffix: suffix === '' ? null : suffix, ...rawFormat(asked.format, server.slot), ...common(asked, server, warnings)
  })
}

/** Engines of slots read the form of a completion as a schema alone. */
function rawFormat (format: unknown, slot: NamedSlotConfig | null): Json {
  const asked = responseFormat(format)
  if (asked == null || slot === null) return { response_format: asked }
  return { json_schema: format === 'json' ? { type: 'object' } : format }
}

function common (asked: Json, server: Server, warnings: string[]): Json {
  if (asked.truncate === true) warnings.push(NOT_CUT)
  if (asked.shift === true) warnings.push('shift: left out, an answer ends where the context of the model does')
  return {
    ...engineOptions(asked.options, server, warnings),
    ...asked.logprobs === true ? { logprobs: true, top_logprobs: asked.top_logprobs } : {},
    ...isStream(asked) ? { stream: true, stream_options: { include_usage: true } } : {}
  }
}

/** A slot's template knows reasoning as on or off; others know how much. */
function reasoning (think: unknown, slot: NamedSlotConfig | null, warnings: string[]): Json {
  if (think === undefined || think === null) {
    const said = slot?.enable_thinking ?? null
    return said === null ? {} : { chat_template_kwargs: { enable_thinking: said } }
  }
  if (typeof think !== 'boolean' && !efforts.has(think)) throw malformed('think', 'must be true, false, "low", "medium" or "high"')
  if (slot !== null) {
    const effort = typeof think === 'boolean' ? {} : { reasoning_effort: think }
    return { chat_template_kwargs: { enable_thinking: think !== false }, ...effort }
  }
  if (think === false) {
    warnings.push('think: left out, chat completions cannot turn thinking off')
    return {}
  }
  return { reasoning_effort: think === true ? 'medium' : think }
}
