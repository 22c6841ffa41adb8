import { defineTool, svcError, type ToolDefinition, type ToolEntry } from 'svc-gateway/plugin'
import { z } from 'zod'
import { ALL, CALL, SEARCH, type JointView } from './joint-view.js'

const MOST_FOUND = 20
/** What a model can bear to read at once. */
const MOST_CHARACTERS = 40_000

const searchInput = z.strictObject({
  query: z.string().max(400).meta({ description: 'Words that describe the task; empty lists every tool' }),
  limit: z.int().min(1).max(MOST_FOUND).default(5).meta({ description: 'Maximum number of tools in the answer' })
})

const callInput = z.strictObject({
  name: z.string().max(200).meta({ description: 'Name of the tool, from tool_search' }),
  arguments: z.record(z.string(), z.unknown()).optional().meta({ description: 'Its arguments, as in its input_schema' })
})

/** How tools are reached that the list has no room for. */
export function reachingTools (view: () => JointView): readonly ToolDefinition[] {
  return [
    defineTool({
      server: ALL,
      name: SEARCH,
      title: 'Find tools',
      description: 'Finds tools that are not listed, by words that describe what they do, with their arguments. Use it before you say that something cannot be done.',
      readOnly: true,
      input: searchInput,
      handler: async ({ input: { query, limit }, agent }) => found(view().search(query, { agent }), limit)
    }),
    defineTool({
      server: ALL,
      name: CALL,
      title: 'Call a tool',
      description: 'Calls a tool that tool_search found, with arguments as in its input_schema. Returns the answer of the tool.',
      input: callInput,
      // calls of tools that exist never come here: they are calls of those tools
      handler: async ({ input: { name } }) => {
        throw svcError('validation.invalid', `there is no tool '${name}'; find names with ${SEARCH}`, { param: 'name' })
      }
    })
  ]
}

function found (tools: readonly ToolEntry[], limit: number): object {
  const rows: object[] = []
  let characters = 0
  for (const { name, description, inputSchema, gated } of tools.slice(0, limit)) {
    const row = { name, description, input_schema: inputSchema, ...(gated ? { needs_approval: true } : {}) }
    characters += JSON.stringify(row).length
    if (rows.length > 0 && characters > MOST_CHARACTERS) break
    rows.push(row)
  }
  const more = tools.length - rows.length
  return {
    tools: rows,
    ...(more > 0 ? { more: `${more} more, narrow it with other words or raise 'limit'` } : {}),
    ...(rows.length === 0 ? { note: 'no tool matches these words; try others, or an empty query' } : {})
  }
}
