/** Token types of GGUF vocabularies. */
const UNKNOWN = 2
const CONTROL = 3
const BYTE = 6
const NORMAL = 1

const SPACE = '\u2581'
const letters = [...'abcdefghijklmnopqrstuvwxyz']
const specials = ['<unk>', '<s>', '</s>', '<|system|>', '<|user|>', '<|assistant|>'] as const

/** Pieces of these say little about what a text is about, so they weigh less in its embedding. */
const FILLER = 'the a an of and or to in on at is are was be do does did it this that for with as by how what who when where'.split(' ')

export const tokenIds = { unknown: 0, bos: 1, eos: 2, system: specials.indexOf('<|system|>'), assistant: specials.indexOf('<|assistant|>') } as const

export interface Token {
  readonly text: string
  readonly type: number
  readonly score: number
  /** Its share in an embedding is 2 to this power. */
  readonly weightExponent: number
}

export interface BigramVocabulary {
  readonly tokens: readonly Token[]
  /** Ids of the words of the sentence, in order. */
  readonly words: readonly number[]
}

/**
 * Specials, the 256 bytes (so that any text can be tokenised), pairs of letters, and the words of the sentence.
 *
 * A tokeniser of this kind merges neighbours as long as the result is in the vocabulary, best score first and
 * from the left. Pairs never reach over a word's start, so a word is always cut the same way, and texts that
 * share words share tokens. The words of the sentence carry their space at the end and score lowest, so that no
 * prompt that ends in a letter is tokenised to one of them: it would then be continued in mid-sentence. A word
 * such as `<0xE6>` stands for that byte, so a sentence can say a character in several tokens.
 *
 * @throws TypeError when a word stands in the sentence twice.
 */
export function bigramVocabulary (sentence: string, cycle: boolean): BigramVocabulary {
  const words = sentence.split(' ').filter(word => word !== '')
  const twice = words.find((word, i) => words.indexOf(word) !== i)
  if (twice !== undefined) throw new TypeError(`'${twice}' stands in the sentence twice; a bigram model can say every word once`)
  if (words.length === 0) throw new TypeError('the sentence has no words')

  const filler = new Set(FILLER.flatMap(word => pairsOf(SPACE + word)))
  const tokens: Token[] = [
    ...specials.map((text, i) => ({ text, type: i === tokenIds.unknown ? UNKNOWN : CONTROL, score: 0, weightExponent: -5 })),
    ...Array.from({ length: 256 }, (_, byte) => ({
      text: `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, type: BYTE, score: 0, weightExponent: isLetter(byte) ? -2 : -4
    })),
    { text: SPACE, type: NORMAL, score: -1, weightExponent: -5 },
    ...[SPACE, ...letters].flatMap(first => letters.map(second => first + second)).map(text => ({
      text, type: NORMAL, score: -1, weightExponent: filler.has(text) ? -2 : 0
    }))
  ]
  const ids = words.map((word, i) => {
    const byte = tokens.findIndex(token => token.type === BYTE && token.text === word)
    if (byte !== -1) return byte
    const text = i === words.length - 1 && !cycle ? word : `${word}${SPACE}`
    return tokens.push({ text, type: NORMAL, score: -2, weightExponent: 0 }) - 1
  })
  return { tokens, words: ids }
}

/** How a word of small letters is cut: in twos from its start. */
function pairsOf (word: string): string[] {
  return word.match(/.{2}/gu) ?? []
}

function isLetter (byte: number): boolean {
  return byte >= 0x80 || /[A-Za-z0-9]/.test(String.fromCharCode(byte))
}
