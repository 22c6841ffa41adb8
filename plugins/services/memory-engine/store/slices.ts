/** How many rows one statement reads of what may be many. */
export const ROWS_AT_ONCE = 100

/**
 * Rows of which a few are read at a time.
 * @param read at most `ROWS_AT_ONCE` behind a number, in its order
 */
export function* inSlices<R extends { readonly seq: number }> (read: (after: number) => readonly R[]): Generator<R> {
  for (let after = 0; ;) {
    const rows = read(after)
    yield* rows
    if (rows.length < ROWS_AT_ONCE) return
    after = rows.at(-1)!.seq
  }
}
