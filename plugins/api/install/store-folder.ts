import { access, constants, mkdir, statfs } from 'node:fs/promises'
import { dirname, isAbsolute, join, normalize } from 'node:path'
import { messageOf } from 'svc-gateway/plugin'
import { installError } from './errors.js'
import type { InstallApi } from './install-api.js'

const LEAST_FREE_BYTES = 10e9

/** Throws `install.pick_default_failed` for a path that is not absolute. Pure. */
export function storagePath (given: string): string {
  if (isAbsolute(given)) return normalize(given).replace(/(.)\/+$/, '$1')
  throw installError('install.pick_default_failed', 'storage_dir must be an absolute path, such as /var/lib/svc/models',
    { param: 'storage_dir', details: { storage_dir: given } })
}

/**
 * Makes a folder the model store. A first run goes on whatever becomes of it: what is wrong is returned, and the store stays
 * where it was when the folder cannot be used or the setting not written.
 */
export async function adoptStore (
  { config, models, providers }: Pick<InstallApi, 'config' | 'models' | 'providers'>, path: string
): Promise<readonly string[]> {
  try {
    await makeFolder(path)
    await access(path, constants.W_OK)
    const stores = providers.list().flatMap(({ models: own }) => own?.store === undefined ? [] : [own.store])
    const folders = stores.flatMap(({ setting, folder }) => setting === undefined ? [] : [[setting, join(path, folder)]])
    if (path !== models.store) await config.patchSvc({ models: { store: path, ...Object.fromEntries(folders), pull_root: null } })
  } catch (error) {
    return [`the model store stays ${models.store}: ${messageOf(error)}`]
  }
  if (path !== models.store) return [`SVC_MODEL_STORE is ${models.store}, which overrides ${path}`]
  return await spaceWarnings(path)
}

async function spaceWarnings (path: string): Promise<readonly string[]> {
  const { bavail, bsize } = await statfs(path)
  const free = bavail * bsize
  return free < LEAST_FREE_BYTES ? [`${path} has ${(free / 1e9).toFixed(1)} GB left; the models may not fit`] : []
}

/** With what is missing above it. Node's own way to do that never ends where nothing can be made, as below /proc. */
async function makeFolder (path: string): Promise<void> {
  const made = await mkdir(path).then(() => true, async (error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return true
    if (error.code !== 'ENOENT' || dirname(path) === path) throw error
    return false
  })
  if (made) return
  await makeFolder(dirname(path))
  await mkdir(path)
}
