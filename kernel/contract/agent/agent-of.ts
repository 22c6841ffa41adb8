import type { AgentCatalog } from './agent.js'
import { AGENT_NAME_PATTERN } from '../schemas/index.js'
import type { OutgoingCall } from '../services/index.js'

/**
 * Whose request it is: by the name that it gives in `X-svc-Agent`, in either case; else the agent whose descriptor knows its
 * requests by their headers. Null for one of no agent. Pure.
 */
export function agentOf (headers: OutgoingCall['headers'], agents: Pick<AgentCatalog, 'list'>): string | null {
  const given = headers['x-svc-agent']
  if (typeof given === 'string') {
    const name = given.trim().toLowerCase()
    return AGENT_NAME_PATTERN.test(name) ? name : null
  }
  const known = agents.list().find(({ requests }) => requests.some(entry => Object.entries(entry).every(([header, pattern]) => {
    const value = headers[header]
    return typeof value === 'string' && pattern.test(value)
  })))
  return known?.id ?? null
}
