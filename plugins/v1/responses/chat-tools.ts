import { createHash } from 'node:crypto'
import { given, isObject, leave, leaveStrangers, malformed, NO_TOOL_LEFT, objectsIn, stringIn, textOr, typeName, untranslatable, type Json } from '../over-chat/ref.js'

/** A tool as the client knows it. */
export interface ClientTool {
  readonly name: string
  /** Of a tool that stands in a group. */
  readonly namespace: string | null
  /** Its input is a text of its own and no JSON. */
  readonly isCustom: boolean
}

const LONGEST_NAME = 64
/** Of a longer one, in front of a part of its hash. */
const LONGEST_KEPT = LONGEST_NAME - 9
/** Tools that the maker of the Responses API runs on its own servers, and that an answer can do without. */
const SERVER_TOOL = /^(web_search|image_generation|tool_search)/
const toolKeys: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  // every tool is the model's from the beginning here, also one that is to be loaded later
  ['function', new Set(['type', 'name', 'description', 'parameters', 'strict', 'defer_loading'])],
  ['custom', new Set(['type', 'name', 'description', 'format', 'defer_loading'])],
  ['namespace', new Set(['type', 'name', 'description', 'tools'])]
])
const grammarKeys: ReadonlySet<string> = new Set(['type', 'syntax', 'definition'])
const choiceKeys: ReadonlySet<string> = new Set(['type', 'name', 'namespace'])
const allowedKeys: ReadonlySet<string> = new Set(['type', 'mode', 'tools'])
const INPUT = {
  type: 'object', properties: { input: { type: 'string' } }, required: ['input'], additionalProperties: false
}

/** Tools of a request of the Responses API as functions of chat, whose names are flat, and back. */
export class ChatTools {
  readonly functions: object[] = []
  /** What is said of groups of tools, in words for the model; empty without any. */
  get groups (): string {
    return this.#groups.join('\n\n')
  }

  readonly #groups: string[] = []
  readonly #warnings: string[]
  readonly #known = new Map<string, ClientTool>()

  /** Throws `validation.invalid` for tools that chat has no words for. */
  constructor (asked: unknown, warnings: string[]) {
    this.#warnings = warnings
    for (const [i, tool] of (asked == null ? [] : objectsIn(asked, 'tools')).entries()) this.#add(tool, `tools.${i}`, null)
  }

  /** What the model's name of a tool stands for; a name that none has is told as it is. */
  meant (name: string): ClientTool {
    return this.#known.get(name) ?? { name, namespace: null, isCustom: false }
  }

  /** Throws `validation.invalid`. */
  choice (asked: unknown): object {
    if (asked == null) return {}
    if (typeof asked !== 'string' && !isObject(asked)) throw malformed('tool_choice', 'must be a string or an object')
    if (this.functions.length === 0) {
      if (asked === 'required' || (isObject(asked) && (asked.type !== 'allowed_tools' || asked.mode === 'required'))) leave(this.#warnings, NO_TOOL_LEFT)
      return {}
    }
    if (typeof asked === 'string') return { tool_choice: asked }
    if (asked.type === 'allowed_tools') {
      leaveStrangers(asked, allowedKeys, 'tool_choice', this.#warnings)
      const names = new Set(objectsIn(asked.tools, 'tool_choice.tools').map(tool => this.#nameOf(tool, 'tool_choice.tools')))
      const kept = this.functions.filter(tool => names.has((tool as { function: { name: string } }).function.name))
      return { tool_choice: asked.mode ?? 'auto', tools: kept }
    }
    leaveStrangers(asked, choiceKeys, 'tool_choice', this.#warnings)
    return { tool_choice: { type: 'function', function: { name: this.#nameOf(asked, 'tool_choice') } } }
  }

  #nameOf ({ type, name, namespace }: Json, at: string): string {
    if (type !== 'function' && type !== 'custom') throw untranslatable(at, `a tool of type ${typeName(type)}`)
    return flatName(stringIn(name, `${at}.name`), typeof namespace === 'string' ? namespace : null)
  }

  #add (tool: Json, at: string, namespace: string | null): void {
    const { type = 'function', name, description, parameters, strict, format } = tool
    const known = toolKeys.get(type)
    if (known !== undefined) leaveStrangers(tool, known, namespace === null ? 'tools.*' : 'tools.*.tools.*', this.#warnings)
    switch (type) {
      case 'function': return this.#put(stringIn(name, `${at}.name`), namespace, false, { description, parameters, strict })
      case 'custom': {
        if (isObject(format)) leaveStrangers(format, grammarKeys, 'tools.*.format', this.#warnings)
        const about = { description: withFormat(description, format), parameters: INPUT }
        return this.#put(stringIn(name, `${at}.name`), namespace, true, about)
      }
      case 'namespace': {
        const group = stringIn(name, `${at}.name`)
        const inner = objectsIn(tool.tools, `${at}.tools`)
        const about = textOr(description, '')
        if (about !== '' && inner.length > 0) this.#groups.push(`Of the tools whose names begin with \`${groupedUnder(group).slice(0, LONGEST_KEPT)}\`: ${about}`)
        for (const [i, one] of inner.entries()) this.#add(one, `${at}.tools.${i}`, group)
        return
      }
      default: {
        if (typeof type !== 'string' || !SERVER_TOOL.test(type)) throw untranslatable(at, `a tool of type ${typeName(type)}`)
        this.#warnings.push(`${at}: '${type}' was left out, the gateway cannot run it`)
      }
    }
  }

  #put (name: string, namespace: string | null, isCustom: boolean, about: Json): void {
    const flat = flatName(name, namespace)
    this.#known.set(flat, { name, namespace, isCustom })
    this.functions.push({ type: 'function', function: { name: flat, ...given(about) } })
  }
}

/** The name of a tool in a group where there are no groups; one that is too long for chat ends in a part of its hash. Pure. */
export function flatName (name: string, namespace: string | null): string {
  if (namespace === null || namespace === '') return name
  const flat = groupedUnder(namespace) + name
  if (flat.length <= LONGEST_NAME) return flat
  return `${flat.slice(0, LONGEST_KEPT)}_${createHash('sha256').update(flat).digest('hex').slice(0, 8)}`
}

function groupedUnder (namespace: string): string {
  return namespace.endsWith('__') ? namespace : `${namespace}__`
}

/** A grammar is the engine's to hold in the Responses API; here the model is told. */
function withFormat (description: unknown, format: unknown): unknown {
  if (!isObject(format) || format.type !== 'grammar') return description
  const { syntax, definition } = format
  return `${typeof description === 'string' ? `${description}\n\n` : ''}The input must follow this ${textOr(syntax, '')} grammar:\n${textOr(definition, '')}`
}
