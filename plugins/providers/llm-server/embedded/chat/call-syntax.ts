import type { Tell } from './answer-part.js'

/** Reads what one family of models writes behind the mark of a call. */
export interface CallSyntax {
  /** Reads on at `at` and returns where it stopped: at the end of the text, or behind the call. */
  read (text: string, at: number, tell: Tell): number
  /** `broken`: this is no call, and nothing was told. */
  readonly state: 'reading' | 'done' | 'broken'
}

/** Characters of a name, and of what stands before one. */
export const LONGEST_NAME = 256

/** Index of the first character from `at` that is no white space. */
export function pastSpace (text: string, at: number): number {
  while (at < text.length && /\s/.test(text[at]!)) at++
  return at
}
