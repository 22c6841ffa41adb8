import { Transform, type Readable } from 'node:stream'
import { svcError } from 'svc-gateway/plugin'
import type { EngineRequest } from '../../services/memory/ref.js'

export function hasBody (headers: EngineRequest['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** A body of so few bytes is there nearly as soon as its head. */
const SMALL_BYTES = 64 * 1024

/** A small body as a whole, which costs a tenth of a stream. Rejects when it breaks off, or with `request.too_large`. */
export async function bodyOf (
  body: Readable, headers: EngineRequest['headers'], limit: number, signal: AbortSignal
): Promise<Buffer | Readable> {
  const announced = Number(headers['content-length'] ?? NaN)
  if (!(announced <= Math.min(SMALL_BYTES, limit))) return bounded(body, announced || 0, limit)
  try {
    return await whole(body)
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

export function whole (body: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // its client left before anything of it was read: nothing would be told any more
    if (body.destroyed) return reject(new Error('the body broke off'))
    const chunks: Buffer[] = []
    body.on('data', (chunk: Buffer) => { chunks.push(chunk) })
      .on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
      .on('error', reject)
      .on('close', () => reject(new Error('the body broke off')))
  })
}

/**
 * Of the small chunks that come in one turn of the event loop, so much is gathered: each costs more than the few bytes that it
 * may have. What came is not kept back for what may come.
 */
const GATHERED_BYTES = 64 * 1024
const SMALL_CHUNK_BYTES = 16 * 1024

/** Ends with an error where more comes than may. Throws `request.too_large` for what says so itself. */
export function bounded (body: Readable, announced: number, limit: number): Readable {
  if (announced > limit) throw tooLarge(limit)
  let size = 0
  let gathered: Buffer | null = null
  let filled = 0
  const give = (to: Transform): void => {
    if (filled === 0) return
    const bytes = gathered!.subarray(0, filled)
    // few bytes shall not keep a whole block
    const isFull = filled > GATHERED_BYTES / 2
    to.push(isFull ? bytes : Buffer.from(bytes))
    if (isFull) gathered = null
    filled = 0
  }
  const counter = new Transform({
    transform (chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) return done(tooLarge(limit))
      const isSmall = chunk.length < SMALL_CHUNK_BYTES
      if (!isSmall || filled + chunk.length > GATHERED_BYTES) give(this)
      if (!isSmall) return done(null, chunk)
      if (filled === 0) setImmediate(() => give(this))
      gathered ??= Buffer.allocUnsafeSlow(GATHERED_BYTES)
      filled += chunk.copy(gathered, filled)
      done()
    },
    flush (done) {
      give(this)
      done()
    }
  })
  if (body.destroyed) return counter.destroy(new Error('the body broke off'))
  body.on('error', error => counter.destroy(error)).on('close', () => { if (!body.readableEnded) counter.destroy() })
  return body.pipe(counter)
}

function tooLarge (limit: number): Error {
  return svcError('request.too_large', `the body is larger than ${limit} bytes; [server] upload_limit_bytes is the limit`)
}
