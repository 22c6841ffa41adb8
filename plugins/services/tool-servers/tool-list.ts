import type { ToolServer } from 'svc-gateway/plugin'
import type { OfferedTool } from './ref.js'

const MAX_TOOLS = 512
const MAX_SCHEMA_BYTES = 64 * 1024
const MAX_LIST_BYTES = 2 * 1024 * 1024
const MAX_DEPTH = 24
const MAX_DESCRIPTION = 4_000
/** What clients and models take; they put prefixes before it. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/

type Schema = Readonly<Record<string, unknown>>

export interface DroppedTool {
  readonly name: string
  readonly reason: string
}

export interface ToolList {
  readonly tools: readonly OfferedTool[]
  /** What cannot be offered, and why. */
  readonly dropped: readonly DroppedTool[]
}

/**
 * The tools of a server that nothing is known of. One that is unusable costs itself and no other: a single bad schema would
 * otherwise fail every request of a model that is given the list. Pure.
 */
export function readTools (rows: readonly unknown[]): ToolList {
  const tools: OfferedTool[] = []
  const dropped: DroppedTool[] = []
  const names = new Set<string>()
  let bytes = 0
  for (const row of rows) {
    const shown = isObject(row) && typeof row.name === 'string' ? row.name.slice(0, 128) : '(no name)'
    const read = tools.length >= MAX_TOOLS ? `there are more than ${MAX_TOOLS} tools` : readTool(row, names)
    if (typeof read !== 'string') bytes += JSON.stringify(read).length
    const problem = typeof read === 'string' ? read : bytes > MAX_LIST_BYTES ? 'the list of tools is too large' : null
    if (problem !== null) {
      if (dropped.length < MAX_TOOLS) dropped.push({ name: shown, reason: problem })
      continue
    }
    names.add((read as OfferedTool).name)
    tools.push(read as OfferedTool)
  }
  return { tools, dropped }
}

/** Those of a list that a record offers, and whether a call must wait for an approval. Pure. */
export function offered (tools: readonly OfferedTool[], { allow, blocked }: ToolServer['tools']): readonly OfferedTool[] {
  const isNamed = (names: readonly string[], { name, own }: OfferedTool): boolean => names.includes(name) || names.includes(own)
  return tools.filter(tool => !isNamed(blocked, tool) && (allow.length === 0 || isNamed(allow, tool)))
}

export function isGated ({ name, own }: OfferedTool, { gated }: ToolServer['tools']): boolean {
  return gated.includes(name) || gated.includes(own)
}

function readTool (row: unknown, taken: ReadonlySet<string>): OfferedTool | string {
  if (!isObject(row) || typeof row.name !== 'string' || row.name === '') return 'it has no name'
  const input = readSchema(row.inputSchema)
  if (typeof input === 'string') return `its input schema ${input}`
  const output = row.outputSchema === undefined ? null : readSchema(row.outputSchema)
  const annotations = isObject(row.annotations) ? row.annotations : {}
  const title = [row.title, annotations.title].find(text => typeof text === 'string') as string | undefined
  return {
    name: freeName(row.name, taken),
    own: row.name,
    title: title?.slice(0, 200) ?? null,
    description: typeof row.description === 'string' ? row.description.slice(0, MAX_DESCRIPTION) : '',
    inputSchema: { ...input, properties: input.properties ?? {} },
    // without it the tool works anyway
    outputSchema: typeof output === 'string' ? null : output,
    annotations: Object.fromEntries(Object.entries(annotations)
      .filter((entry): entry is [string, boolean] => hints.includes(entry[0]) && typeof entry[1] === 'boolean'))
  }
}

const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']

function readSchema (schema: unknown): Schema | string {
  if (!isObject(schema)) return 'is no object'
  if (schema.type !== 'object') return 'is not of type "object"'
  if (['oneOf', 'anyOf', 'allOf', 'not'].some(key => key in schema)) return 'is a union at its root, which models refuse'
  if (schema.properties !== undefined && !isObject(schema.properties)) return 'has properties that are not an object'
  if (isDeeper(schema, MAX_DEPTH)) return `is nested more than ${MAX_DEPTH} levels deep`
  if (JSON.stringify(schema).length > MAX_SCHEMA_BYTES) return `is larger than ${MAX_SCHEMA_BYTES / 1024} KiB`
  const { $schema: _, ...rest } = schema
  return rest
}

/** The name itself where clients take it, else one made of it. */
function freeName (own: string, taken: ReadonlySet<string>): string {
  if (NAME.test(own) && !taken.has(own)) return own
  const made = own.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 60)
  for (let n = 1; ; n++) {
    const name = n === 1 ? made : `${made}_${n}`
    if (!taken.has(name)) return name
  }
}

export function isDeeper (value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1))
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
