import type { Connection } from './transaction.js'

export interface KernelLock {
  /** Idempotent; never throws. */
  release (): void
}

/** Pauses between two tries, in milliseconds. */
const PAUSE_MS = 25

/**
 * A lock that the operating system keeps for this process and gives back the moment it dies, seen from every container and
 * pid namespace of the machine: SQLite's own on a file that stays empty. `held` when another has it for longer than `waitMs`;
 * null where the file system has no such locks, or the file cannot be made. Nothing else may open the file: closing it
 * anywhere in this process would give the lock back.
 */
export async function kernelLock (path: string, waitMs: number): Promise<KernelLock | 'held' | null> {
  const deadline = performance.now() + waitMs
  const connection = await open(path)
  for (; connection !== null;) {
    const outcome = take(connection)
    if (outcome === 'taken') return { release: () => { close(connection) } }
    if (outcome === 'failed' || performance.now() >= deadline) {
      close(connection)
      return outcome === 'failed' ? null : 'held'
    }
    await new Promise(resolve => { setTimeout(resolve, PAUSE_MS) })
  }
  return null
}

async function open (path: string): Promise<Connection | null> {
  try {
    const { default: Driver } = await import('libsql')
    const connection: Connection = new Driver(path)
    connection.exec('PRAGMA busy_timeout = 0')
    // no journal beside it: nothing is ever written
    connection.exec('PRAGMA journal_mode = MEMORY')
    return connection
  } catch {
    return null
  }
}

function take (connection: Connection): 'taken' | 'busy' | 'failed' {
  try {
    connection.exec('BEGIN EXCLUSIVE')
    return 'taken'
  } catch (error) {
    return (error as { code?: unknown }).code === 'SQLITE_BUSY' ? 'busy' : 'failed'
  }
}

function close (connection: Connection): void {
  try {
    connection.close()
  } catch {
    // the lock goes with the process
  }
}
