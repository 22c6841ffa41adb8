import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Folders of a home that may turn read-only on their own. */
const folders = ['etc/svc', 'etc/svc/slots', 'var/lib/svc/registry', 'var/lib/svc/slots', 'var/lib/svc/models'] as const

/** A home on a small disk of its own, which can be full, and parts of which can be read-only. Needs root. */
export class FaultyDisk {
  readonly home: string
  #readOnly: string | null = null

  private constructor (home: string) {
    this.home = home
  }

  /** Null where nothing may be mounted. */
  static mount (folder: string, megabytes: number): FaultyDisk | null {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', folder], { stdio: 'ignore' })
      return new FaultyDisk(folder)
    } catch {
      return null
    }
  }

  /** Leaves less than a page. */
  fill (): void {
    const file = openSync(join(this.home, '.filled'), 'a')
    try {
      for (const size of [1 << 20, 1 << 12]) {
        const piece = Buffer.alloc(size, 1)
        for (;;) if (writeSync(file, piece) < size) break
      }
    } catch {
      // that is the point
    } finally {
      closeSync(file)
    }
  }

  drain (): void {
    rmSync(join(this.home, '.filled'), { force: true })
  }

  /** One at a time. */
  freeze (index: number): void {
    this.thaw()
    const path = join(this.home, folders[index % folders.length]!)
    if (!existsSync(path)) return
    try {
      execFileSync('mount', ['--bind', path, path], { stdio: 'ignore' })
      this.#readOnly = path
      execFileSync('mount', ['-o', 'remount,ro,bind', path], { stdio: 'ignore' })
    } catch {
      // a file in it is open for writing at this very moment
      this.thaw()
    }
  }

  thaw (): void {
    if (this.#readOnly !== null) execFileSync('umount', ['-l', this.#readOnly])
    this.#readOnly = null
  }

  unmount (): void {
    this.thaw()
    execFileSync('umount', ['-l', this.home])
  }
}
