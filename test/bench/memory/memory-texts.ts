/** Words and vectors as many as in a text of people, and made up: the same ones in each run. */

export const DIMENSIONS = 384
const WORDS = 30_000
const WORDS_EACH = 25
const TOPICS = 200

/** Numbers from 0 to 1. */
export function createRandom (seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Words as often as in texts of people: the second half as often as the first, and so on. */
function createWords (random: () => number): () => string {
  const sums = new Float64Array(WORDS)
  let sum = 0
  for (let i = 0; i < WORDS; i++) sums[i] = sum += 1 / (i + 2)
  return () => {
    const at = random() * sum
    let [low, high] = [0, WORDS - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle]! < at) low = middle + 1
      else high = middle
    }
    return `w${low.toString(36)}q`
  }
}

export interface Item { readonly content: string, readonly tags: readonly string[] }

export interface Texts {
  /** So many words. */
  readonly sentence: (words: number) => string
  readonly item: () => Item
}

export function createTexts (seed: number): Texts {
  const random = createRandom(seed)
  const word = createWords(random)
  const sentence = (words: number): string => Array.from({ length: words }, word).join(' ')
  return { sentence, item: () => ({ content: sentence(WORDS_EACH), tags: [`t${Math.floor(random() * 50)}`] }) }
}

/** Vectors that stand around some topics; the topic of a text is its first word's. */
export function madeUpVector (text: string): number[] {
  const [first = ''] = text.split(' ')
  const topic = createRandom([...first].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 7) % TOPICS)
  const own = createRandom([...text].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 11))
  return Array.from({ length: DIMENSIONS }, () => Math.round(((topic() - 0.5) + (own() - 0.5)) * 1e4) / 1e4)
}

export const chatChunk = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta: { content: ' word' }, finish_reason: null }] })}\n\n`
