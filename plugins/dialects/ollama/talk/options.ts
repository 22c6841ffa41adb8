import { isObject, malformed, MOST_WARNINGS, type Json } from '../../../v1/over-chat/ref.js'
import type { Server } from './server.js'

/** What chat completions call the same. */
const passed = ['temperature', 'top_p', 'top_k', 'min_p', 'seed', 'stop', 'presence_penalty', 'frequency_penalty'] as const
/** What engines of slots know by the same name, and no upstream does. */
const ofEngines = ['repeat_penalty', 'repeat_last_n', 'typical_p', 'mirostat', 'mirostat_tau', 'mirostat_eta'] as const
const taken: ReadonlySet<string> = new Set([...passed, ...ofEngines, 'num_predict', 'num_ctx'])

/**
 * `options` of a request, by their names in chat completions. What is said once, when an engine starts, and whatever else is not
 * known goes into `warnings`. Throws `validation.invalid`. Pure.
 */
export function engineOptions (options: unknown, server: Pick<Server, 'slot' | 'context'>, warnings: string[]): Json {
  if (options === undefined || options === null) return {}
  if (!isObject(options)) throw malformed('options', 'must be an object')
  for (const key of Object.keys(options).filter(key => !taken.has(key)).slice(0, MOST_WARNINGS)) {
    warnings.push(`options.${key.slice(0, 64)}: left out, the file of the slot defines how its engine starts`)
  }
  const { num_predict: limit, num_ctx: asked } = options
  if (typeof asked === 'number') tellContext(asked, server.context, warnings)
  const isSlot = server.slot !== null
  const own = ofEngines.filter(key => options[key] != null)
  if (!isSlot) for (const key of own) warnings.push(`options.${key}: left out, the API of the upstream has no such option`)
  return {
    ...Object.fromEntries([...passed, ...isSlot ? own : []].map(key => [key, options[key]])),
    // 0 and less are no limit
    max_tokens: typeof limit === 'number' && limit > 0 ? Math.floor(limit) : null
  }
}

function tellContext (asked: number, context: number | null, warnings: string[]): void {
  if (asked === context) return
  warnings.push(context === null
    ? 'options.num_ctx: left out, the upstream decides the context of its model'
    : `options.num_ctx: left out, the slot has ${context} tokens; \`svc slot edit\` changes its context_size`)
}

/** `format` as chat completions have it: "json", or a schema. Throws `validation.invalid`. Pure. */
export function responseFormat (format: unknown): object | null {
  if (format === undefined || format === null || format === '') return null
  if (format === 'json') return { type: 'json_object' }
  if (isObject(format)) return { type: 'json_schema', json_schema: { name: 'answer', schema: format, strict: true } }
  throw malformed('format', 'must be "json" or a JSON schema')
}
