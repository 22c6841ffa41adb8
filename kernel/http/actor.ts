import type { IncomingHttpHeaders } from 'node:http'

const AGENT = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Who acts, for audit rows and nothing else: an agent or the CLI, as they name themselves, or the dashboard. */
export function actorOf (headers: IncomingHttpHeaders): string {
  const agent = headers['x-svc-agent']
  if (typeof agent === 'string' && AGENT.test(agent)) return `mcp:${agent}`
  return headers['x-svc-client'] === 'cli' ? 'cli' : 'dashboard'
}
