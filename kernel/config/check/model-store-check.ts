import { access, constants, stat } from 'node:fs/promises'
import { svcError, type SvcConfig } from '../../contract/index.js'

/**
 * Whether a folder can be the model store. Throws `models.store_missing`, `models.store_not_directory`,
 * `models.store_unreadable`, `models.store_unwritable`.
 */
export async function requireModelStore (path: string): Promise<void> {
  const facts = { param: 'path', details: { path } }
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => error.code === 'EACCES' ? 'hidden' : null)
  const user = 'the user that runs the gateway'
  if (stats === 'hidden') throw svcError('models.store_unreadable', `${path} cannot be read by ${user}; see \`svc doctor perms\``, facts)
  if (stats === null) throw svcError('models.store_missing', `${path} does not exist; create the folder first, or mount its disk`, facts)
  if (!stats.isDirectory()) throw svcError('models.store_not_directory', `${path} is not a folder`, facts)
  const may = (mode: number): Promise<boolean> => access(path, mode | constants.X_OK).then(() => true, () => false)
  if (!await may(constants.R_OK)) throw svcError('models.store_unreadable', `${path} cannot be read by ${user}; see \`svc doctor perms\``, facts)
  if (!await may(constants.W_OK)) throw svcError('models.store_unwritable', `${path} cannot be written by ${user}; see \`svc doctor perms\``, facts)
}

/** The folder that a change of the settings makes the store; null when that stays, or is the gateway's own. Pure. */
export function newModelStore (next: SvcConfig['models'], previous: SvcConfig['models'] | null): string | null {
  const storeOf = ({ store, pull_root: old }: SvcConfig['models']): string => store !== '' ? store : old ?? ''
  const path = storeOf(next)
  return path === '' || (previous !== null && path === storeOf(previous)) ? null : path
}
