import { stringify } from 'smol-toml'
import { z } from 'zod'
import { foldLines } from '../../terminal/text-width.js'
import type { EditableFile } from './editable.js'

const COMMENT_WIDTH = 118

interface Node {
  readonly description?: string
  readonly default?: unknown
  readonly deprecated?: boolean
  readonly readOnly?: boolean
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: readonly string[]
}

/** A file that says nothing, with every key and its default in comments. Pure; made from the schema. */
export function configTemplate ({ about, schema, table, meaning }: Omit<EditableFile, 'file' | 'lay'>): string {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Node
  const head = `# ${about} A line in a comment shows the default; remove the # and change it.`
  const body = table === null ? tables([], root, meaning ? '# ' : '') : [[`# ${table}`, ...rowLines(root)].join('\n')]
  return `${[head, ...body].join('\n\n')}\n`
}

function tables (path: readonly string[], { properties = {} }: Node, mark: string): string[] {
  const keys = Object.entries(properties)
  const own = keys.flatMap(([key, node]) => node.properties === undefined ? settingLines(key, node) : [])
  const below = keys.flatMap(([key, node]) => node.properties === undefined ? [] : tables([...path, key], node, mark))
  const head = path.length === 0 ? [] : [`${mark}[${path.join('.')}]`]
  return own.length === 0 ? below : [[...head, ...own].join('\n'), ...below]
}

/** Of a row, also what must be there: it has no default to show. */
function rowLines ({ properties = {}, required = [] }: Node): string[] {
  return Object.entries(properties).flatMap(([key, node]) =>
    required.includes(key) && node.default === undefined ? [...described(node), `# ${key} =`] : settingLines(key, node))
}

/** Keys without a default have nothing to show. */
function settingLines (key: string, node: Node): string[] {
  if (node.deprecated === true || node.readOnly === true || node.default === undefined || isTable(node.default)) return []
  const value = node.default === null ? '' : stringify({ [key]: node.default }).trim().slice(`${key} = `.length)
  return [...described(node), `# ${key} = ${value}`.trimEnd()]
}

function described ({ description }: Node): string[] {
  return description === undefined ? [] : foldLines(description, COMMENT_WIDTH).map(line => `# ${line}`)
}

function isTable (value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
