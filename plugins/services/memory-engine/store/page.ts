/** A part of a list. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

/** A list as a whole: no limit, in the words of SQLite. */
export const WHOLE: Page = { limit: -1, offset: 0 }
