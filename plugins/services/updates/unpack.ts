import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { isSvcError, messageOf } from 'svc-gateway/plugin'
import type { Header } from 'tar-stream'
import { updateError } from './errors.js'
import { treeVersion } from './standing.js'

export interface Unpacking {
  readonly archive: string
  /** Where the trees of releases are. */
  readonly base: string
  readonly version: string
  readonly limitBytes: number
  readonly signal: AbortSignal
}

/** The library's streams are not Node's own, and their types are those of a package that is not ours. */
interface Extract {
  on (event: 'entry', listener: (header: Header, stream: Readable, next: (error?: Error) => void) => void): unknown
}

const MOST_ENTRIES = 100_000
const MARK = '.new'

/**
 * Unpacks an archive to `svc-<version>` below `base` and says its name. It is unpacked beside and renamed when it is whole, so a
 * tree of that name is never a part of one. An earlier tree of the same version goes to `.stale`; a folder that is no release is
 * left alone. Throws `system.update_extract_failed`, and `system.update_verify_failed` for an archive of another version.
 */
export async function unpackRelease (job: Unpacking): Promise<string> {
  const name = `svc-${job.version}`
  const beside = join(job.base, `${name}${MARK}`)
  const place = join(job.base, name)
  try {
    await rm(beside, { recursive: true, force: true })
    await mkdir(beside, { mode: 0o755 })
    await extractTo(beside, job)
    const found = await treeVersion(beside)
    if (found !== job.version) {
      throw updateError('system.update_verify_failed', `the archive holds ${found ?? 'no release'}, and the manifest says ${job.version}`)
    }
    const there = await readdir(place).catch(() => null)
    if (there !== null && there.length > 0) {
      if (await treeVersion(place) === null) throw new Error(`${place} exists and is not a release; move it away`)
      await rm(`${place}.stale`, { recursive: true, force: true })
      await rename(place, `${place}.stale`)
    }
    await rename(beside, place)
    return name
  } catch (error) {
    await rm(beside, { recursive: true, force: true }).catch(() => undefined)
    job.signal.throwIfAborted()
    if (isSvcError(error)) throw error
    const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC'
    throw updateError('system.update_extract_failed', `the release cannot be unpacked: ${isFull ? `the disk of ${job.base} is full` : messageOf(error)}`, { cause: error })
  }
}

async function extractTo (folder: string, { archive, limitBytes, signal }: Unpacking): Promise<void> {
  const { extract } = await import('tar-stream')
  const entries = extract()
  const budget = { bytes: limitBytes, entries: MOST_ENTRIES }
  let placing = Promise.resolve();
  (entries as unknown as Extract).on('entry', (header, stream, next) => {
    stream.on('error', () => {})
    placing = place(folder, header, stream, budget)
    placing.then(() => next(), (error: Error) => next(error))
  })
  try {
    await pipeline(createReadStream(archive), createGunzip(), entries as unknown as NodeJS.WritableStream, { signal })
  } catch (error) {
    // the pipeline only sees that its end was closed, and before the member that closed it has told why
    await placing
    throw error
  }
}

/** One member. Folders are made for the files in them; nothing that exists is written again. */
async function place (
  folder: string, header: Header, stream: Readable, budget: { bytes: number, entries: number }
): Promise<void> {
  const path = pathOf(header)
  budget.entries--
  budget.bytes -= header.size ?? 0
  if (budget.entries < 0) throw new Error(`it has more than ${MOST_ENTRIES} members`)
  if (budget.bytes < 0) throw new Error('it holds more than may be unpacked ([plugins.config.updates] unpacked_limit_bytes)')
  if (header.type !== 'file' || path === '') return void stream.resume()
  const target = join(folder, path)
  await mkdir(dirname(target), { recursive: true })
  const isProgram = ((header.mode ?? 0) & 0o100) !== 0
  const file = await open(target, 'wx', isProgram ? 0o755 : 0o644)
  try {
    for await (const chunk of stream) await file.appendFile(chunk as Buffer)
  } finally {
    await file.close()
  }
}

/** Below the one folder that everything is in. Throws for what leads out of it, and for what is neither a file nor a folder. */
function pathOf ({ name, type }: Header): string {
  const shown = JSON.stringify(name.slice(0, 200))
  if (type !== 'file' && type !== 'directory') throw new Error(`its member ${shown} is a ${type === 'symlink' ? 'symbolic link' : type}, which no release has`)
  const parts = name.replace(/^(\.\/+)+/, '').split('/').filter(part => part !== '' && part !== '.')
  if (/^[/\\]/.test(name) || /[\\\0]/.test(name) || /^[A-Za-z]:/.test(name) || parts.includes('..')) throw new Error(`its member ${shown} leads out of it`)
  return parts.slice(1).join('/')
}
