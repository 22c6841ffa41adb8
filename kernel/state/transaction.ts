import type Libsql from 'libsql'

/**
 * The embedded database: libsql, which has better-sqlite3's synchronous API. Two differences that were met:
 * `get()` adds a key `_metadata` to the row, `all()` does not; a closed connection keeps its files open until its
 * statements are collected.
 */
export type Connection = Libsql.Database

/** `BEGIN IMMEDIATE`, so that a writer waits at the start and never fails half-way for a lock. */
export function inTransaction<T> (connection: Connection, work: (connection: Connection) => T): T {
  connection.exec('BEGIN IMMEDIATE')
  try {
    const result = work(connection)
    connection.exec('COMMIT')
    return result
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK')
    throw error
  }
}
