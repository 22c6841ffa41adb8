import { memoryError } from './errors.js'

/** Who remembers. There is no authentication: an agent is who it says it is, and never two at a time. */
export interface MemoryIdentity {
  /** Null for one that gives no name: the operator, a page, the command line. */
  readonly agent: string | null
  /** Reads and writes the agent's own memories, too. Only with a name. */
  readonly private: boolean
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

const AGENT = /^[A-Za-z0-9_-]{1,64}$/
const YES = new Set(['1', 'true', 'yes', 'on'])

/**
 * By `X-svc-Agent` and `X-svc-Private`. Throws `memory.agent_id_invalid` for a name that is none, also where a header comes
 * twice, and `memory.namespace_invalid` for a private mode without a name. Pure.
 */
export function identityOf (headers: Headers): MemoryIdentity {
  const name = text(headers['x-svc-agent'])
  if (name !== '' && !AGENT.test(name)) {
    throw memoryError('memory.agent_id_invalid', 'X-svc-Agent takes letters, digits, _ and -, at most 64', { param: 'X-svc-Agent' })
  }
  return checkedIdentity(name === '' ? null : name, YES.has(text(headers['x-svc-private']).toLowerCase()))
}

/** The same for a caller that is known by other means. Pure. */
export function checkedIdentity (agent: string | null, isPrivate: boolean): MemoryIdentity {
  if (isPrivate && agent === null) {
    throw memoryError('memory.namespace_invalid', 'X-svc-Private needs the name of an agent: send X-svc-Agent, too', { param: 'X-svc-Private' })
  }
  if (agent !== null && !AGENT.test(agent)) {
    throw memoryError('memory.agent_id_invalid', 'an agent\'s name takes letters, digits, _ and -, at most 64')
  }
  return { agent, private: isPrivate }
}

function text (header: string | string[] | undefined): string {
  return (Array.isArray(header) ? header.join(',') : header ?? '').trim()
}
