/** Where a text may end, best first: between paragraphs, lines, sentences, words. */
const ends = [/\n\s*\n/g, /\n/g, /[.!?。！？]["')\]]?(?=\s)/g, /\s/g]
/** A better end is taken if it leaves at least this share of the chunk. */
const LEAST_SHARE = 0.5

/** A text in pieces of at most `size` characters, which put together are the text again; none is blank. Pure. */
export function chunkText (text: string, size: number): readonly string[] {
  const chunks: string[] = []
  let rest = text
  while (rest.length > size) {
    const at = endOf(rest.slice(0, size))
    chunks.push(rest.slice(0, at))
    rest = rest.slice(at)
  }
  chunks.push(rest)
  const pieces: string[] = []
  let blanks = ''
  for (const chunk of chunks) {
    // blanks go to the piece behind them, at the end of the text to the one before
    if (chunk.trim() === '') {
      blanks += chunk
    } else {
      pieces.push(blanks + chunk)
      blanks = ''
    }
  }
  if (pieces.length === 0) return [blanks]
  if (blanks !== '') pieces.push(pieces.pop()! + blanks)
  return pieces
}

function endOf (piece: string): number {
  for (const pattern of ends) {
    let last = -1
    for (const match of piece.matchAll(pattern)) last = match.index + match[0].length
    if (last >= piece.length * LEAST_SHARE) return last
  }
  // one long word: never between the halves of a character
  return /[\ud800-\udbff]$/.test(piece) ? piece.length - 1 : piece.length
}
