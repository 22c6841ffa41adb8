import { join } from 'node:path'
import { isSvcError, svcError, type Paths } from '../contract/index.js'
import { sweepTempFiles } from '../config/atomic-file.js'
import { acquireLock, type HeldLock } from './file-lock.js'

const LOCK_FILE = 'gateway.lock'

/**
 * One gateway per home. `text` says what runs here, best its address; `update` it once the port is known. Rejects with
 * `gateway.home_in_use` that names the other one.
 */
export async function acquireHomeLock (paths: Paths, text: string, waitMs = 0): Promise<HeldLock> {
  await sweepTempFiles(paths.state, Date.now(), LOCK_FILE)
  try {
    return await acquireLock(join(paths.state, LOCK_FILE), { text, waitMs })
  } catch (error) {
    if (!isSvcError(error) || error.code !== 'config.locked') throw error
    const { pid, holder } = error.details
    const where = typeof holder === 'string' && holder !== '' ? ` at ${holder}` : ''
    throw svcError('gateway.home_in_use',
      `another gateway (process ${String(pid)})${where} runs on ${paths.home ?? 'this system'}; stop it, or set SVC_HOME to another folder`,
      { details: { pid, address: holder ?? '' }, cause: error })
  }
}
