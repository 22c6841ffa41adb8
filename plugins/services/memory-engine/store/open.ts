import Driver from 'libsql'
import { openSqlFileWith } from 'svc-gateway/plugin'
import { countChanges } from './changes.js'
import { migrations } from './migrations/index.js'
import { migrate } from './migrations/migrate.js'
import { Store } from './store.js'

const CACHE_KB = 16 * 1024
const MAPPED_BYTES = 128 * 1024 * 1024

/** Opens the memory database at `path`, makes it if need be, and brings it to the present version. Throws why it cannot. */
export function openStore (path: string): Store {
  return openSqlFileWith(Driver, {
    path,
    File: Store,
    durability: 'normal',
    pragmas: [
      // what is deleted is overwritten
      'secure_delete = ON',
      `cache_size = -${CACHE_KB}`,
      // vectors are read from all over the file: a part of it is mapped, which is the system's to take back
      `mmap_size = ${MAPPED_BYTES}`
    ],
    form: store => {
      migrate(store, migrations)
      countChanges(store)
    }
  })
}
