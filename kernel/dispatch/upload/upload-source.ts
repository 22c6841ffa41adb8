import type { IncomingMessage } from 'node:http'
import type { Clock, SvcError, Timer } from '../../contract/index.js'
import { formBoundary } from '../../contract/http/form.js'
import { invalidForm, notAForm } from '../../contract/http/form-errors.js'
import { FieldFinder, type FoundField } from './field-finder.js'
import { keepFreed } from '../body/body-blocks.js'
import { UploadBody, type Replacement } from './upload-body.js'
import { UploadBuffer } from './upload-buffer.js'
import type { UploadMemory } from './upload-memory.js'
import { packedForm, spoolFailed, tooLarge, uploadStalled } from './upload-errors.js'

export interface UploadSourceOptions {
  readonly clock: Clock
  /** Folder for what has to wait on disk. */
  readonly spool: string
  readonly memory: UploadMemory
  readonly limitBytes: number
  /** Longest pause of the client; 0 is no limit. */
  readonly idleMs: number
  /** The field that was looked for has come, or the form has ended without it. Called once, unless `failed` was. */
  readonly found: (field: FoundField | null) => void
  /** The upload cannot go on. */
  readonly failed: (error: SvcError) => void
}

const LONGEST_VALUE = 4096
const LARGE_BYTES = 1024 * 1024
/** How long a client that was answered may go on sending before its connection is cut. */
const LINGER_MS = 5_000

/** The client's side of an upload: reads the form, finds one field in it, and keeps the bytes for the reader of `body`. */
export class UploadSource {
  readonly #request: IncomingMessage
  readonly #options: UploadSourceOptions
  readonly #buffer: UploadBuffer
  readonly #finder: FieldFinder | null
  readonly #streamFinder: FieldFinder | null
  #body: UploadBody | null = null
  #idle: Timer | null = null
  #lastByteAt: number
  #bytes = 0
  #open = true

  /** @param field name of the field to look for */
  constructor (request: IncomingMessage, field: string, options: UploadSourceOptions) {
    const { clock, spool: folder, memory, failed } = options
    this.#request = request
    this.#options = options
    this.#lastByteAt = clock.monotonic()
    const boundary = formBoundary(request.headers['content-type'] ?? '')
    this.#finder = boundary === null ? null : new FieldFinder({ boundary, name: field, longestValue: LONGEST_VALUE })
    this.#streamFinder = boundary === null ? null : new FieldFinder({ boundary, name: 'stream', longestValue: LONGEST_VALUE })
    this.#buffer = new UploadBuffer({
      clock, folder, memory, room: () => request.resume(), failed: error => failed(spoolFailed(error))
    })
  }

  /** What has come so far. */
  get bytes (): number { return this.#bytes }

  /** Whether the form, as far as it has come, asks for a stream. */
  get wantsStream (): boolean {
    return /^\s*(true|1|on|yes)\s*$/i.test(this.#streamFinder?.field?.value ?? '')
  }

  start (): void {
    const { limitBytes, failed } = this.#options
    const { headers } = this.#request
    // of a connection that breaks the answer's side hears as well
    this.#request.on('error', () => {})
    const coding = headers['content-encoding']?.trim().toLowerCase() ?? ''
    if (coding !== '' && coding !== 'identity') return failed(packedForm(coding))
    if (this.#finder === null) return failed(notAForm(headers['content-type'], ' with `file` and `model`'))
    if (Number(headers['content-length'] ?? 0) > limitBytes) return failed(tooLarge(limitBytes))
    if (Number(headers['content-length'] ?? 0) > LARGE_BYTES) keepFreed()
    this.#request.on('data', this.#received)
    this.#request.on('end', this.#ended)
    this.#watchIdle()
  }

  /** The form with one range replaced, to be read once. */
  body (replacement: Replacement | null): UploadBody {
    return this.#body = new UploadBody(this.#buffer, replacement)
  }

  /** Header for the body's length, when the client told it; otherwise it goes out in chunks, as it came. */
  lengthHeader (replacement: Replacement | null): string[] {
    const given = this.#request.headers['content-length']
    if (given === undefined) return []
    const grown = replacement === null ? 0 : replacement.bytes.length - (replacement.end - replacement.start)
    return ['content-length', String(Number(given) + grown)]
  }

  /** Frees memory and disk. The client may still be sending. Idempotent. */
  close (): void {
    if (!this.#open) return
    this.#open = false
    this.#idle?.cancel()
    this.#buffer.close()
    this.#body?.destroy()
    this.#request.off('data', this.#received)
    this.#request.off('end', this.#ended)
    if (!this.#request.complete) this.#linger()
  }

  readonly #received = (chunk: Buffer): void => {
    const { limitBytes, clock, failed } = this.#options
    this.#bytes += chunk.length
    this.#lastByteAt = clock.monotonic()
    if (this.#bytes > limitBytes) return failed(tooLarge(limitBytes))
    const finder = this.#finder!
    const isLooking = !finder.done
    const isIn = finder.isIn(chunk)
    if (isLooking) finder.push(chunk, isIn)
    this.#streamFinder!.push(chunk, isIn)
    if (!this.#buffer.push(chunk)) this.#request.pause()
    if (isLooking && finder.done) this.#settle(finder)
  }

  #settle ({ problem, field }: FieldFinder): void {
    if (problem === null) this.#options.found(field)
    else this.#options.failed(invalidForm(problem))
  }

  readonly #ended = (): void => {
    this.#idle?.cancel()
    if (this.#finder!.done) this.#buffer.end()
    else this.#options.found(null)
  }

  /** A client that stops sending must not keep a slot for ever. */
  #watchIdle (): void {
    const { clock, idleMs, failed } = this.#options
    if (idleMs === 0) return
    const look = (): void => {
      const quietMs = this.#request.isPaused() ? 0 : clock.monotonic() - this.#lastByteAt
      if (quietMs >= idleMs) failed(uploadStalled(idleMs))
      else this.#idle = clock.setTimer(idleMs - quietMs, look)
    }
    this.#idle = clock.setTimer(idleMs, look)
  }

  /**
   * The answer came before the upload was complete. To close now would reset the connection, and the client might
   * never see the answer: what still comes is read and dropped, for a while.
   */
  #linger (): void {
    const request = this.#request
    const timer = this.#options.clock.setTimer(LINGER_MS, () => request.socket.destroy())
    const done = (): void => timer.cancel()
    request.once('close', done)
    request.once('end', done)
    request.resume()
  }
}
