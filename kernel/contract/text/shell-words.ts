/**
 * Splits a string of engine flags the way a POSIX shell splits words: quotes group, a backslash takes the next
 * character literally, nothing is expanded. Profile flags and `extra_args` strings are read this way.
 *
 * @throws SyntaxError when a quote stays open.
 */
export function shellWords (text: string): string[] {
  const words: string[] = []
  let word = ''
  let started = false
  let quote: string | null = null
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (quote === null && /\s/.test(c)) {
      if (started) words.push(word)
      word = ''
      started = false
      continue
    }
    started = true
    if (c === quote) quote = null
    else if (quote === null && (c === '"' || c === '\'')) quote = c
    else if (c === '\\' && isEscape(text[i + 1], quote)) word += text[++i]!
    else word += c
  }
  if (quote !== null) throw new SyntaxError(`a ${quote} is never closed`)
  if (started) words.push(word)
  return words
}

/** In double quotes a backslash is a plain character unless it stands before one of the four special ones. */
function isEscape (next: string | undefined, quote: string | null): boolean {
  if (next === undefined || quote === '\'') return false
  return quote === null || '"\\$`'.includes(next)
}

/** One string that `shellWords` splits into exactly these words. */
export function shellText (words: readonly string[]): string {
  return words.map(word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`).join(' ')
}
