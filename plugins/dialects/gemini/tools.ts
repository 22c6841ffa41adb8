import { given, isObject, leave, leaveStrangers, malformed, MOST_WARNINGS, objectsIn, stringIn, type Json } from '../../v1/over-chat/ref.js'
import { camelCase, member } from './members.js'
import { jsonSchemaOf } from './schema.js'

const unsaid = ['response', 'responseJsonSchema', 'behavior'] as const
const declarationKeys: ReadonlySet<string> = new Set([...unsaid, 'name', 'description', 'parameters', 'parametersJsonSchema'])

/** The last is about calls of tools that are left out anyway. */
const configKeys: ReadonlySet<string> = new Set(['functionCallingConfig', 'retrievalConfig', 'includeServerSideToolInvocations'])
const callingKeys: ReadonlySet<string> = new Set(['mode', 'allowedFunctionNames'])

interface FunctionTool {
  readonly type: 'function'
  readonly function: { readonly name: string, readonly [key: string]: unknown }
}

/**
 * `tools` and `toolConfig` of a request as chat has them. Tools that the API's maker would run are left out, which goes into
 * `warnings`. Throws `validation.invalid`. Pure.
 * @param asked with its members as the documents name them
 */
export function toolsOf (asked: Json, warnings: string[]): object {
  const all = asked.tools == null ? [] : objectsIn(asked.tools, 'tools').flatMap((tool, i) => functionsOf(tool, `tools.${i}`, warnings))
  const config = asked.toolConfig ?? null
  if (isObject(config)) {
    if (member(config, 'retrievalConfig') !== null) leave(warnings, 'toolConfig.retrievalConfig: left out, retrieval is not supported here')
    leaveStrangers(config, configKeys, 'toolConfig', warnings, camelCase)
  }
  const { mode, names } = choiceOf(config, warnings)
  const tools = names === null ? all : all.filter(({ function: { name } }) => names.has(name))
  if (tools.length === 0) {
    if (mode === 'ANY') leave(warnings, `${CALLING}: left out, there is no function to call`)
    return {}
  }
  return { tools, ...choice(mode, tools) }
}

function choice (mode: string | null, tools: readonly FunctionTool[]): object {
  switch (mode) {
    case null: return {}
    case 'NONE': return { tool_choice: 'none' }
    case 'ANY': return { tool_choice: tools.length === 1 ? { type: 'function', function: { name: tools[0]!.function.name } } : 'required' }
    default: return { tool_choice: 'auto' }
  }
}

const CALLING = 'toolConfig.functionCallingConfig'
const modes: ReadonlySet<unknown> = new Set(['AUTO', 'ANY', 'NONE', 'VALIDATED', 'MODE_UNSPECIFIED'])

function choiceOf (
  config: unknown, warnings: string[]
): { readonly mode: string | null, readonly names: ReadonlySet<unknown> | null } {
  const calling = isObject(config) ? member(config, 'functionCallingConfig') : null
  if (!isObject(calling)) return { mode: null, names: null }
  leaveStrangers(calling, callingKeys, CALLING, warnings, camelCase)
  const mode = typeof calling.mode === 'string' ? calling.mode.toUpperCase() : 'MODE_UNSPECIFIED'
  if (!modes.has(mode)) throw malformed(`${CALLING}.mode`, 'must be AUTO, ANY, NONE or VALIDATED')
  const names = member(calling, 'allowedFunctionNames')
  const areNamed = Array.isArray(names) && names.length > 0
  const isHeld = mode === 'ANY' || mode === 'VALIDATED'
  if (areNamed && !isHeld) leave(warnings, `${CALLING}.allowedFunctionNames: left out, they are for the modes ANY and VALIDATED`)
  return { mode: mode === 'MODE_UNSPECIFIED' ? null : mode, names: areNamed && isHeld ? new Set(names) : null }
}

function functionsOf (tool: Json, at: string, warnings: string[]): FunctionTool[] {
  const declared = member(tool, 'functionDeclarations')
  const others = Object.keys(tool).filter(key => !/^function_?declarations$/i.test(key) && tool[key] !== null)
  for (const key of others.slice(0, Math.max(MOST_WARNINGS - warnings.length, 0))) {
    warnings.push(`${at}: '${key.slice(0, 64)}' was left out, the gateway cannot run it`)
  }
  if (declared === null) return []
  return objectsIn(declared, `${at}.functionDeclarations`).map((one, i) => {
    const place = `${at}.functionDeclarations.${i}`
    const schema = member(one, 'parametersJsonSchema')
    const parameters = schema ?? (one.parameters == null ? null : jsonSchemaOf(one.parameters, `${place}.parameters`))
    const name = stringIn(one.name, `${place}.name`)
    if (schema !== null && one.parameters != null) {
      leave(warnings, 'tools.*.functionDeclarations.*.parameters: left out, parametersJsonSchema replaces it')
    }
    leaveStrangers(one, declarationKeys, 'tools.*.functionDeclarations.*', warnings, camelCase)
    for (const key of unsaid) {
      if (member(one, key) !== null) leave(warnings, `tools.*.functionDeclarations.*.${key}: left out, chat completions have no such field`)
    }
    return { type: 'function', function: { ...given({ description: one.description, parameters }), name } }
  })
}
