import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import Driver from 'libsql'
import { migrations } from './migrations/index.js'
import { migrate } from './migrations/migrate.js'
import { Store } from './store.js'

const PRIVATE = 0o600
const BUSY_TIMEOUT_MS = 5000
const CACHE_KB = 16 * 1024
const MAPPED_BYTES = 128 * 1024 * 1024

/** Opens the memory database at `path`, makes it if need be, and brings it to the present version. Throws why it cannot. */
export function openStore (path: string): Store {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', PRIVATE))
  // SQLite gives its other files the mode of the first
  chmodSync(path, PRIVATE)
  const connection = new Driver(path)
  const store = new Store(connection)
  try {
    store.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    store.exec('PRAGMA journal_mode = WAL')
    // with a write-ahead log a killed process loses nothing; a power failure may take back the last transactions
    store.exec('PRAGMA synchronous = NORMAL')
    store.exec('PRAGMA foreign_keys = ON')
    // what is deleted is overwritten
    store.exec('PRAGMA secure_delete = ON')
    store.exec(`PRAGMA cache_size = -${CACHE_KB}`)
    // vectors are read from all over the file: a part of it is mapped, which is the system's to take back
    store.exec(`PRAGMA mmap_size = ${MAPPED_BYTES}`)
    migrate(store, migrations)
  } catch (error) {
    connection.close()
    throw error
  }
  return store
}
