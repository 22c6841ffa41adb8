/** What a writer has written and its reader has not taken yet, in its order. */
export class Outbox {
  #text = ''
  #first: Buffer | null = null
  #more: Buffer[] = []

  write (text: string): void {
    this.#text += text
  }

  bytes (piece: Buffer): void {
    if (this.#text !== '') this.#settle()
    this.#add(piece)
  }

  /** Null for nothing. */
  take (): Buffer | null {
    if (this.#text !== '') this.#settle()
    const first = this.#first
    if (first === null) return null
    this.#first = null
    if (this.#more.length === 0) return first
    const all = Buffer.concat([first, ...this.#more])
    this.#more = []
    return all
  }

  #settle (): void {
    const text = this.#text
    this.#text = ''
    this.#add(Buffer.from(text))
  }

  #add (piece: Buffer): void {
    if (this.#first === null) this.#first = piece
    else this.#more.push(piece)
  }
}
