/** What a vocabulary says of a token: its entry in the file, in the way of its tokenizer. */
export interface VocabularyEntry {
  readonly text: string
  /** `tokenizer.ggml.model` */
  readonly tokenizer: string
}

/**
 * The bytes of a token, which need not be whole characters. Pure.
 *
 * @param shown what the library makes of it; right unless it is a part of a character
 */
export function tokenBytes (shown: string, entry: VocabularyEntry | null): Buffer {
  if (entry === null || !shown.includes('\uFFFD')) return Buffer.from(shown)
  const byte = /^<0x([0-9A-F]{2})>$/i.exec(entry.text)
  if (byte !== null) return Buffer.from([parseInt(byte[1]!, 16)])
  if (entry.tokenizer !== 'gpt2') return Buffer.from(shown)
  const bytes = [...entry.text].map(char => byteLetters.get(char))
  return bytes.includes(undefined) ? Buffer.from(shown) : Buffer.from(bytes as number[])
}

/** The letters in which byte-pair vocabularies write bytes: printable ones are themselves, the others follow behind 255. */
const byteLetters = new Map<string, number>()
for (let byte = 0, next = 256; byte < 256; byte++) {
  const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
  byteLetters.set(String.fromCodePoint(printable ? byte : next++), byte)
}
