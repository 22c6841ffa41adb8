import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { livenessOf, parseToken } from '../../kernel/config/files/process-identity.js'

/** Temporary files of a home whose writers are dead. Links are not followed: the plugin home has one to the whole gateway. */
export function leftTempFiles (home: string): readonly string[] {
  const left: string[] = []
  const visit = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) visit(path)
      const token = /^\..+\.([^.]+)\.tmp$/.exec(entry.name)?.[1]
      const writer = token === undefined ? null : parseToken(token)
      if (writer !== null && livenessOf(writer) === 'dead') left.push(path.slice(home.length + 1))
    }
  }
  visit(home)
  return left
}
