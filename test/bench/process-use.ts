import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessUse {
  /** Time of the processor, in milliseconds. */
  readonly cpuMs: number
  /** Resident memory, in bytes. */
  readonly rss: number
}

/** The kernel counts in hundredths of a second, and in pages. */
const TICK_MS = 10
const PAGE_BYTES = 4096

/** What a process and those that it started use together; nothing where there is no /proc. */
export function processUse (root: number): ProcessUse {
  const rows = new Map<number, { readonly parent: number, readonly use: ProcessUse }>()
  for (const entry of pids()) {
    const row = statOf(entry)
    if (row !== null) rows.set(entry, row)
  }
  let [cpuMs, rss] = [0, 0]
  for (const [pid, { use }] of rows) {
    if (!isBelow(pid, root, rows)) continue
    cpuMs += use.cpuMs
    rss += use.rss
  }
  return { cpuMs, rss }
}

/** What a process uses without those that it started. Zeros for one that is not there. */
export function useOf (pid: number): ProcessUse {
  return statOf(pid)?.use ?? { cpuMs: 0, rss: 0 }
}

/**
 * Resident memory in bytes, a page that several of these processes share counted once: what Linux calls the proportional set.
 * @param below with the processes that these started
 */
export function residentOf (roots: readonly number[], below: boolean): number {
  const rows = new Map<number, ProcessRow>()
  for (const pid of pids()) {
    const row = statOf(pid)
    if (row !== null) rows.set(pid, row)
  }
  const wanted = below ? [...rows.keys()].filter(pid => roots.some(root => isBelow(pid, root, rows))) : roots
  return wanted.map(pid => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1]) * 1024
    } catch {
      return useOf(pid).rss
    }
  }).reduce((sum, bytes) => sum + bytes, 0)
}

interface ProcessRow { readonly parent: number, readonly use: ProcessUse }

function pids (): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

function isBelow (pid: number, root: number, rows: ReadonlyMap<number, { readonly parent: number }>): boolean {
  for (let at: number | undefined = pid; at !== undefined && at !== 0; at = rows.get(at)?.parent) if (at === root) return true
  return false
}

function statOf (pid: number): ProcessRow | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null
  }
  // the name of the program stands in brackets and may hold anything
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [parent, user, system, pages] = [1, 11, 12, 21].map(index => Number(fields[index]))
  return { parent: parent!, use: { cpuMs: (user! + system!) * TICK_MS, rss: pages! * PAGE_BYTES } }
}
