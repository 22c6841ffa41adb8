import type { ActivityLog, ActivityRow, ToolCatalogue } from 'svc-gateway/plugin'

export interface ToolCallList {
  readonly events: readonly object[]
  readonly count: number
  readonly hint?: string
}

/** Calls of tools by one agent from the audit trail, newest first. */
export function toolCalls (activity: ActivityLog, tools: ToolCatalogue, agent: string, limit: number): ToolCallList {
  const { json } = activity.page({ actor: `mcp:${agent}`, action: 'mcp.tool.invoked', limit })
  const events = (JSON.parse(json) as ActivityRow[]).map(({ id, ts, target, before, outcome }) => {
    const [server = '', ...name] = target.split('/')
    return {
      id,
      timestamp: ts,
      tool: target,
      args: before ?? {},
      gated: tools.find(server, name.join('/'))?.gated ?? false,
      outcome: outcome ?? 'ok',
      client_id: agent
    }
  })
  if (events.length > 0) return { events, count: events.length }
  return { events, count: 0, hint: `no tool calls by '${agent}' are known; agents are identified by the header X-svc-Agent` }
}
