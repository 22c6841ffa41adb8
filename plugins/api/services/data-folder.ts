import { readdir, readlink, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { shellText } from 'svc-gateway/plugin'
import { servicesError } from './errors.js'

/** What could not be removed, and why the first of it could not. */
export interface Remains { readonly folder: string, readonly count: number, readonly first: Error }

/** What a link leads to is an operator's, and may hold more than the data of a service. Throws `services.data_linked`. */
export async function refuseLink (folder: string, { id, name }: { readonly id: string, readonly name: string }): Promise<void> {
  const target = await readlink(folder).catch(() => null)
  if (target === null) return
  throw servicesError('services.data_linked', `the data of ${name} is behind a link, ${folder}, whose target is not deleted: ` +
    `uninstall ${name} without its data, or remove the link first with ${shellText(['rm', '--', folder])}`,
  { details: { service: id, folder, target } })
}

/**
 * Removes a folder with all that is in it, and goes on over what cannot be removed: a container whose program is another user
 * leaves folders in which the gateway's may change nothing. Links in it are not followed. Null when nothing is left.
 * @param spared names in it that stay, and the folder with them
 */
export async function removeFolder (path: string, spared: readonly string[] = []): Promise<Remains | null> {
  let remains: Remains | null = null
  const add = (more: Remains | null): void => {
    if (more !== null) remains = { folder: path, count: (remains?.count ?? 0) + more.count, first: remains?.first ?? more.first }
  }
  const failed = (error: NodeJS.ErrnoException): void => { if (error.code !== 'ENOENT') add({ folder: path, count: 1, first: error }) }
  // `rm` with `recursive` ends with the first failure, and what it had begun goes on behind its back
  const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    failed(error)
    return []
  })
  for (const entry of entries) {
    if (spared.includes(entry.name)) continue
    const place = join(path, entry.name)
    if (entry.isDirectory()) add(await removeFolder(place))
    else await rm(place, { force: true }).catch(failed)
  }
  if (remains === null && spared.length === 0) await rmdir(path).catch(failed)
  return remains
}
