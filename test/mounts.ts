import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** A folder on a disk of its own, gone after the test. Null where nothing may be mounted. */
export function smallDisk (t: Test, megabytes: number): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'))
  const mounted = mount('-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder)
  t.teardown(() => {
    if (mounted) execFileSync('umount', ['-l', folder])
    rmdirSync(folder)
  })
  return mounted ? folder : null
}

/** Makes a folder read-only until the function that it gives is called, or the test is over. Null where that may not be done. */
export function readOnly (t: Test, folder: string): (() => void) | null {
  if (!mount('--bind', folder, folder)) return null
  let isMounted = true
  const release = (): void => {
    if (isMounted) execFileSync('umount', ['-l', folder])
    isMounted = false
  }
  t.teardown(release)
  if (mount('-o', 'remount,ro,bind', folder)) return release
  release()
  return null
}

function mount (...args: readonly string[]): boolean {
  try {
    execFileSync('mount', args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
