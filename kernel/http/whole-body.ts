import type { IncomingMessage } from 'node:http'
import { svcError, type SvcError } from '../contract/index.js'

const EMPTY: Buffer = Buffer.alloc(0)

export function bodyTooLarge (): SvcError {
  return svcError('request.too_large', 'the body is larger than this route takes; the limits are in [server] of svc.toml')
}

/**
 * Reads a request's body whole. Calls `done` once, with the body or with why there is none; when the client leaves in
 * the middle, nobody is there to be answered and `left` is called. Does no more than that, because every inference
 * request comes by here: a body of one piece is handed on as it came.
 */
export function readWhole (
  request: IncomingMessage, limit: number, done: (error: SvcError | null, body: Buffer) => void, left: () => void
): void {
  const promised = Number(request.headers['content-length'] ?? NaN)
  if (promised > limit) return done(bodyTooLarge(), EMPTY)
  let pieces: Buffer[] | null = null
  let first: Buffer = EMPTY
  let size = 0
  const stop = (): void => {
    request.off('data', onData)
    request.off('end', onEnd)
    request.off('close', onClose)
  }
  const onData = (piece: Buffer): void => {
    size += piece.length
    if (size > limit) {
      stop()
      done(bodyTooLarge(), EMPTY)
    } else if (first === EMPTY) {
      first = piece
    } else {
      (pieces ??= [first]).push(piece)
    }
  }
  const onEnd = (): void => {
    stop()
    done(null, pieces === null ? first : Buffer.concat(pieces, size))
  }
  const onClose = (): void => {
    stop()
    left()
  }
  request.on('data', onData)
  request.on('end', onEnd)
  request.on('close', onClose)
}
