import { stat } from 'node:fs/promises'
import { isSvcError, messageOf, type Clock, type SvcError } from 'svc-gateway/plugin'
import { download, type DownloadDeps } from './file/download.js'
import { modelError } from './errors.js'
import { Meter } from './file/meter.js'
import { partBytes, placePart, removePart, type PartIdentity } from './file/part-file.js'
import type { Live, HubRecord, RecordFile } from './record.js'

export interface RunDeps extends DownloadDeps {
  readonly clock: Clock
  readonly parallelFiles: number
  readonly boot: string
}

export interface RunEvents {
  /** Something that a snapshot shows has changed. */
  readonly changed: () => void
  /** Every file is complete: from here on there is no way back. */
  readonly placing: () => void
  /** A file is complete and checked. */
  readonly checked: (index: number, hex: string) => void
}

/**
 * The work of one pull, once: every file into its part, then all of them into their places. Nothing appears at its place
 * before all is complete, so a model that is there already is never half of it replaced.
 */
export class PullRun {
  readonly #deps: RunDeps
  readonly #record: HubRecord
  readonly #events: RunEvents
  readonly #meter: Meter
  readonly #done: number[]
  readonly #messages: string[]

  /** `there` is what `bytesThere` says. */
  constructor (deps: RunDeps, record: HubRecord, there: readonly number[], events: RunEvents) {
    this.#deps = deps
    this.#record = record
    this.#events = events
    this.#meter = new Meter(deps.clock)
    this.#done = [...there]
    this.#messages = record.files.map(() => '')
  }

  get live (): Live {
    return { done: this.#done, speedBps: this.#meter.bytesPerSecond, message: this.#messages.find(message => message !== '') ?? '' }
  }

  get bytesDone (): number { return this.#done.reduce((sum, bytes) => sum + bytes, 0) }

  /** Bytes that it will still write. */
  get bytesToGo (): number { return toGo(this.#record, this.#done) }

  /** Resolves with the hash of each file. Rejects with a `SvcError`, or with the signal's reason; the parts stay. */
  async run (signal: AbortSignal): Promise<readonly string[]> {
    const { files } = this.#record
    const failed = new AbortController()
    const any = AbortSignal.any([signal, failed.signal])
    const hashes: string[] = []
    const line = files.map((_, i) => i)
    const worker = async (): Promise<void> => {
      for (let i = line.shift(); i !== undefined && !any.aborted; i = line.shift()) hashes[i] = await this.#get(i, any)
    }
    // the first failure ends the others; all of them are waited for, so that nothing is written when this is over
    const workers = Array.from({ length: Math.min(this.#deps.parallelFiles, files.length) }, async () => {
      try {
        await worker()
      } catch (error) {
        if (!failed.signal.aborted) failed.abort(asSvcError(error))
        throw error
      }
    })
    const outcomes = await Promise.allSettled(workers)
    signal.throwIfAborted()
    if (outcomes.some(({ status }) => status === 'rejected')) throw failed.signal.reason
    this.#events.placing()
    for (const file of files) await this.#place(file)
    return hashes
  }

  /** Removes the parts. What is at its place already stays there. */
  async discard (): Promise<void> {
    for (const { staging, key } of this.#record.files) await removePart(staging, key)
    this.#done.fill(0)
  }

  async #get (i: number, signal: AbortSignal): Promise<string> {
    const file = this.#record.files[i]!
    const { repo, commit } = this.#record
    const there = await this.#atPlace(file, i, signal)
    if (there !== null) return there
    const hex = await download(this.#deps, {
      file: { repo, commit, path: file.hf_filename },
      identity: identityOf(file),
      folder: file.staging,
      key: file.key,
      boot: this.#deps.boot,
      signal,
      onBytes: (offset, received) => {
        this.#done[i] = offset
        if (received > 0) this.#meter.add(received)
        this.#events.changed()
      },
      onMessage: message => this.#say(i, message)
    })
    this.#events.checked(i, hex)
    return hex
  }

  /** The hash of a file that is at its place already: of an earlier pull, or of this one before the gateway was killed. */
  async #atPlace (file: RecordFile, i: number, signal: AbortSignal): Promise<string | null> {
    const stats = await stat(file.dest).catch(() => null)
    const expected = file.sha256 ?? file.gitSha1
    if (stats === null || !stats.isFile() || stats.size !== file.size || expected === null) return null
    this.#say(i, 'checking what is there')
    const hash = this.#deps.hashes.follow(file.dest, file)
    const leave = (): void => hash.close()
    signal.addEventListener('abort', leave, { once: true })
    try {
      hash.advance(file.size)
      const hex = await hash.digest()
      if (hex !== expected) return null
      this.#done[i] = file.size
      this.#events.checked(i, hex)
      return hex
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      signal.removeEventListener('abort', leave)
      hash.close()
      this.#say(i, '')
    }
  }

  async #place (file: RecordFile): Promise<void> {
    try {
      await placePart(file.staging, file.key, file.dest)
    } catch (error) {
      // it was there before, or was put there by the run that was killed
      const isThere = await stat(file.dest).then(({ size }) => size === file.size, () => false)
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !isThere) throw asSvcError(error)
    }
  }

  #say (i: number, message: string): void {
    if (this.#messages[i] === message) return
    this.#messages[i] = message
    this.#events.changed()
  }
}

/** Bytes of each file that earlier runs left, in parts or in place. */
export async function bytesThere ({ files }: HubRecord, boot: string): Promise<readonly number[]> {
  return await Promise.all(files.map(async file => {
    const placed = await stat(file.dest).then(stats => stats.isFile() && stats.size === file.size, () => false)
    return placed ? file.size : await partBytes(file.staging, file.key, identityOf(file), boot)
  }))
}

/** Pure. */
export function toGo ({ files }: HubRecord, there: readonly number[]): number {
  return files.reduce((sum, file, i) => sum + Math.max(0, file.size - there[i]!), 0)
}

export function asSvcError (error: unknown): SvcError {
  if (isSvcError(error)) return error
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return modelError('model.insufficient_disk', 'the disk is full; make room and pull again: what has been downloaded is kept', { cause: error })
  }
  return modelError('model.pull_failed', `the pull failed: ${messageOf(error)}`, { cause: error })
}

function identityOf ({ size, sha256, gitSha1 }: RecordFile): PartIdentity {
  return { size, sha256, gitSha1 }
}
