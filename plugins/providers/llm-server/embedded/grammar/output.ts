import type { ChatBody, GenerationBody } from '../requests.js'
import { badRequest } from '../wire-error.js'
import { Gbnf, literal } from './gbnf.js'
import { SchemaRules } from './json-schema.js'

export interface ForcedTool {
  readonly name: string
  readonly parameters: unknown
}

/** Grammar of the whole answer; null when it may be anything. Throws a `WireError` for a schema that has none. */
export function answerGrammar (body: GenerationBody): string | null {
  const format = body.response_format
  const asked = [
    body.grammar === undefined || body.grammar === null ? null : () => body.grammar!,
    body.json_schema === undefined || body.json_schema === null ? null : () => schemaGrammar(body.json_schema),
    format?.type === 'json_object' ? () => schemaGrammar(format.schema ?? { type: 'object' }) : null,
    format?.type === 'json_schema' ? () => schemaGrammar(format.json_schema.schema ?? { type: 'object' }) : null
  ].filter(grammar => grammar !== null)
  if (asked.length > 1) throw badRequest('Only one of grammar, json_schema and response_format can shape an answer')
  return asked[0]?.() ?? null
}

function schemaGrammar (schema: unknown): string {
  const gbnf = new Gbnf()
  return gbnf.text(new SchemaRules(gbnf, schema).of(schema))
}

/** Tools of which the answer has to call one; null when it need not. Throws a `WireError` for a choice that cannot be met. */
export function forcedTools ({ tool_choice: choice, tools }: ChatBody): readonly ForcedTool[] | null {
  if (choice === null || choice === undefined || choice === 'auto' || choice === 'none') return null
  const all = (tools ?? []).map(tool => ({ name: tool.function.name, parameters: tool.function.parameters ?? { type: 'object' } }))
  const allowed = choice === 'required' ? all : all.filter(tool => tool.name === choice.function.name)
  if (allowed.length > 0) return allowed
  throw badRequest(choice === 'required' ? 'Field \'tool_choice\': is required without any tools' : `Field 'tool_choice': no tool is called '${choice.function.name}'`)
}

/** What stands before the arguments of a call, which end with the answer's last character. */
export function callOpening (name: string): string {
  return `{"name": ${JSON.stringify(name)}, "arguments": `
}

/** One call of one of the tools, with arguments as their schemas want them. */
export function callGrammar (tools: readonly ForcedTool[]): string {
  const gbnf = new Gbnf()
  const calls = tools.map(({ name, parameters }) => `${literal(callOpening(name))} ${new SchemaRules(gbnf, parameters).of(parameters)} "}"`)
  return gbnf.text(calls.join(' | '))
}
