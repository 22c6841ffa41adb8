import { pause, type Clock, type Logger } from 'svc-gateway/plugin'
import type { HubClient, HubFileRef } from '../../hub/ref.js'
import { pullError } from '../errors.js'
import type { FileHash, FileHashes } from './file-hash.js'
import { PartFile, type PartIdentity } from './part-file.js'
import { verdictOn, type RetryRules } from './retry.js'

export interface DownloadDeps {
  readonly hub: HubClient
  readonly clock: Clock
  readonly log: Logger
  readonly hashes: FileHashes
  readonly rules: RetryRules
  readonly stallMs: number
}

export interface DownloadJob {
  readonly file: HubFileRef
  readonly identity: PartIdentity
  /** Folder and name of the part file. */
  readonly folder: string
  readonly key: string
  readonly boot: string
  readonly signal: AbortSignal
  /** Bytes that are there now, and how many of them were just received. */
  readonly onBytes: (offset: number, received: number) => void
  /** What it does besides downloading; empty when it just downloads. */
  readonly onMessage: (message: string) => void
}

/**
 * Gets one file into its part file, whole and checked. Goes on where an earlier run stopped, over as many connections as it
 * takes. Resolves with the hash of what lies on the disk. Rejects with a `SvcError`, or with the signal's reason; the part
 * stays for the next run, except when its content proved wrong.
 */
export async function download (deps: DownloadDeps, job: DownloadJob): Promise<string> {
  const part = await PartFile.take(job.folder, job.key, job.identity, job.boot)
  try {
    const inherited = part.offset > 0
    const hex = await fill(deps, job, part)
    if (isRight(job.identity, hex)) return hex
    // bytes of an earlier run may have been damaged since: they get one more chance
    if (inherited) {
      deps.log.warn({ file: job.file.path, repo: job.file.repo }, 'what an earlier run left of a file is damaged; it is downloaded again')
      await part.restart()
      const again = await fill(deps, job, part)
      if (isRight(job.identity, again)) return again
    }
    await part.restart()
    throw pullError('pull.checksum_mismatch', `${job.file.path} does not match the hub: its checksum differs; pull again`,
      { details: { repo: job.file.repo, path: job.file.path, expected: job.identity.sha256 ?? job.identity.gitSha1, got: hex } })
  } finally {
    await part.close()
  }
}

async function fill (deps: DownloadDeps, job: DownloadJob, part: PartFile): Promise<string> {
  let hash = deps.hashes.follow(part.path, job.identity)
  const restart = async (): Promise<void> => {
    hash.close()
    await part.restart()
    hash = deps.hashes.follow(part.path, job.identity)
    job.onBytes(0, 0)
  }
  try {
    job.onBytes(part.offset, 0)
    hash.advance(part.offset)
    let tries = 0
    while (!part.isComplete) {
      const before = part.offset
      try {
        job.signal.throwIfAborted()
        await receive(deps, job, part, () => hash, restart)
      } catch (error) {
        // a disk that got full has taken a part of the last piece
        job.onBytes(part.offset, 0)
        job.signal.throwIfAborted()
        tries = part.offset > before ? 1 : tries + 1
        await recover(deps, job, error, tries)
      }
    }
    job.onMessage('checking')
    await part.sync()
    return await hash.digest()
  } finally {
    job.onMessage('')
    hash.close()
  }
}

/** One connection: as far as it goes. */
async function receive (
  { hub, stallMs }: DownloadDeps, job: DownloadJob, part: PartFile, hash: () => FileHash, restart: () => Promise<void>
): Promise<void> {
  const { file, identity, signal } = job
  const answer = await hub.open(file, { from: part.offset, etag: part.etag, stallMs, signal })
  if (answer.size !== null && answer.size !== identity.size) throw wrongSize(file, identity.size, answer.size)
  // a server that sends all of it anyway, or has other bytes than those we hold
  if (answer.from !== part.offset) await restart()
  if (answer.from !== part.offset) throw wrongSize(file, identity.size, answer.size)
  await part.sentBy(answer.etag)
  for await (const chunk of answer.body) {
    if (part.offset + chunk.length > identity.size) throw wrongSize(file, identity.size, part.offset + chunk.length)
    await part.append(chunk)
    hash().advance(part.offset)
    job.onBytes(part.offset, chunk.length)
    signal.throwIfAborted()
  }
  if (!part.isComplete) throw new Error('the server ended too early')
}

async function recover ({ clock, log, rules }: DownloadDeps, job: DownloadJob, error: unknown, tries: number): Promise<void> {
  const verdict = verdictOn(error, tries, rules)
  if (verdict.kind === 'fail') throw verdict.error
  const { waitS, why } = verdict
  log.debug({ file: job.file.path, repo: job.file.repo, tries, wait_s: waitS }, `a download waits before it goes on: ${why}`)
  job.onMessage(`waiting ${Math.ceil(waitS)} s: ${why}`)
  await pause(clock, waitS * 1000, job.signal)
  job.signal.throwIfAborted()
  job.onMessage('')
}

function isRight ({ sha256, gitSha1 }: PartIdentity, hex: string): boolean {
  const expected = sha256 ?? gitSha1
  return expected === null || expected === hex
}

function wrongSize (file: HubFileRef, expected: number, got: number | null): Error {
  return pullError('pull.size_mismatch', `${file.path} does not match the hub: ${expected} bytes were announced and ${got ?? 'another number'} sent; pull again`,
    { details: { repo: file.repo, path: file.path, expected, got } })
}
