import type { IncomingHttpHeaders } from 'node:http'

const AGENT = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Who acts, for audit rows: an agent that names itself, or the dashboard and CLI. */
export function actorOf (headers: IncomingHttpHeaders): string {
  const agent = headers['x-svc-agent']
  return typeof agent === 'string' && AGENT.test(agent) ? `mcp:${agent}` : 'dashboard'
}
