import type { AgentFile, AgentFiles, AgentRules, ConfigService, ToolClass } from '../contract/index.js'

type AgentServer = AgentFile['mcp']['servers'][string]

/** What the configuration says of agents at this moment: their files, and the tools that none of them may call. */
export function createAgentFiles (config: Pick<ConfigService, 'snapshot' | 'onChange'>): AgentFiles {
  return {
    classify (agent, server, tool) {
      const { agents, svc: { approvals: { never } } } = config.snapshot
      if (never.includes(tool) || never.includes(`${server}/${tool}`)) return 'blocked'
      return classifyTool(agents, agent, server, tool)
    },
    onChange: listener => config.onChange((next, before) => {
      if (next.agents !== before.agents || next.svc.approvals !== before.svc.approvals) listener()
    })
  }
}

/** Agents differ by more than the case of their names. Null: no file. Pure. */
export function classifyTool ({ files, isComplete }: AgentRules, agent: string, server: string, tool: string): ToolClass | null {
  const file = files.get(agent.toLowerCase())
  if (file === undefined) return isComplete ? null : 'unknown_server'
  const rules = file === null ? undefined : serverOf(file, server)
  if (rules === undefined || !rules.enabled) return 'unknown_server'
  const { allow, gated, blocked } = rules.tools
  if (blocked.includes(tool)) return 'blocked'
  if (gated.includes(tool)) return 'gated'
  return allow.includes(tool) ? 'allow' : 'unknown_tool'
}

/** The gateway's own servers also go by the name that clients' configurations give them: `svc-admin`. */
function serverOf ({ mcp: { servers } }: AgentFile, server: string): AgentServer | undefined {
  const own = Object.hasOwn(servers, server) ? servers[server] : undefined
  const long = `svc-${server}`
  return own ?? (Object.hasOwn(servers, long) && servers[long]!.builtin ? servers[long] : undefined)
}
