import { constants, readFileSync, unlinkSync } from 'node:fs'
import { copyFile, link, mkdir, rename, unlink, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { svcError } from '../contract/index.js'
import { sweepTempFiles } from '../config/atomic-file.js'
import type { WithLock } from '../config/locker.js'
import { uniqueToken } from '../config/process-identity.js'
import { createSerial } from '../config/serial.js'
import { writeFailed } from '../config/write-errors.js'
import { HEARTBEAT_MS, isStale, lockContent, readHolder, type LockHolder } from './lock-holder.js'

export interface LockOptions {
  /** For the one who waits: an address, a purpose. */
  readonly text?: string
  /** Milliseconds to wait for another holder. Default 5000. */
  readonly waitMs?: number
}

export interface HeldLock {
  readonly path: string
  /** Replaces the text. */
  update (text: string): Promise<void>
  /** Idempotent; never rejects. */
  release (): Promise<void>
}

/** Locks of this process by token, for the last moment before it exits. */
const held = new Map<string, string>()

/**
 * Takes a lock that holds between processes: a file that only one can create, with the holder's identity in it. The lock
 * of a process that is gone is taken over (design.md of this folder says why that is free of races). Rejects with
 * `config.locked` after `waitMs`, with `config.write_failed` where no file can be made. Not re-entrant.
 */
export async function acquireLock (path: string, options: LockOptions = {}): Promise<HeldLock> {
  const token = uniqueToken()
  const temp = join(dirname(path), `.${basename(path)}.${token}.tmp`)
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(temp, lockContent(token, options.text ?? ''), { flag: 'wx' })
    await contend(path, temp, options.waitMs ?? 5000)
  } catch (error) {
    throw 'syscall' in (error as object) ? writeFailed(null, path, error) : error
  } finally {
    await unlink(temp).catch(() => undefined)
  }
  return hold(path, token)
}

/** One lock at a time for this process too: its own callers queue here instead of polling the file. */
export function createWithLock (options: LockOptions = {}): WithLock {
  const queues = new Map<string, ReturnType<typeof createSerial>>()
  return async (file, work) => {
    const queue = queues.get(file) ?? createSerial()
    queues.set(file, queue)
    return queue(async () => {
      const lock = await acquireLock(file, options)
      try {
        return await work()
      } finally {
        await lock.release()
      }
    })
  }
}

async function contend (path: string, temp: string, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs
  while (!await createFrom(temp, path)) {
    const holder = await readHolder(path)
    if (holder !== null && isStale(holder, Date.now()) && await breakLock(path, holder, temp)) continue
    if (performance.now() >= deadline) throw locked(path, holder)
    // jitter, so that contenders do not stay in step; a real timer, since what is waited for is outside of this process
    if (holder !== null) await wait(2 + Math.random() * 20)
  }
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

function hold (path: string, token: string): HeldLock {
  if (held.size === 0) process.once('exit', releaseAll)
  held.set(token, path)
  const heartbeat = setInterval(() => { utimes(path, new Date(), new Date()).catch(() => undefined) }, HEARTBEAT_MS)
  heartbeat.unref()
  return {
    path,
    async update (text) {
      const temp = join(dirname(path), `.${basename(path)}.${uniqueToken()}.tmp`)
      try {
        await writeFile(temp, lockContent(token, text))
        if ((await readHolder(path))?.token === token) await rename(temp, path)
      } finally {
        await unlink(temp).catch(() => undefined)
      }
    },
    async release () {
      clearInterval(heartbeat)
      if (!held.delete(token)) return
      if (held.size === 0) process.off('exit', releaseAll)
      try {
        if ((await readHolder(path))?.token === token) await unlink(path)
      } catch {
        // the file stays and names a holding that is over; the next contender finds this process gone, or waits for it
      }
    }
  }
}

function releaseAll (): void {
  for (const [token, path] of held) {
    try {
      if (readFileSync(path, 'utf8').includes(token)) unlinkSync(path)
    } catch {
      // gone already
    }
  }
}

function locked (path: string, holder: LockHolder | null): Error {
  const who = holder === null ? 'another process' : holder.pid === 0 ? 'an unknown process' : `process ${holder.pid}`
  const text = holder === null || holder.text === '' ? '' : ` (${holder.text})`
  return svcError('config.locked', `${path} is held by ${who}${text}; try again, or stop that process`, {
    details: { lock: basename(path), pid: holder?.pid ?? null, holder: holder?.text ?? '', retry_after_s: 1 }
  })
}
