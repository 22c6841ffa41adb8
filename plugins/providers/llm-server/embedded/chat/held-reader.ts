import type { AnswerPart, AnswerReader } from './answer-part.js'

/** Pieces are looked at in stretches of this length, so that a long one with many calls costs no more than its length. */
const STRETCH = 64

/** Reads an answer step by step, and holds what may still be the start of something. */
export abstract class HeldReader implements AnswerReader {
  protected held = ''
  protected over = false
  #parts: AnswerPart[] = []

  get enough (): boolean { return this.over }

  push (text: string): AnswerPart[] {
    for (let at = 0; at < text.length && !this.over; at += STRETCH) this.#read(text.slice(at, at + STRETCH))
    return this.take()
  }

  abstract end (): AnswerPart[]

  /** What is left to read, or null when more has to come. Never called with an empty text. */
  protected abstract step (text: string): string | null

  protected take (): AnswerPart[] {
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  protected hold (text: string): null {
    this.held = text
    return null
  }

  /** Stretches of a kind that follow each other are one. */
  protected add (part: AnswerPart): void {
    const last = this.#parts.at(-1)
    if (part.kind === 'call' || last?.kind !== part.kind) this.#parts.push(part)
    else this.#parts[this.#parts.length - 1] = { kind: part.kind, text: last.text + part.text }
  }

  #read (piece: string): void {
    let text: string | null = this.held + piece
    this.held = ''
    while (text !== null && text !== '' && !this.over) text = this.step(text)
  }
}
