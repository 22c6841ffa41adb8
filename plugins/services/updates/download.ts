import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isSvcError, messageOf, pause, type Clock } from 'svc-gateway/plugin'
import { z } from 'zod'
import { shown } from './channel.js'
import { updateError } from './errors.js'
import type { ReleaseTransport } from './transport.js'

export interface Download {
  readonly url: URL
  /** Folder of this release alone: what an earlier run left there is gone on from. */
  readonly folder: string
  /** SHA-256 that the manifest promises, in hex. */
  readonly digest: string
  readonly limitBytes: number
  readonly signal: AbortSignal
  /** Bytes that are there, and of how many; null if unknown. */
  readonly onBytes: (there: number, total: number | null) => void
}

export interface DownloadDeps {
  readonly transport: ReleaseTransport
  readonly clock: Clock
}

const sidecarSchema = z.looseObject({ digest: z.string(), etag: z.string().nullable() })
/** Connections in a row that brought nothing. */
const MOST_TRIES = 5
const WAIT_MS = 1000

/**
 * Brings an archive to `<folder>/archive.tar.gz` and says where it is. Goes on where an earlier run stopped, over as many
 * connections as it takes; what came is held against the digest. Throws `system.update_download_failed` and
 * `system.update_verify_failed`, and rejects with the signal's reason; what has come stays for the next run.
 */
export async function downloadArchive (deps: DownloadDeps, job: Download): Promise<string> {
  const part = join(job.folder, 'archive.part')
  try {
    await mkdir(job.folder, { recursive: true })
    const inherited = await takePart(job, part)
    await fill(deps, job, part)
    if (await digestOf(part, job.signal) !== job.digest && inherited) {
      // bytes of an earlier run may have been damaged since: one more chance
      await rm(part)
      await fill(deps, job, part)
    }
    const got = await digestOf(part, job.signal)
    if (got !== job.digest) {
      await rm(part)
      throw updateError('system.update_verify_failed', 'the archive does not match the manifest: its SHA-256 differs', { details: { expected: job.digest, got } })
    }
    const archive = join(job.folder, 'archive.tar.gz')
    await rename(part, archive)
    return archive
  } catch (error) {
    job.signal.throwIfAborted()
    if (isSvcError(error)) throw error
    const isFull = (error as NodeJS.ErrnoException).code === 'ENOSPC'
    throw updateError('system.update_download_failed', `the release could not be downloaded from ${shown(job.url)}: ${isFull ? `the disk of ${job.folder} is full` : messageOf(error)}`, { cause: error })
  }
}

/** Whether there is a beginning of the same archive; one of another is removed. */
async function takePart ({ folder, digest }: Download, part: string): Promise<boolean> {
  const { data } = sidecarSchema.safeParse(await readSidecar(folder))
  if (data?.digest === digest) return (await sizeOf(part)) > 0
  await rm(part, { force: true })
  return false
}

async function fill (deps: DownloadDeps, job: Download, part: string): Promise<void> {
  if (job.url.protocol === 'file:') return await copy(job, part)
  for (let tries = 0; ;) {
    const before = await sizeOf(part)
    try {
      return await receive(deps.transport, job, part, before)
    } catch (error) {
      job.signal.throwIfAborted()
      // a disk that is full, and an archive that is too large, stay so
      if (isSvcError(error) || (error as NodeJS.ErrnoException).code === 'ENOSPC') throw error
      tries = await sizeOf(part) > before ? 0 : tries + 1
      if (tries === MOST_TRIES) throw error
      await pause(deps.clock, WAIT_MS * 2 ** tries, job.signal)
    }
  }
}

/** One connection: as far as it goes. */
async function receive (transport: ReleaseTransport, job: Download, part: string, offset: number): Promise<void> {
  const { data } = sidecarSchema.safeParse(await readSidecar(job.folder))
  const { status, total, etag, body } = await transport.from(job.url, { offset, etag: data?.etag ?? null }, job.signal)
  if (total !== null && total > job.limitBytes) throw tooLarge(job, total)
  await writeFile(join(job.folder, 'archive.json'), JSON.stringify({ digest: job.digest, etag }))
  const file = await open(part, status === 206 ? 'a' : 'w', 0o600)
  try {
    let there = status === 206 ? offset : 0
    for await (const chunk of body) {
      there += chunk.length
      if (there > job.limitBytes) throw tooLarge(job, there)
      await file.appendFile(chunk)
      job.onBytes(there, total)
    }
    if (total !== null && there < total) throw new Error('the server ended too early')
    await file.datasync()
  } finally {
    await file.close()
  }
}

async function copy (job: Download, part: string): Promise<void> {
  const { size } = await stat(job.url)
  if (size > job.limitBytes) throw tooLarge(job, size)
  await writeFile(part, createReadStream(job.url), { signal: job.signal })
  job.onBytes(size, size)
}

function tooLarge ({ limitBytes }: Download, bytes: number): Error {
  return updateError('system.update_download_failed', `the archive has ${bytes} bytes or more, and ${limitBytes} are allowed ([plugins.config.updates] download_limit_bytes)`)
}

async function digestOf (path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

async function readSidecar (folder: string): Promise<unknown> {
  return await readFile(join(folder, 'archive.json'), 'utf8').then(text => JSON.parse(text) as unknown).catch(() => null)
}

async function sizeOf (path: string): Promise<number> {
  return await stat(path).then(({ size }) => size, () => 0)
}
