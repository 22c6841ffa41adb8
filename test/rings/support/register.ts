/** What a model can only know from the document. */
export const CODE_WORD = 'halcyon'
export const QUESTION = 'What is the code word of Greta at the observatory?'

/** Words that MiniLM has as one token each: a long piece of them fits its window. */
const WORDS = [
  'administration', 'communication', 'transportation', 'environmental', 'championships', 'manufacturing', 'agricultural', 'infrastructure',
  'metropolitan', 'entertainment', 'international', 'representatives'
]
const COLUMN = 48
const ROWS_BEFORE = 1_500

const FACT = `Greta keeps watch at the observatory every night. The code word of Greta is ${CODE_WORD}. A guest who comes to
the observatory after sunset says the code word to Greta before she unlocks the dome, and she changes it when the season ends.`

/** A table of half a megabyte in columns of one width, with one passage in its middle that is about something else. */
export function register (): string {
  const word = (i: number, column: number): string => WORDS[(i * 7 + column * (1 + i % 11)) % WORDS.length]!
  const row = (i: number): string => Array.from({ length: 5 }, (_, column) => word(i, column).padEnd(COLUMN)).join('')
  const table = (from: number, to: number): string =>
    Array.from({ length: to - from }, (_, i) => row(from + i)).join('\n')
  const rows = Math.ceil(512_000 / (5 * COLUMN + 1))
  return `${table(0, ROWS_BEFORE)}\n\n${FACT}\n\n${table(ROWS_BEFORE, rows)}\n`
}
