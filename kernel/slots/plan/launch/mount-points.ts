import { chmod, mkdir } from 'node:fs/promises'
import type { MountSpec } from '../../../contract/index.js'

/**
 * Makes the folders that an engine writes to below its slot's own. They are open to all users, because an engine may
 * run as any user of its container; the folder around them is the gateway's alone, so that on this host no other user
 * gets there.
 */
export async function makeMountPoints (stateDir: string, mounts: readonly MountSpec[]): Promise<void> {
  const own = mounts.filter(({ source, readOnly }) => !readOnly && source.startsWith(`${stateDir}/`))
  if (own.length === 0) return
  await mkdir(stateDir, { recursive: true })
  await chmod(stateDir, 0o700)
  for (const { source } of own) {
    await mkdir(source, { recursive: true })
    await chmod(source, 0o777)
  }
}
