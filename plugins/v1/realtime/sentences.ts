/** What is shorter is spoken with what follows it. */
const SHORTEST = 12
/** What is longer is cut where there is a pause, or a word ends. */
const LONGEST = 240

const END = /[.!?…]+["'”’»)\]]*\s|[。！？]["'”’」）]*|\n/g
const PAUSE = /[,;:–—]\s|[、，；]/g
const ABBREVIATION = /(?:^|\s)(?:\p{L}|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|z\.B|Nr|No|approx)\.\s$/u

/** Cuts a text that grows into what is spoken at once: sentences, so that sound begins before the text ends. */
export class Sentences {
  #rest = ''

  /** Those that this piece completes. */
  push (piece: string): string[] {
    this.#rest += piece
    const made: string[] = []
    for (let end = cutOf(this.#rest); end !== null; end = cutOf(this.#rest)) {
      made.push(this.#rest.slice(0, end))
      this.#rest = this.#rest.slice(end)
    }
    return made
  }

  /** What is left of a text that is whole. */
  end (): string {
    const rest = this.#rest
    this.#rest = ''
    return rest
  }
}

/** Whether there is anything in it to say. */
export function isSpoken (sentence: string): boolean {
  return /[\p{L}\p{N}]/u.test(sentence)
}

function cutOf (text: string): number | null {
  const head = text.slice(0, LONGEST + 1)
  for (const { 0: end, index } of head.matchAll(END)) {
    const at = index + end.length
    if (at >= SHORTEST && !ABBREVIATION.test(head.slice(Math.max(0, at - 10), at))) return at
  }
  if (text.length <= LONGEST) return null
  const pause = [...head.matchAll(PAUSE)].map(({ 0: found, index }) => index + found.length).findLast(at => at >= SHORTEST)
  if (pause !== undefined) return pause
  const space = head.lastIndexOf(' ')
  if (space >= SHORTEST) return space + 1
  // no half of a character
  return /[\ud800-\udbff]$/.test(text.slice(0, LONGEST)) ? LONGEST - 1 : LONGEST
}
