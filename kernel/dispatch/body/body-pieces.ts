/** So many are kept as they are, however small: most bodies come in few. */
const FEW_PIECES = 16
const SMALL_BYTES = 4 * 1024
const BLOCK_BYTES = 64 * 1024

/**
 * What has come of a body, piece by piece. Small ones are put together: each would keep a hundred bytes of its own, and what it
 * was read into, so that a body in chunks of one byte would take a hundred times its size.
 */
export class BodyPieces {
  #pieces: Buffer[] = []
  #size = 0
  #block: Buffer | null = null
  #filled = 0

  add (piece: Buffer): void {
    this.#size += piece.length
    if (piece.length >= SMALL_BYTES || this.#pieces.length < FEW_PIECES) {
      this.#seal()
      this.#pieces.push(piece)
      return
    }
    if (this.#filled + piece.length > BLOCK_BYTES) this.#seal()
    this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#filled += piece.copy(this.#block, this.#filled)
  }

  /** In one; the piece itself where there is only one. */
  joined (): Buffer {
    this.#seal()
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#size)
  }

  copyTo (block: Buffer): void {
    this.#seal()
    let at = 0
    for (const piece of this.#pieces) at += piece.copy(block, at)
  }

  #seal (): void {
    if (this.#filled === 0) return
    const bytes = this.#block!.subarray(0, this.#filled)
    const isFull = this.#filled > BLOCK_BYTES / 2
    // a block that is nearly empty is used again
    this.#pieces.push(isFull ? bytes : Buffer.from(bytes))
    if (isFull) this.#block = null
    this.#filled = 0
  }
}
