import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProcessEntry, ProcessTable } from './process-entry.js'

/**
 * `/proc` of Linux. A process is told from a later one with its pid by field 22 of `stat`, its start in clock
 * ticks since boot, together with the id of that boot.
 */
export function procTable (root: string): ProcessTable {
  let boot: Promise<string> | null = null
  const bootId = (): Promise<string> => boot ??= readFile(join(root, 'sys/kernel/random/boot_id'), 'utf8')
    .then(text => text.trim(), () => 'unknown-boot')

  /** Adopted engines are looked for every second, which must cost nothing: no disk is read, so no thread has to wait for one. */
  async function find (pid: number): Promise<ProcessEntry | null> {
    try {
      return parseStat(readFileSync(join(root, String(pid), 'stat'), 'utf8'), await bootId())
    } catch {
      return null // gone, or never was
    }
  }

  async function findOfMany (pid: number): Promise<ProcessEntry | null> {
    const text = await readFile(join(root, String(pid), 'stat'), 'utf8').catch(() => null) // gone, or never was
    return text === null ? null : parseStat(text, await bootId())
  }

  async function pids (): Promise<number[]> {
    return (await readdir(root)).filter(name => /^\d+$/.test(name)).map(Number)
  }

  async function pidsWhere (test: (folder: string) => Promise<boolean>): Promise<ReadonlySet<number>> {
    const all = await pids()
    const answers = await Promise.all(all.map(pid => test(join(root, String(pid)))))
    return new Set(all.filter((_, index) => answers[index]))
  }

  return {
    find,
    async all () {
      return (await Promise.all((await pids()).map(findOfMany))).filter(entry => entry !== null)
    },
    withEnv (assignment) {
      const wanted = Buffer.from(assignment).toString('latin1')
      return pidsWhere(async folder => {
        // unreadable: gone by now, or another user's
        const text = await readFile(join(folder, 'environ'), 'latin1').catch(() => '')
        return text.split('\0').includes(wanted)
      })
    },
    withOpen (file) {
      return pidsWhere(async folder => {
        const fds = await readdir(join(folder, 'fd')).catch(() => [])
        const targets = await Promise.all(fds.map(fd => readlink(join(folder, 'fd', fd)).catch(() => '')))
        return targets.includes(file)
      })
    }
  }
}

/**
 * Null for a zombie. One whose other threads still end is none: the ports and files of the process are theirs until they are
 * through. The command name (field 2) may hold spaces and brackets, so fields count from its last bracket.
 */
export function parseStat (text: string, bootId: string): ProcessEntry | null {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const state = fields[0] ?? ''
  const threads = Number(fields[17])
  const start = fields[19]
  const pid = Number.parseInt(text, 10)
  if (start === undefined || Number.isNaN(pid) || 'Xx'.includes(state) || (state === 'Z' && threads <= 1)) return null
  return { pid, group: Number(fields[2]), startId: `${bootId}:${start}` }
}
