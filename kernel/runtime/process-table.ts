import { procTable } from './process-table-proc.js'
import { psTable } from './process-table-ps.js'

/** One process of the operating system, alive (a zombie counts as gone). */
export interface ProcessEntry {
  readonly pid: number
  readonly group: number
  /** Tells this process from any other that has or had the same pid. Comparable within one table only. */
  readonly startId: string
}

/** What the process driver asks the operating system. Answers are a moment old when they arrive. */
export interface ProcessTable {
  /** Null when there is no such process, or only its zombie. */
  find (pid: number): Promise<ProcessEntry | null>
  /** Every living process that this user may see. */
  all (): Promise<readonly ProcessEntry[]>
  /** Pids that were started with this `NAME=value` in their environment, as far as that can be read. */
  withEnv (assignment: string): Promise<ReadonlySet<number>>
  /** Pids that have the file open, as far as that can be read. */
  withOpen (file: string): Promise<ReadonlySet<number>>
}

export function createProcessTable (platform: NodeJS.Platform): ProcessTable {
  return platform === 'linux' ? procTable('/proc') : psTable(platform)
}

/**
 * The living processes of one engine: the group of its first process, and whatever left that group but still
 * carries the engine's token. A pid or group number that went to somebody else is never among them: the group
 * counts only while its first process is the one we started, or while a member carries the token.
 */
export async function engineProcesses (
  table: ProcessTable, leader: ProcessEntry | null, token: string
): Promise<readonly ProcessEntry[]> {
  const [all, marked] = await Promise.all([table.all(), table.withEnv(token)])
  const groupIsOurs = leader !== null && all.some(entry => entry.group === leader.group &&
    (marked.has(entry.pid) || (entry.pid === leader.pid && entry.startId === leader.startId)))
  return all.filter(entry => marked.has(entry.pid) || (groupIsOurs && entry.group === leader.group))
}
