import { constants, readFileSync, unlinkSync } from 'node:fs'
import { copyFile, link, rename, unlink, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { svcError } from '../contract/index.js'
import { sweepTempFiles } from '../config/files/atomic-file.js'
import type { WithLock } from '../config/locker.js'
import { makeFolders } from '../config/files/make-folders.js'
import { uniqueToken } from '../config/files/process-identity.js'
import { SerialQueue } from '../async/serial-queue.js'
import { writeFailed } from '../config/files/write-errors.js'
import { HEARTBEAT_MS, isStale, lockContent, readHolder, type LockHolder } from './lock-holder.js'

export interface LockOptions {
  /** For the one who waits: an address, a purpose. */
  readonly text?: string
  /** Milliseconds to wait for another holder. Default 5000. */
  readonly waitMs?: number
  /** Stands in the file; `LockHolder` says what it means. */
  readonly hasLife?: boolean
}

export interface HeldLock {
  readonly path: string
  /** Replaces the text. Rejects with `config.write_failed` where that cannot be written. */
  update (text: string): Promise<void>
  /** Idempotent; never rejects. */
  release (): Promise<void>
}

/** Locks of this process by token, for the last moment before it exits. */
const held = new Map<string, string>()
/** By path, tokens of holdings that are over and whose file could not be removed: this process may take them again. */
const leftovers = new Map<string, string>()
let releasesAtExit = false
/** When the removal of such a file is tried again; the last pause repeats. */
const REMOVE_AGAIN_MS = [50, 200, 1_000, 5_000] as const
/** What a caller gets to wait who stood in line for longer than it would have waited. */
const LEAST_WAIT_MS = 100

/**
 * Takes a lock that holds between processes: a file that only one can create, with the holder's identity in it. The lock
 * of a process that is gone is taken over (design.md of this folder says why that is free of races). Rejects with
 * `config.locked` after `waitMs`, with `config.write_failed` where no file can be made. Not re-entrant.
 */
export async function acquireLock (path: string, options: LockOptions = {}): Promise<HeldLock> {
  const { text = '', waitMs = 5000, hasLife = false } = options
  const token = uniqueToken()
  const temp = join(dirname(path), `.${basename(path)}.${token}.tmp`)
  try {
    await makeFolders(dirname(path))
    await writeFile(temp, lockContent(token, text, hasLife), { flag: 'wx' })
    return hold(path, await contend(path, temp, token, waitMs), hasLife)
  } catch (error) {
    throw 'syscall' in (error as object) ? writeFailed(null, path, error) : error
  } finally {
    await unlink(temp).catch(() => undefined)
  }
}

/**
 * One lock at a time for this process too: its own callers queue here instead of polling the file. Each waits `waitMs` in
 * all, in the queue and for another process.
 */
export function createWithLock (options: LockOptions = {}): WithLock {
  const queues = new Map<string, SerialQueue>()
  const { waitMs = 5000 } = options
  return async (file, work) => {
    const deadline = performance.now() + waitMs
    const queue = queues.get(file) ?? new SerialQueue()
    queues.set(file, queue)
    return queue.run(async () => {
      const leftMs = Math.max(Math.min(waitMs, LEAST_WAIT_MS), deadline - performance.now())
      const lock = await acquireLock(file, { ...options, waitMs: leftMs })
      try {
        return await work()
      } finally {
        await lock.release()
      }
    })
  }
}

/** The token under which the lock is held: that of `temp`, or an own one that was left over. */
async function contend (path: string, temp: string, token: string, waitMs: number): Promise<string> {
  const deadline = performance.now() + waitMs
  while (!await createFrom(temp, path)) {
    const holder = await readHolder(path)
    // no await between the look and the removal: of several callers in this process one gets it
    if (holder !== null && leftovers.get(path) === holder.token && leftovers.delete(path)) return holder.token
    if (holder !== null && isStale(holder, Date.now()) && await breakLock(path, holder, temp)) continue
    if (performance.now() >= deadline) throw locked(path, holder)
    // jitter, so that contenders do not stay in step; a real timer, since what is waited for is outside of this process
    if (holder !== null) await wait(2 + Math.random() * 20)
  }
  return token
}

/**
 * Removes the lock of a dead holder. Only the one contender that creates the claim file for exactly this holding may;
 * it looks once more, and no other can have removed the lock meanwhile. True when the lock may be free now.
 */
async function breakLock (path: string, stale: LockHolder, temp: string): Promise<boolean> {
  const claims: string[] = []
  for (;;) {
    const claim = `${path}.${stale.token}.${claims.length}`
    claims.push(claim)
    if (await createFrom(temp, claim)) break
    const claimant = await readHolder(claim)
    if (claimant === null) return true
    // a claimant that died in the act leaves its claim; the next number is free for all
    if (!isStale(claimant, Date.now())) return false
  }
  const now = await readHolder(path)
  if (now?.token === stale.token) await unlink(path)
  for (const claim of claims) await unlink(claim).catch(() => undefined)
  // a process died here: it may have left the temporary file of this lock too; its others are for the lock's holder to judge
  await sweepTempFiles(dirname(path), Date.now(), basename(path))
  return true
}

/** Makes `path` with the content of `temp` in one step, or says that it exists. */
async function createFrom (temp: string, path: string): Promise<boolean> {
  try {
    await link(temp, path).catch(async (error: NodeJS.ErrnoException) => {
      if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes(error.code ?? '')) throw error
      await copyFile(temp, path, constants.COPYFILE_EXCL)
    })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function hold (path: string, token: string, hasLife: boolean): HeldLock {
  if (!releasesAtExit) process.once('exit', releaseAll)
  releasesAtExit = true
  held.set(token, path)
  const heartbeat = setInterval(() => { utimes(path, new Date(), new Date()).catch(() => undefined) }, HEARTBEAT_MS)
  heartbeat.unref()
  return {
    path,
    async update (text) {
      const temp = join(dirname(path), `.${basename(path)}.${uniqueToken()}.tmp`)
      try {
        await writeFile(temp, lockContent(token, text, hasLife))
        if ((await readHolder(path))?.token === token) await rename(temp, path)
      } catch (error) {
        throw 'syscall' in (error as object) ? writeFailed(null, path, error) : error
      } finally {
        await unlink(temp).catch(() => undefined)
      }
    },
    async release () {
      clearInterval(heartbeat)
      if (!held.delete(token)) return
      try {
        if ((await readHolder(path))?.token === token) await unlink(path)
      } catch {
        // a folder that is read-only for a moment: the file names a live process, so no other process would ever take it over
        leftovers.set(path, token)
        removeLater(path, token, 0)
      }
    }
  }
}

function removeLater (path: string, token: string, tries: number): void {
  setTimeout(() => {
    if (leftovers.get(path) !== token) return
    if (removeOwn(path, token)) leftovers.delete(path)
    else removeLater(path, token, tries + 1)
  }, REMOVE_AGAIN_MS[Math.min(tries, REMOVE_AGAIN_MS.length - 1)]).unref()
}

function releaseAll (): void {
  for (const [token, path] of held) removeOwn(path, token)
  for (const [path, token] of leftovers) removeOwn(path, token)
}

/** Whether nothing of that holding is left. Synchronous, so that no other process takes it meanwhile. */
function removeOwn (path: string, token: string): boolean {
  try {
    if (readFileSync(path, 'utf8').includes(token)) unlinkSync(path)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

function locked (path: string, holder: LockHolder | null): Error {
  const who = holder === null ? 'another process' : holder.pid === 0 ? 'an unknown process' : `process ${holder.pid}`
  const text = holder === null || holder.text === '' ? '' : ` (${holder.text})`
  return svcError('config.locked', `${path} is held by ${who}${text}; try again, or stop that process`, {
    details: { lock: basename(path), pid: holder?.pid ?? null, holder: holder?.text ?? '', retry_after_s: 1 }
  })
}
