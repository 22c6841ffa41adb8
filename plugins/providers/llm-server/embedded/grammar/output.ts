import type { ChatBody, GenerationBody } from '../requests.js'
import { badRequest } from '../wire-error.js'
import { z } from 'zod'
import type { thoughtsAfter } from '../chat/template-traits.js'
import type { TagShape, ToolFamily } from '../chat/tool-family.js'
import { kindOf } from '../chat/tool-types.js'
import { Gbnf, inClass, literal } from './gbnf.js'
import { SchemaRules } from './json-schema.js'

type Thoughts = ReturnType<typeof thoughtsAfter>

export interface ForcedTool {
  readonly name: string
  readonly parameters: unknown
}

/** Grammar of the whole answer; null when it may be anything. Throws a `WireError` for a schema that has none. */
export function answerGrammar (body: GenerationBody, thoughts: Thoughts): string | null {
  const format = body.response_format
  const asked = [
    body.grammar === undefined || body.grammar === null ? null : () => body.grammar!,
    body.json_schema === undefined || body.json_schema === null ? null : () => schemaGrammar(body.json_schema, thoughts),
    format?.type === 'json_object' ? () => schemaGrammar(format.schema ?? { type: 'object' }, thoughts) : null,
    format?.type === 'json_schema' ? () => schemaGrammar(format.json_schema.schema ?? { type: 'object' }, thoughts) : null
  ].filter(grammar => grammar !== null)
  if (asked.length > 1) throw badRequest('Only one of grammar, json_schema and response_format can shape an answer')
  return asked[0]?.() ?? null
}

function schemaGrammar (schema: unknown, thoughts: Thoughts): string {
  const gbnf = new Gbnf()
  return gbnf.text(`${thoughtsBefore(gbnf, thoughts)}${new SchemaRules(gbnf, schema).of(schema)}`)
}

/** A model that thinks may do so first: one that is kept from it answers worse. */
function thoughtsBefore (gbnf: Gbnf, thoughts: Thoughts): string {
  if (thoughts === 'none') return ''
  const rest = `${until(gbnf, '</think>')} [ \\n]{0,2} `
  return thoughts === 'open' ? rest : `(${literal('<think>')} ${rest})? `
}

/** Tools of which the answer has to call one; null when it need not. Throws a `WireError` for a choice that cannot be met. */
export function forcedTools ({ tool_choice: choice, tools }: ChatBody): readonly ForcedTool[] | null {
  if (choice === null || choice === undefined || choice === 'auto' || choice === 'none') return null
  const all = (tools ?? []).map(tool => ({ name: tool.function.name, parameters: tool.function.parameters ?? { type: 'object' } }))
  const allowed = choice === 'required' ? all : all.filter(tool => tool.name === choice.function.name)
  if (allowed.length > 0) return allowed
  throw badRequest(choice === 'required' ? 'Field \'tool_choice\': is required without any tools' : `Field 'tool_choice': no tool is called '${choice.function.name}'`)
}

/** Most calls of one forced answer. */
const MOST_CALLS = 16

export interface CallWish {
  readonly family: ToolFamily
  /** More than one call may be made, if the family can. */
  readonly several: boolean
  readonly thoughts: Thoughts
}

/** Calls of the tools as the model's family writes them, with arguments as their schemas want them. */
export function callGrammar (tools: readonly ForcedTool[], { family, several, thoughts }: CallWish): string {
  const gbnf = new Gbnf()
  const { shape } = family
  const call = gbnf.rule(tools.map(({ name, parameters }) => 'beforeValue' in shape
    ? taggedCall(gbnf, name, parameters, shape)
    : `${literal(shape.before(name))} ${new SchemaRules(gbnf, parameters).of(parameters)} ${literal(shape.after)}`).join(' | '))
  const { before = '', between = '', after = '' } = family.several ?? {}
  const more = several && family.several !== null ? ` (${literal(between)} ${call}){0,${MOST_CALLS - 1}}` : ''
  return gbnf.text(`${thoughtsBefore(gbnf, thoughts)}${literal(before)} ${call}${more} ${literal(after)}`)
}

/** Arguments in tags: text as it is, everything else as its schema wants it. */
function taggedCall (gbnf: Gbnf, name: string, parameters: unknown, shape: TagShape): string {
  const { properties, required } = taggedSchema.parse(parameters)
  const needed = new Set(required)
  const rules = new SchemaRules(gbnf, parameters)
  const tags = Object.entries(properties).map(([key, schema]) => {
    const { afterValue } = shape
    const value = kindOf(schema) === 'string' && !isChoice(schema)
      ? until(gbnf, afterValue)
      : `${isChoice(schema) ? choices(schema) : rules.of(schema)} ${literal(afterValue)}`
    const tag = `${literal(shape.beforeValue(key))} ${value} ${literal(shape.between)}`
    return needed.has(key) ? tag : `(${tag})?`
  })
  return `${literal(shape.before(name))} ${tags.join(' ')} ${literal(shape.after)}`
}

const taggedSchema = z.looseObject({
  properties: z.record(z.string(), z.unknown()).catch({}).default({}), required: z.array(z.string()).catch([]).default([])
}).catch({ properties: {}, required: [] })

function isChoice (schema: unknown): schema is { readonly enum: readonly unknown[] } {
  return typeof schema === 'object' && schema !== null && 'enum' in schema && Array.isArray(schema.enum) && schema.enum.length > 0
}

function choices ({ enum: values }: { readonly enum: readonly unknown[] }): string {
  return `(${values.map(value => literal(typeof value === 'string' ? value : JSON.stringify(value))).join(' | ')})`
}

/** Any text up to a word and the word itself. Each rule says how much of it stands at the end of the text so far. */
function until (gbnf: Gbnf, word: string): string {
  const names = [...word].map(() => gbnf.reserve())
  const after = (at: number, char: string): number => {
    const text = word.slice(0, at) + char
    let most = Math.min(text.length, word.length)
    while (!text.endsWith(word.slice(0, most))) most--
    return most
  }
  const letters = [...new Set(word)]
  names.forEach((name, at) => {
    const known = letters.map(char => `${literal(char)} ${names[after(at, char)] ?? ''}`)
    gbnf.define(name, [...known, `[^${letters.map(inClass).join('')}] ${names[0]!}`].join(' | '))
  })
  return names[0]!
}
