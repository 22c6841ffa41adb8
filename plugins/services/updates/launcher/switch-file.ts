import { constants, copyFile, mkdir, open, readFile, readlink, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/**
 * A change of the release in use, in `switch.json` beside the trees. The gateway writes `prepared`; the launcher makes it
 * `switched` when it changes the link, and `returned` when the new release failed; the new release makes it `confirmed`.
 */
export interface Switch {
  readonly job: string
  readonly phase: 'prepared' | 'switched' | 'confirmed' | 'returned'
  /** Names of trees. */
  readonly from: string
  readonly to: string
  /** From the start of the new release until it must have confirmed. */
  readonly answerWithinMs: number
  /** How often the launcher began to try it: it may be killed in the middle. */
  readonly attempts: number
  /** Files that the new release migrates: kept before its first start, and put back when the gateway returns. */
  readonly keep: readonly string[]
  /** Why the gateway returned. */
  readonly why: string | null
}

export const CURRENT = 'current'

const phases: readonly unknown[] = ['prepared', 'switched', 'confirmed', 'returned']

/** Null where nothing is to be changed, and for what cannot be read: then the link says what runs. */
export async function readSwitch (base: string): Promise<Switch | null> {
  try {
    const value = JSON.parse(await readFile(fileOf(base), 'utf8')) as Switch
    const isSound = phases.includes(value.phase) && [value.from, value.to].every(name => typeof name === 'string' && name === basename(name))
    return isSound ? value : null
  } catch {
    return null
  }
}

export async function writeSwitch (base: string, value: Switch): Promise<void> {
  await writeWhole(fileOf(base), `${JSON.stringify(value, null, 2)}\n`)
}

export async function removeSwitch (base: string): Promise<void> {
  await rm(fileOf(base), { force: true })
}

/** Makes `current` lead to a tree: at every moment it leads to one. */
export async function pointTo (base: string, tree: string): Promise<void> {
  const link = join(base, CURRENT)
  if (await readlink(link).catch(() => null) === tree) return
  await unlink(`${link}.new`).catch(() => undefined)
  await symlink(tree, `${link}.new`)
  await rename(`${link}.new`, link)
  await syncFolder(base)
}

/** Copies what the new release migrates. Done again after a kill: nothing has been migrated before the phase says so. */
export async function keepFiles (base: string, { job, keep }: Switch): Promise<void> {
  await dropKept(base, job)
  await mkdir(keptFolder(base, job), { recursive: true, mode: 0o700 })
  for (const [i, path] of keep.entries()) {
    // a disk that can share blocks copies nothing
    await copyFile(path, join(keptFolder(base, job), String(i)), constants.COPYFILE_FICLONE).catch(unlessAbsent)
  }
}

/** Puts back what was kept; a file that was not there goes. */
export async function putBack (base: string, { job, keep }: Switch): Promise<void> {
  for (const [i, path] of keep.entries()) {
    const kept = join(keptFolder(base, job), String(i))
    const isThere = await copyFile(kept, `${path}.back`).then(() => true, (error: NodeJS.ErrnoException) => unlessAbsent(error) ?? false)
    if (isThere) await rename(`${path}.back`, path)
    else await rm(path, { force: true })
  }
}

export async function dropKept (base: string, job: string): Promise<void> {
  await rm(keptFolder(base, job), { recursive: true, force: true })
}

/** Temp file and rename: it is never seen half-written, and is on the disk when this returns. */
export async function writeWhole (path: string, text: string): Promise<void> {
  const temp = `${path}.tmp`
  await unlink(temp).catch(() => undefined)
  const file = await open(temp, 'wx', 0o644)
  try {
    await writeFile(file, text)
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(temp, path)
  await syncFolder(dirname(path))
}

async function syncFolder (path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().catch(() => undefined).finally(() => folder.close())
}

function fileOf (base: string): string {
  return join(base, 'switch.json')
}

function keptFolder (base: string, job: string): string {
  return join(base, `kept-${job}`)
}

function unlessAbsent (error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
