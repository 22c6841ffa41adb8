import { spawnSync } from 'node:child_process'
import { chownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from '../program.js'

/** A user that may do nothing but what is everyone's. */
export const NOBODY = 65_534

/** Whether that user can run this checkout at all. */
export function mayBeNobody (): boolean {
  if (process.getuid?.() !== 0) return false
  return spawnSync(process.execPath, [bin, '--version'], { uid: NOBODY, gid: NOBODY }).status === 0
}

/** Makes a folder, with all that is in it, that user's. */
export function giveToNobody (folder: string): void {
  chownSync(folder, NOBODY, NOBODY)
  for (const entry of readdirSync(folder, { recursive: true }) as string[]) chownSync(join(folder, entry), NOBODY, NOBODY)
}
