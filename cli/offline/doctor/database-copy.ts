import { access, mkdir, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '../../../kernel/contract/index.js'

export interface DatabaseVerdict {
  readonly ok: boolean
  /** Version before and after; null where there was no database, and where its file has none. */
  readonly from: number | null
  readonly to: number | null
  /** Its form is another one afterwards: what reads the one of before may not read it. */
  readonly changed: boolean
  /** Why it cannot be taken over. */
  readonly message: string | null
}

interface Form { readonly version: number | null, readonly cookies: string }

type Row = Record<string, number | null>

interface Reader { prepare (sql: string): { all (): unknown[] } }

/** Of a copy, the disk must still have this much afterwards: a gateway works on it. */
const SPARE_BYTES = 64 * 1024 * 1024

/** A copy of what is committed, taken beside a gateway that writes; then all that this release has to migrate. Never rejects. */
export async function tryDatabase (original: string, copy: string, upgrade: (path: string) => unknown): Promise<DatabaseVerdict> {
  let from: number | null = null
  try {
    const { default: Driver } = await import('libsql')
    await mkdir(dirname(copy), { recursive: true })
    if (await isThere(original)) {
      await requireRoom(original, dirname(copy))
      const source = new Driver(original, { readonly: true })
      try {
        source.exec('PRAGMA busy_timeout = 5000')
        source.exec(`VACUUM INTO '${copy.replaceAll('\'', '\'\'')}'`)
      } finally {
        source.close()
      }
    }
    const formNow = (): Form => {
      const connection = new Driver(copy)
      try {
        return formOf(connection)
      } finally {
        connection.close()
      }
    }
    const before = formNow()
    from = before.version
    await upgrade(copy)
    const after = formNow()
    const changed = from !== after.version || before.cookies !== after.cookies
    return { ok: true, from, to: after.version, changed, message: null }
  } catch (error) {
    return { ok: false, from, to: null, changed: false, message: messageOf(error) }
  }
}

/** The version of its table of versions, and SQLite's own counts: of the user, and of changes of the schema. */
function formOf (connection: Reader): Form {
  const one = (sql: string): Row | undefined => connection.prepare(sql).all()[0] as Row | undefined
  const table = one('SELECT 1 FROM sqlite_master WHERE name = \'schema_migrations\'')
  const version = table === undefined ? null : one('SELECT max(version) AS version FROM schema_migrations')!.version!
  const [users, schemas] = [one('PRAGMA user_version')!, one('PRAGMA schema_version')!]
  return { version, cookies: `${users.user_version} ${schemas.schema_version}` }
}

async function requireRoom (original: string, folder: string): Promise<void> {
  const [{ size }, { bavail, bsize }] = await Promise.all([stat(original), statfs(folder)])
  if (bavail * bsize >= size + SPARE_BYTES) return
  throw new Error(`the disk has no room to try it on a copy of ${original} (${Math.ceil(size / 1024 ** 2)} MiB)`)
}

function isThere (path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}
