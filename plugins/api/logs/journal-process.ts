import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { LogQuery } from './schemas.js'

/** How a journalctl ended. */
export interface JournalEnd {
  /** It could not be started: this host has none. */
  readonly missing: boolean
  /** Null when it was killed. */
  readonly code: number | null
  /** Its first complaint; empty without one. */
  readonly complaint: string
}

const MOST_COMPLAINT_BYTES = 4096
/** What journalctl says besides the lines of the journal. */
const NOTES = /^-- (?:Journal begins|Logs begin|No entries|Reboot|Boot [0-9a-f]+).*--$/

/**
 * One journalctl, which is killed when the signal aborts or its lines are no longer read. Its lines come at the reader's
 * pace: a pipe that is full makes it wait.
 * @param started gets a promise of its end, which comes whether or not it is read to the end
 */
export async function* journalLines (
  command: string, query: LogQuery, follow: boolean, signal: AbortSignal, started: (exited: Promise<unknown>) => void
): AsyncGenerator<string, JournalEnd> {
  const child = spawn(command, journalArgs(query, follow), {
    stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, LC_ALL: 'C' }, shell: false
  })
  started(once(child, 'exit').catch(() => null))
  const end = once(child, 'close').then(([code]) => ({ missing: false, code: code as number | null }), () => ({ missing: true, code: null }))
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (complaint.length < MOST_COMPLAINT_BYTES) complaint += text
  })
  const kill = (): void => { child.kill('SIGKILL') }
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  try {
    for await (const line of createInterface({ input: child.stdout, crlfDelay: Infinity })) {
      if (!NOTES.test(line)) yield line
    }
    return { ...await end, complaint: firstLine(complaint) }
  } finally {
    signal.removeEventListener('abort', kill)
    kill()
    child.stdout.destroy()
    await end
  }
}

/** A list, never a line for a shell; every value is part of its option, so that none can be taken for one. Pure. */
export function journalArgs ({ unit, n, since, level }: LogQuery, follow: boolean): readonly string[] {
  return [
    `--unit=${unit}`,
    `--lines=${n}`,
    '--no-pager',
    '--no-hostname',
    '--output=short-iso',
    ...(since === undefined ? [] : [`--since=${since}`]),
    ...(level === undefined ? [] : [`--priority=${level}`]),
    ...(follow ? ['--follow'] : [])
  ]
}

function firstLine (text: string): string {
  return text.trim().split('\n')[0]!.trim()
}
