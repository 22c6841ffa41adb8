import { chmod, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isSvcError, messageOf, svcError } from '../contract/index.js'
import { fileTrouble } from '../config/files/write-errors.js'
import { migrations as released, type DatabaseMigration } from './migrations/index.js'
import { migrate } from './migrations/migrate.js'
import { inTransaction, type Connection } from './transaction.js'

export interface Database {
  readonly connection: Connection
  /** Runs `work` in one transaction, rolled back when it throws. Not re-entrant; `work` must not wait for anything. */
  transaction<T> (work: (connection: Connection) => T): T
  /** Folds the write-ahead log into the file and closes. Idempotent; never throws. */
  close (): void
}

export interface DatabaseOptions {
  readonly path: string
  readonly migrations?: readonly DatabaseMigration[]
}

/** How long a statement waits for a lock of another process before it fails. */
const BUSY_TIMEOUT_MS = 5000
const PRIVATE = 0o600

/**
 * Opens the state database and brings it to the present version. libsql is loaded here and not before, so that a command
 * that needs no database does not pay for it. Rejects with `state.database_failed`, or `state.database_too_new` for a
 * file of a later release.
 */
export async function openDatabase (options: DatabaseOptions): Promise<Database> {
  const { path } = options
  let connection: Connection | undefined
  try {
    const [{ default: Driver }] = await Promise.all([import('libsql'), mkdir(dirname(path), { recursive: true })])
    await mustBeWritable(path)
    await keepPrivate(path)
    connection = new Driver(path)
    configure(connection)
    migrate(connection, options.migrations ?? released)
    return wrap(connection)
  } catch (error) {
    connection?.close()
    if (isSvcError(error)) throw error
    const { syscall, code = '' } = error as NodeJS.ErrnoException
    const reason = syscall !== undefined ? code : /disk is full/.test(messageOf(error)) ? 'ENOSPC' : null
    const why = reason === null ? `${messageOf(error)}; move the file away to start with an empty one` : fileTrouble(reason)
    throw svcError('state.database_failed', `the state database ${path} cannot be opened: ${why}`, {
      cause: error, details: reason === null ? {} : { reason }
    })
  }
}

/** SQLite does not say why it cannot open a file, and opens one that may only be read, to fail at the first write. */
async function mustBeWritable (path: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    await open(file, 'r+').then(handle => handle.close(), (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  }
}

/** Audit rows and requests are the owner's alone. SQLite gives its other files the mode of the first. */
async function keepPrivate (path: string): Promise<void> {
  await open(path, 'a', PRIVATE).then(handle => handle.close())
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    await chmod(file, PRIVATE).catch((error: NodeJS.ErrnoException) => {
      // one of another owner that may be written is `svc doctor perms`'s to tell
      if (error.code !== 'ENOENT' && error.code !== 'EPERM') throw error
    })
  }
}

function configure (connection: Connection): void {
  connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  connection.exec('PRAGMA journal_mode = WAL')
  // with a write-ahead log this cannot damage the file; a power failure may only take back the last transactions
  connection.exec('PRAGMA synchronous = NORMAL')
  connection.exec('PRAGMA foreign_keys = ON')
}

function wrap (connection: Connection): Database {
  let open = true
  return {
    connection,
    transaction: work => inTransaction(connection, work),
    close () {
      if (!open) return
      open = false
      try {
        connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // another process reads; the next one to open the file folds the log in
      }
      connection.close()
    }
  }
}
