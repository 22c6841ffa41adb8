import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const KIB = 1024
/** More than any engine has; a runaway one is not worth more reads. */
const MOST_PROCESSES = 256

/** Resident bytes of a process and all that it started, from `/proc`; null when that does not tell. */
export async function residentBytes (pid: number, root = '/proc'): Promise<number | null> {
  const pids = [pid]
  let bytes = 0
  for (let i = 0; i < pids.length && i < MOST_PROCESSES; i++) {
    const own = await ownBytes(root, pids[i]!)
    if (own === null && i === 0) return null
    bytes += own ?? 0
    pids.push(...await childrenOf(root, pids[i]!))
  }
  return bytes
}

async function ownBytes (root: string, pid: number): Promise<number | null> {
  // gone, or a system without /proc
  const text = await readFile(join(root, String(pid), 'status'), 'utf8').catch(() => '')
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1]
  return kib === undefined ? null : Number(kib) * KIB
}

async function childrenOf (root: string, pid: number): Promise<number[]> {
  const tasks = await readdir(join(root, String(pid), 'task')).catch(() => [])
  const lists = await Promise.all(tasks.map(task => readFile(join(root, String(pid), 'task', task, 'children'), 'utf8').catch(() => '')))
  return lists.flatMap(list => list.split(' ').filter(word => /^\d+$/.test(word)).map(Number))
}
