/** A pattern of LIKE with `ESCAPE '\'` for these very words, without its `%`. Pure. */
export function literal (words: string): string {
  return words.replaceAll(/[%_\\]/g, '\\$&')
}

/** The pattern of what contains them. Pure. */
export function containing (words: string): string {
  return `%${literal(words)}%`
}
