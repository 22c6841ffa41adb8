import { stringify } from 'smol-toml'
import { z } from 'zod'
import { svcConfigSchema } from '../../../kernel/contract/index.js'

interface Node {
  readonly description?: string
  readonly default?: unknown
  readonly deprecated?: boolean
  readonly readOnly?: boolean
  readonly properties?: Readonly<Record<string, Node>>
}

/** A svc.toml that says nothing, with every key and its default in comments. Pure; made from the schema. */
export function configTemplate (): string {
  const root = z.toJSONSchema(svcConfigSchema, { io: 'input' }) as Node
  const head = '# Settings of the gateway. A line in a comment shows the default; take the # away and change it.'
  return `${[head, ...tables([], root)].join('\n\n')}\n`
}

function tables (path: readonly string[], { properties = {} }: Node): string[] {
  const keys = Object.entries(properties)
  const own = keys.flatMap(([key, node]) => node.properties === undefined ? settingLines(key, node) : [])
  const below = keys.flatMap(([key, node]) => node.properties === undefined ? [] : tables([...path, key], node))
  return own.length === 0 ? below : [[`[${path.join('.')}]`, ...own].join('\n'), ...below]
}

/** Keys without a default have nothing to show. */
function settingLines (key: string, node: Node): string[] {
  if (node.deprecated === true || node.readOnly === true || node.default === undefined || isTable(node.default)) return []
  return [...node.description === undefined ? [] : [`# ${node.description}`], `# ${stringify({ [key]: node.default }).trim()}`]
}

function isTable (value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
