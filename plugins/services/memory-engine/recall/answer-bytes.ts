/** An answer that is put together of many pieces, each of which is copied once. */
export class AnswerBytes {
  readonly #pieces: Array<Buffer | string> = []
  #size = 0

  bytes (piece: Buffer): void {
    this.#pieces.push(piece)
    this.#size += piece.length
  }

  /** @param piece of characters that are one byte each */
  ascii (piece: string): void {
    this.#pieces.push(piece)
    this.#size += piece.length
  }

  /** In a memory of its own, so that it can be given to another thread. */
  joined (): Buffer {
    const all = Buffer.allocUnsafeSlow(this.#size)
    let at = 0
    for (const piece of this.#pieces) {
      if (typeof piece === 'string') all.write(piece, at, 'latin1')
      else all.set(piece, at)
      at += piece.length
    }
    return all
  }
}
