import type { IncomingHttpHeaders } from 'node:http'

const AGENT = /^[A-Za-z0-9_-]{1,64}$/
const YES = new Set(['1', 'true', 'yes', 'on'])

export interface Identity {
  /** Null: the client gave no name. */
  readonly agent: string | null
  readonly private: boolean
}

/**
 * Who calls, as it says itself: `X-svc-Agent`, else what the client calls itself. There is no authentication, so this
 * decides what is written down and which agent's file counts, and nothing else.
 */
export function identityOf (headers: IncomingHttpHeaders, clientName: string | null): Identity {
  const named = headers['x-svc-agent']
  const isPrivate = headers['x-svc-private']
  return {
    agent: typeof named === 'string' && AGENT.test(named.trim()) ? named.trim() : clientName,
    private: typeof isPrivate === 'string' && YES.has(isPrivate.trim().toLowerCase())
  }
}

/** A client's own name as an agent's: `Claude Code` is `claude-code`. Null when nothing is left of it. */
export function agentName (clientName: unknown): string | null {
  if (typeof clientName !== 'string') return null
  const name = clientName.slice(0, 200).toLowerCase().replaceAll(/[^a-z0-9_]+/g, '-').replaceAll(/^-+|-+$/g, '').slice(0, 64)
  return name === '' ? null : name
}

export function actorOf ({ agent }: Identity): string {
  return `mcp:${agent ?? 'anonymous'}`
}
