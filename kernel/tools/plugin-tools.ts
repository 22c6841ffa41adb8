import {
  messageOf, TOOL_NAME_PATTERN, TOOL_SERVER_PATTERN, type AnyRoute, type SvcError, type ToolDefinition
} from '../contract/index.js'
import { definedTool } from './defined-tool.js'
import type { OwnTool, ToolProblem } from './own-tool.js'
import { ADMIN, routeTool } from './route-tool.js'

/** What a plugin that is up brings. */
export interface ToolsOfPlugin {
  readonly plugin: string
  readonly routes: readonly AnyRoute[]
  readonly tools: readonly ToolDefinition[]
  /** Null while the plugin is up; else settles when it is, with what refuses its calls. */
  readonly gate: () => Promise<SvcError | null> | null
}

export interface MountedTool {
  readonly tool: OwnTool
  readonly gate: ToolsOfPlugin['gate']
}

type Brought = Pick<ToolsOfPlugin, 'routes' | 'tools'>
type Made = OwnTool | ToolProblem

/** Schemas cost a few milliseconds for each plugin, and plugins come and go: they are made once for each route and tool. */
const made = new WeakMap<object, Made>()

/** Tools of plugins by server and name; those of one that brings nothing fit are left out. */
export function toolsOf (plugins: readonly ToolsOfPlugin[]): ReadonlyMap<string, ReadonlyMap<string, MountedTool>> {
  const servers = new Map<string, Map<string, MountedTool>>()
  for (const { plugin, gate, ...brought } of plugins) {
    for (const tool of eachOf(plugin, brought)) {
      if (!('entry' in tool)) continue
      const { server, name } = tool.entry
      if (!servers.has(server)) servers.set(server, new Map())
      servers.get(server)!.set(name, { tool, gate })
    }
  }
  return servers
}

/** What of a plugin's tools cannot be offered, and why. */
export function problemsOf (plugin: string, brought: Brought): readonly ToolProblem[] {
  return eachOf(plugin, brought).flatMap(tool => 'entry' in tool ? [] : [tool])
}

/** As `server/name`. */
export function namesOf ({ routes, tools }: Brought): readonly string[] {
  return [...routes.flatMap(({ tool }) => tool ?? []), ...tools].map(({ server = ADMIN, name }) => `${server}/${name}`)
}

function eachOf (plugin: string, { routes, tools }: Brought): readonly Made[] {
  return [
    ...routes.flatMap(route => {
      const { tool } = route
      return tool === undefined ? [] : [once(route, tool.server ?? ADMIN, tool.name, () => routeTool(route, tool, plugin))]
    }),
    ...tools.map(tool => once(tool, tool.server, tool.name, () => definedTool(tool, plugin)))
  ]
}

function once (of: object, server: string, name: string, make: () => OwnTool): Made {
  let known = made.get(of)
  if (known === undefined) {
    known = tried(server, name, make)
    made.set(of, known)
  }
  return known
}

function tried (server: string, name: string, make: () => OwnTool): Made {
  const tool = `${server}/${name}`
  if (!TOOL_NAME_PATTERN.test(name)) return { tool, message: `'${name}' is not a valid name of a tool: a to z, 0 to 9 and _, at most 48` }
  if (!TOOL_SERVER_PATTERN.test(server)) return { tool, message: `'${server}' is not a valid name of a server: a to z, 0 to 9, _ and -, at most 64` }
  try {
    const own = make()
    const { primary, secrets, unwritten = [], inputSchema: { properties } } = own.entry
    const named = [...secrets, ...unwritten, ...primary === null ? [] : [primary]]
    const odd = named.find(argument => !Object.hasOwn(properties as object, argument))
    return odd === undefined ? own : { tool, message: `it describes '${odd}', which is not one of its arguments` }
  } catch (error) {
    return { tool, message: messageOf(error) }
  }
}
