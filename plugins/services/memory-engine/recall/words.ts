/** Words that say nothing of what is asked for. */
const stopWords = new Set((
  'a about after all also am an and any are as at be because been before being both but by can could did do does doing done down during ' +
  'each few for from further get gets getting give go goes going got had has have having he her here hers him his how i if in into is it ' +
  'its itself just let like make many may me might more most much must my no nor not now of off on once only or other our out over own ' +
  'please say says said shall she should so some such tell than that the their them then there these they this those through to too ' +
  'under until up us very was we were what when where which while who whom whose why will with would you your yours'
).split(' '))

/** Scripts that are written without blanks: each character is indexed as a word. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu

/** A text as the index gets it. Pure. */
export function indexable (text: string): string {
  return text.replace(unspaced, ' $& ')
}

const MOST_WORDS = 64
const word = /[\p{L}\p{N}\p{M}_]+/u
const words = new RegExp(word, 'gu')

/** What a query is searched for: its words, each once; without stop words unless there are no others. Pure. */
export function queryWords (query: string): readonly string[] {
  const all = [...new Set(query.toLowerCase().match(words) ?? [])]
  const telling = all.filter(each => !stopWords.has(each) && (each.length > 1 || each.match(unspaced) !== null))
  return (telling.length > 0 ? telling : all).slice(0, MOST_WORDS)
}

/** So much of a text is looked at for its first word, in characters. */
export const BEGINNING = 40

/** The word that a text begins with, in small letters; empty where it begins with none. Pure. */
export function firstWord (beginning: string): string {
  return word.exec(beginning)?.[0].toLowerCase() ?? ''
}

/** A word as a phrase of FTS5, where none of its signs means anything. Pure. */
export function phrase (word: string): string {
  return `"${indexable(word).trim().replaceAll('"', '""')}"`
}
