import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { ProcessEntry, ProcessTable } from './process-entry.js'

const run = promisify(execFile)
export type RunPs = (args: readonly string[]) => Promise<string>

/** Without `/proc`: `ps`, whose `lstart` (to the second) tells a process from a later one with its pid. */
export function psTable (platform: NodeJS.Platform, ps: RunPs = runPs): ProcessTable {
  const columns = ['-o', 'pid=,pgid=,stat=,lstart=']
  // "show the environment" is -E on macOS, and e without a dash elsewhere, where -e means all processes
  const withEnvironment = platform === 'darwin' ? ['-axEww'] : ['axeww']
  const rows = async (args: readonly string[]): Promise<ProcessEntry[]> =>
    (await ps(args)).split('\n').map(parsePsRow).filter(entry => entry !== null)

  return {
    find: async pid => (await rows([...columns, '-p', String(pid)]))[0] ?? null,
    all: () => rows(['-ax', ...columns]),
    async withEnv (assignment) {
      const lines = (await ps([...withEnvironment, '-o', 'pid=,command='])).split('\n').map(line => line.trim().split(/\s+/))
      return new Set(lines.filter(words => words.includes(assignment)).map(words => Number(words[0])))
    },
    withOpen: () => Promise.resolve(new Set())
  }
}

/** `  812   812 Ss   Mon Nov 21 03:58:12 2025`. Null for a zombie or a line that is none. */
export function parsePsRow (line: string): ProcessEntry | null {
  const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line)
  if (match === null || match[3]!.startsWith('Z')) return null
  return { pid: Number(match[1]), group: Number(match[2]), startId: match[4]!.replace(/\s+/g, ' ') }
}

/** `ps` exits with 1 when no process matches: that is an empty answer. */
async function runPs (args: readonly string[]): Promise<string> {
  // lstart must read the same in every run, whatever the locale and time zone of the gateway
  const env = { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC' }
  try {
    return (await run('ps', args, { env, maxBuffer: 64 * 1024 * 1024 })).stdout
  } catch (error) {
    if ((error as { code?: unknown }).code === 1) return ''
    throw error
  }
}
