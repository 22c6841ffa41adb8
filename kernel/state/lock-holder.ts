import { readFile, stat } from 'node:fs/promises'
import { livenessOf, parseToken } from '../config/files/process-identity.js'

/** Who holds a lock, as its file says. `token` names this one holding; `pid` is 0 when the file cannot be read. */
export interface LockHolder {
  readonly token: string
  readonly pid: number
  readonly text: string
  /** The operating system keeps a lock as long as it lives (home-lock.ts). */
  readonly hasLife: boolean
  readonly touchedMs: number
}

/**
 * How long a lock of another host or pid namespace lives after its last sign of life. Holders give one every
 * `HEARTBEAT_MS`. Inside one namespace the process table decides at once.
 */
export const FOREIGN_LOCK_MS = 60_000
export const HEARTBEAT_MS = 15_000
/** A file that was created but not written yet, where the file system has no hard links. */
const HALF_WRITTEN_MS = 5_000

export function lockContent (token: string, text: string, hasLife: boolean): string {
  return JSON.stringify({ token, pid: process.pid, text, ...(hasLife ? { life: true } : {}) }) + '\n'
}

/** Null when it is not held. */
export async function readHolder (path: string): Promise<LockHolder | null> {
  try {
    const [content, stats] = await Promise.all([readFile(path, 'utf8'), stat(path)])
    const parsed = parseContent(content)
    // a name for unreadable content that stays the same as long as it is the same file
    const unreadable = { token: `unreadable-${stats.ino}-${Math.trunc(stats.mtimeMs)}`, pid: 0, text: '', hasLife: false }
    return { ...(parsed ?? unreadable), touchedMs: stats.mtimeMs }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export function isStale (holder: LockHolder, nowMs: number): boolean {
  const age = nowMs - holder.touchedMs
  const identity = parseToken(holder.token)
  if (identity === null) return age > HALF_WRITTEN_MS
  const liveness = livenessOf(identity)
  return liveness === 'unknown' ? age > FOREIGN_LOCK_MS : liveness === 'dead'
}

function parseContent (content: string): Omit<LockHolder, 'touchedMs'> | null {
  try {
    const value: unknown = JSON.parse(content)
    if (typeof value !== 'object' || value === null) return null
    const { token, pid, text, life } = value as Record<string, unknown>
    return typeof token === 'string' && typeof pid === 'number' && typeof text === 'string'
      ? { token, pid, text, hasLife: life === true }
      : null
  } catch {
    return null
  }
}
