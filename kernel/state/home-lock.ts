import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isSvcError, svcError, type Paths, type SvcError } from '../contract/index.js'
import { sweepTempFiles } from '../config/files/atomic-file.js'
import { makeFolders } from '../config/files/make-folders.js'
import { declareDead, livenessOf, parseToken } from '../config/files/process-identity.js'
import { acquireLock, type HeldLock } from './file-lock.js'
import { kernelLock, type KernelLock } from './kernel-lock.js'
import { isStale, readHolder, type LockHolder } from './lock-holder.js'

/** Who runs here, for people and for commands. */
const LOCK_FILE = 'gateway.lock'
/** Empty; the operating system's lock on it says whether that one lives. */
const LIFE_FILE = 'gateway.alive'

/** How long a second start waits for the first to leave: the usual case is a restart. */
const MOMENT_MS = 2_000

/** How soon a gateway in standby sees that its turn has come. */
const STANDBY_PAUSE_MS = 250

/** Begins the text of a gateway that lets its last answers end. */
const STOPPING = 'stopping'

export interface HomeHolder {
  readonly pid: number | null
  /** It lets its last answers end. */
  readonly stopping: boolean
}

export interface HomeLockOptions {
  readonly waitMs?: number
  /** Wait as long as it takes for one that runs on, too. */
  readonly standby?: boolean
  /** Called once when the other gateway is waited for. */
  readonly waiting?: (holder: HomeHolder) => void
  /** Ends the wait for it. */
  readonly signal?: AbortSignal
}

/**
 * One gateway per home. `text` says what runs here, best its address; `update` it once the port is known. Waits for one that
 * is stopping, and with `standby` for any other. Rejects with `gateway.home_in_use` that names the other one.
 */
export async function acquireHomeLock (paths: Paths, text: string, options: HomeLockOptions = {}): Promise<HeldLock> {
  const { waitMs = MOMENT_MS, standby = false, waiting = () => {}, signal } = options
  for (let told = false; ; told = true) {
    try {
      return await tryLock(paths, text, standby ? 0 : waitMs)
    } catch (error) {
      if (!isSvcError(error) || error.code !== 'gateway.home_in_use') throw error
      const { pid, address } = error.details
      const stopping = String(address).startsWith(STOPPING)
      if (!stopping && !standby) throw error
      signal?.throwIfAborted()
      if (!told) waiting({ pid: pid as number | null, stopping })
      if (standby) await pause(signal)
      signal?.throwIfAborted()
    }
  }
}

/** Ends early with the signal, whose reason the next look throws. A real timer: what is waited for is outside of this process. */
async function pause (signal: AbortSignal | undefined): Promise<void> {
  await wait(STANDBY_PAUSE_MS, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
}

/** Says that the gateway is on its way out, so that the next one waits for it. */
export async function noteStopping (lock: HeldLock, address: string): Promise<void> {
  await lock.update(`${STOPPING} ${address}`.trim())
}

async function tryLock (paths: Paths, text: string, waitMs: number): Promise<HeldLock> {
  const file = join(paths.state, LOCK_FILE)
  const deadline = performance.now() + waitMs
  // a folder that cannot be made is told by the lock file, with its reason
  await makeFolders(paths.state).catch(() => undefined)
  const life = await kernelLock(join(paths.state, LIFE_FILE), waitMs)
  if (life === 'held') throw inUse(paths, await readHolder(file).catch(() => null))
  try {
    if (life !== null) await buryFormer(file)
    await sweepTempFiles(paths.state, Date.now(), LOCK_FILE)
    const lock = await acquireLock(file, { text, waitMs: Math.max(0, deadline - performance.now()), hasLife: life !== null })
    return withLife(lock, life)
  } catch (error) {
    life?.release()
    if (!isSvcError(error) || error.code !== 'config.locked') throw error
    throw inUse(paths, await readHolder(file).catch(() => null), error)
  }
}

/**
 * The gateway that runs on this home; null when none does. For commands that work on its files. Rejects with the error of
 * the file system where the lock may not be read.
 */
export async function runningGateway (paths: Pick<Paths, 'state'>): Promise<LockHolder | null> {
  const holder = await readHolder(join(paths.state, LOCK_FILE))
  if (holder === null) return null
  if (holder.hasLife && judge(holder) === 'unknown') {
    const life = await kernelLock(join(paths.state, LIFE_FILE), 0)
    if (life === 'held') return holder
    life?.release()
    if (life !== null) return null
  }
  return isStale(holder, Date.now()) ? null : holder
}

/**
 * With the life lock in hand, its previous holder is dead, even where the process table cannot say so: in a container,
 * after a reboot. All that bears that one's name is left behind: locks, temporary files.
 */
async function buryFormer (file: string): Promise<void> {
  const former = await readHolder(file).catch(() => null)
  const identity = former === null ? null : parseToken(former.token)
  if (identity !== null && former!.hasLife) declareDead(identity)
}

function withLife (lock: HeldLock, life: KernelLock | null): HeldLock {
  return {
    path: lock.path,
    update: text => lock.update(text),
    async release () {
      await lock.release()
      life?.release()
    }
  }
}

function judge ({ token }: LockHolder): 'alive' | 'dead' | 'unknown' {
  const identity = parseToken(token)
  return identity === null ? 'unknown' : livenessOf(identity)
}

function inUse (paths: Paths, holder: LockHolder | null, cause?: unknown): SvcError {
  const { pid = null, text = '' } = holder ?? {}
  const place = holder !== null && judge(holder) === 'unknown' ? ' of another container or host' : ''
  const who = pid === null ? '' : ` (process ${pid}${place})`
  const where = text === '' ? '' : text.startsWith('http') ? ` at ${text}` : ` (${text})`
  return svcError('gateway.home_in_use',
    `another gateway${who}${where} runs on ${paths.home ?? 'this system'}; stop it, or set SVC_HOME to another folder`,
    { details: { pid, address: text }, cause })
}
