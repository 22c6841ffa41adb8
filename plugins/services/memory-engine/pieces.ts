import type { Readable } from 'node:stream'

/** To copy more at once would hold up all other requests of the gateway. */
export const PIECE_BYTES = 256 * 1024

/** Smaller chunks are put together: each would be a message of its own, and be kept as one until the body is whole. */
const SMALL_BYTES = 16 * 1024

/** Copies, each of which owns its memory, with a turn of the event loop behind each `PIECE_BYTES`, however small the chunks. */
export async function* piecesOf (body: Buffer | Readable): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let inTurn = 0
  for await (const piece of partsOf(body)) {
    if (inTurn > 0 && inTurn + piece.length > PIECE_BYTES) {
      await new Promise(resolve => { setImmediate(resolve) })
      inTurn = 0
    }
    inTurn += piece.length
    yield new Uint8Array(piece)
  }
}

/** Each is read before the next is asked for. */
async function* partsOf (body: Buffer | Readable): AsyncGenerator<Buffer> {
  const gathered = Buffer.allocUnsafe(Buffer.isBuffer(body) ? 0 : SMALL_BYTES)
  let filled = 0
  for await (const chunk of Buffer.isBuffer(body) ? [body] : body as AsyncIterable<Buffer>) {
    if (filled > 0 && filled + chunk.length > gathered.length) {
      yield gathered.subarray(0, filled)
      filled = 0
    }
    if (chunk.length < gathered.length) filled += chunk.copy(gathered, filled)
    else for (let from = 0; from < chunk.length; from += PIECE_BYTES) yield chunk.subarray(from, from + PIECE_BYTES)
  }
  if (filled > 0) yield gathered.subarray(0, filled)
}
