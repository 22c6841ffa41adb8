import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, symlinkSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { root } from './repository.js'

const SHARED = '/dev/shm'
const PREFIX = 'svc-test-'
/** What the homes of all processes of a run take at once is a small part of it. */
const ROOM_BYTES = 4 * 2 ** 30

/**
 * Has this process, and the programs that it starts, keep temporary files in memory, where the machine has room: a test
 * that writes a file for good waits for no disk then, and the others wait for none behind it. `TMPDIR` in the environment
 * stays as it is. Returns the folder; null if they stay on the disk.
 */
export function keepTemporaryFilesInMemory (): string | null {
  if (process.env.TMPDIR !== undefined || !hasRoom()) return null
  sweep()
  const folder = `${SHARED}/${PREFIX}${process.pid}`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  // as the usual one is: a test may go on as another user
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  process.on('exit', () => remove(folder))
  return folder
}

/**
 * The name that the folders of tests begin with, in a folder of `keepTemporaryFilesInMemory`. Programs in them find the
 * packages of the checkout, as in the place that the runner has for them.
 */
export function testFolders (memory: string): string {
  const folder = join(memory, 'checkout')
  mkdirSync(folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'test')
}

/** A container's is small, and runs no programs. */
function hasRoom (): boolean {
  try {
    const [, , , options] = readFileSync('/proc/self/mounts', 'utf8').split('\n').map(line => line.split(' ')).find(([, at, type]) => at === SHARED && type === 'tmpfs') ?? []
    const { bavail, bsize } = statfsSync(SHARED)
    return options !== undefined && !options.split(',').includes('noexec') && Math.min(bavail * bsize, freemem()) > ROOM_BYTES
  } catch {
    return false
  }
}

/** Those of processes that were killed. */
function sweep (): void {
  for (const name of readdirSync(SHARED).filter(name => name.startsWith(PREFIX))) {
    if (!existsSync(`/proc/${name.slice(PREFIX.length)}`)) remove(`${SHARED}/${name}`)
  }
}

function remove (folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // another process is at it, or a program that a test left writes there: the next run removes it
  }
}
