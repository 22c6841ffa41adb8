import { stripVTControlCharacters } from 'node:util'

const LONGEST_WORDS = 300

/** Lines of an engine's log without the polls of its health check, which would push out what matters. Pure. */
export function withoutNoise (lines: readonly string[], healthPath: string | null): readonly string[] {
  return healthPath === null ? lines : lines.filter(line => !isPoll(line, healthPath))
}

/**
 * What an engine said last before it ended, as the end of a sentence; empty when it said nothing of use. What it
 * says about ending at all comes after the reason and tells nothing, nor does what a verbose engine says for its
 * makers. Pure.
 */
export function lastWords (lines: readonly string[]): string {
  const told = lines.map(line => stripVTControlCharacters(line).trim()).filter(line => /\p{L}/u.test(line))
  const words = told.findLast(line => !FAREWELL.test(line) && !DEBUG.test(line)) ?? told.at(-1)
  if (words === undefined) return ''
  return `; its last output: ${words.length > LONGEST_WORDS ? `${words.slice(0, LONGEST_WORDS)}…` : words}`
}

const FAREWELL = /\b(exiting|cleaning up before exit|shutting down|shutdown complete|terminated|goodbye)\b/i
/** A line of level debug: some engines begin it with the time since its start and one letter. */
const DEBUG = /^(?:[\d.]+ D|DEBUG:?) /

/** A line that tells of a request for exactly this path. */
function isPoll (line: string, path: string): boolean {
  const at = line.indexOf(path)
  return at > 0 && /\b(GET|request)\b/i.test(line) && !/[\w/-]/.test(line[at + path.length] ?? ' ') && !/\w/.test(line[at - 1]!)
}
