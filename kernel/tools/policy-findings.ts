import type { ConfigSnapshot, Finding, ToolCatalogue, ToolEntry } from '../contract/index.js'
import { agentFile, configFiles } from '../config/parts/config-parts.js'
import { suggest } from '../contract/text/suggest.js'

/** Every tool, for every agent. */
type KnownTools = Pick<ToolCatalogue, 'all'>

/**
 * Names of tools in `[approvals]` and in the files of agents that mean nothing. A server that is not here at the moment may have
 * any tool, so nothing is said of it.
 */
export function policyFindings ({ svc: { approvals }, agents }: Pick<ConfigSnapshot, 'svc' | 'agents'>, tools: KnownTools): readonly Finding[] {
  // the schemas of all tools are made for it, which is for those alone who configured something
  if (approvals.auto.length + approvals.never.length + agents.files.size === 0) return []
  const entries = tools.all()
  const listed = (['auto', 'never'] as const).flatMap(key => approvals[key].flatMap((name, i): Finding[] => {
    const message = ofList(key, name, entries, approvals.never)
    return message === null ? [] : [{ file: configFiles.svc, path: `approvals.${key}.${i}`, message, code: 'mcp.unknown_tool', severity: 'warning' }]
  }))
  return [...listed, ...[...agents.files].flatMap(([agent, file]) => file === null ? [] : Object.entries(file.mcp.servers)
    .flatMap(([id, server]) => ofAgent(agent, id, server, entries)))]
}

type AgentServer = NonNullable<ReturnType<ConfigSnapshot['agents']['files']['get']>>['mcp']['servers'][string]

function ofAgent (agent: string, id: string, { builtin, tools }: AgentServer, entries: readonly ToolEntry[]): readonly Finding[] {
  const short = builtin ? id.replace(/^svc-/, '') : id
  const known = entries.filter(({ server }) => server === id || server === short).map(({ name }) => name)
  if (known.length === 0) return []
  return (['allow', 'gated', 'blocked'] as const).flatMap(kind => tools[kind].flatMap((name, i): Finding[] => known.includes(name) ? [] : [{
    file: agentFile(agent),
    path: `mcp.servers.${id}.tools.${kind}.${i}`,
    message: `names ${name}, which ${short} does not have${meant(name, known)}`,
    code: 'mcp.unknown_tool',
    severity: 'warning'
  }]))
}

function ofList (key: 'auto' | 'never', name: string, entries: readonly ToolEntry[], never: readonly string[]): string | null {
  const [server, tool] = name.includes('/') ? name.split('/', 2) as [string, string] : [null, name]
  const known = server === null ? entries : entries.filter(entry => entry.server === server)
  if (known.length === 0) return null
  const named = known.filter(entry => entry.name === tool)
  if (named.length === 0) return `names ${name}, which no tool has${meant(tool, known.map(entry => entry.name))}`
  if (key === 'auto' && !named.some(({ gated }) => gated)) return `has no effect: ${name} is not gated, so its calls never wait`
  if (key === 'auto' && never.includes(name)) return `has no effect: ${name} is also in never, which takes precedence`
  return null
}

function meant (name: string, known: readonly string[]): string {
  const near = suggest(name, known)
  return near === null ? '' : `; did you mean ${near}?`
}
