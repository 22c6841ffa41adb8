import type { Readable } from 'node:stream'

/** To copy more at once would hold up all other requests of the gateway. */
export const PIECE_BYTES = 256 * 1024

/** Copies, each of which owns its memory, with a turn of the event loop behind each `PIECE_BYTES`, however small the chunks. */
export async function* piecesOf (body: Buffer | Readable): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let inTurn = 0
  for await (const chunk of Buffer.isBuffer(body) ? [body] : body as AsyncIterable<Buffer>) {
    for (let from = 0; from < chunk.length; from += PIECE_BYTES) {
      const piece = chunk.subarray(from, from + PIECE_BYTES)
      if (inTurn > 0 && inTurn + piece.length > PIECE_BYTES) {
        await new Promise(resolve => { setImmediate(resolve) })
        inTurn = 0
      }
      inTurn += piece.length
      yield new Uint8Array(piece)
    }
  }
}
