import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Names one run of one process: a pid alone is reused. `start` is the kernel's start time in clock ticks since boot,
 * empty where there is no /proc. `scope` is a hash of host, boot and pid namespace: a pid means nothing outside of it.
 */
export interface ProcessIdentity {
  readonly pid: number
  readonly start: string
  readonly scope: string
}

/** `unknown`: another host, boot or pid namespace, so nothing can be said from here. */
export type Liveness = 'alive' | 'dead' | 'unknown'

let own: ProcessIdentity | undefined
/** Processes of other namespaces that are known to be gone. */
const buried = new Set<string>()

export function ownIdentity (): ProcessIdentity {
  own ??= Object.freeze({ pid: process.pid, start: startedAt(process.pid) ?? '', scope: pidScope() })
  return own
}

/** The identity in one word, with random bytes so that every call gives another: `<scope>-<pid>-<start>-<random>`. */
export function uniqueToken (): string {
  const { pid, start, scope } = ownIdentity()
  return `${scope}-${pid}-${start}-${randomBytes(6).toString('hex')}`
}

/** The identity in a token of `uniqueToken`, or null when it is none. */
export function parseToken (token: string): ProcessIdentity | null {
  const match = /^([0-9a-f]{8})-(\d+)-(\d*)-[0-9a-f]{12}$/.exec(token)
  return match === null ? null : { scope: match[1]!, pid: Number(match[2]), start: match[3]! }
}

/** For one who knows better than the process table, which ends at the pid namespace. */
export function declareDead (identity: ProcessIdentity): void {
  if (livenessOf(identity) === 'unknown') buried.add(nameOf(identity))
}

export function livenessOf (other: ProcessIdentity): Liveness {
  if (other.scope !== ownIdentity().scope) return buried.has(nameOf(other)) ? 'dead' : 'unknown'
  const start = startedAt(other.pid)
  if (start === null) return 'dead'
  // unreadable start times (no /proc, or one that hides the processes of others) leave the pid to decide
  return start === '' || other.start === '' || start === other.start ? 'alive' : 'dead'
}

function nameOf ({ scope, pid, start }: ProcessIdentity): string {
  return `${scope}-${pid}-${start}`
}

/** Null when there is no such process or only its zombie; empty when it exists and nothing more can be read. */
function startedAt (pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === null) return signalReaches(pid) ? '' : null
  // the command name may hold spaces and parentheses; the fields after it start at the last one
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? null : fields[19] ?? ''
}

function pidScope (): string {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
  let namespace = ''
  try {
    namespace = readlinkSync('/proc/self/ns/pid')
  } catch {
    // no /proc: host and boot are all there is
  }
  // every container has a host name of its own, and the namespace already tells them apart
  const host = namespace === '' || boot === '' ? hostname() : ''
  return createHash('sha256').update(`${host}\0${boot}\0${namespace}`).digest('hex').slice(0, 8)
}

function signalReaches (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function readText (path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
