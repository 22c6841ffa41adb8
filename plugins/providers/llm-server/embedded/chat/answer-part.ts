/** What a stretch of an answer is, in the order in which it was written. */
export type AnswerPart =
  | { readonly kind: 'text', readonly text: string }
  | { readonly kind: 'reasoning', readonly text: string }
  /** A call begins; the arguments that follow, as JSON, are its own. */
  | { readonly kind: 'call', readonly name: string }
  | { readonly kind: 'arguments', readonly text: string }

export type Tell = (part: AnswerPart) => void

/** Reads an answer while it is written. How the text is cut into pieces makes no difference to what it tells in sum. */
export interface AnswerReader {
  push (text: string): AnswerPart[]
  /** The text is over, or was cut off: what was held back. */
  end (): AnswerPart[]
  /** Nothing that may still come would be told. */
  readonly enough: boolean
}

/** Text as it is, of completions. */
export const plainReader: AnswerReader = {
  push: text => text === '' ? [] : [{ kind: 'text', text }],
  end: () => [],
  enough: false
}
