import type { ProcessEntry, ProcessTable } from './process-entry.js'
import { procTable } from './process-table-proc.js'
import { psTable } from './process-table-ps.js'

export type { ProcessEntry, ProcessTable }

export function createProcessTable (platform: NodeJS.Platform): ProcessTable {
  return platform === 'linux' ? procTable('/proc') : psTable(platform)
}

/**
 * The living processes of one engine: the group of its first process, and whatever left that group but still
 * carries the engine's token. A reused pid or group number is never among them: the group
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
