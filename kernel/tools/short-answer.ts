/** Some 6,000 tokens: hosts refuse results of 25,000, and a model has better uses for its window. */
const MOST_CHARACTERS = 24_000
/** A text of an answer that is too long keeps its end, where logs tell what happened last. */
const KEPT_TEXT = 4_000

type Json = Record<string, unknown>

/**
 * An answer as a tool gives it: an object whatever the route answers, and of bounded length, with a word on what was left
 * out and how to ask for less. Pure.
 */
export function shortened (value: unknown, narrow = 'ask for less'): unknown {
  if (value === undefined || value === null) return { status: 'ok' }
  if (Array.isArray(value)) return fitted({ items: value, count: value.length }, narrow)
  return typeof value === 'object' ? fitted(value as Json, narrow) : value
}

function fitted (value: Json, narrow: string): Json {
  if (length(value) <= MOST_CHARACTERS) return value
  const lists = Object.entries(value).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]))
  const [key, list] = lists.sort(([, a], [, b]) => length(b) - length(a))[0] ?? []
  if (key === undefined || list === undefined || list.length === 0) return cutTexts(value, narrow)
  const room = MOST_CHARACTERS - (length(value) - length(list))
  const isLines = list.every(item => typeof item === 'string')
  let used = 0
  let count = 0
  for (const item of isLines ? list.toReversed() : list) {
    used += length(item) + 1
    if (used > room) break
    count++
  }
  if (count === 0) return cutTexts(value, narrow)
  const kept = isLines ? list.slice(-count) : list.slice(0, count)
  return { ...value, [key]: kept, more: `${list.length - count} more, ${narrow}` }
}

function length (value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}

/** Cuts long texts and lists at any depth. */
function cutTexts (value: Json, narrow: string): Json {
  for (let most = KEPT_TEXT, items = 100; most >= 16; most >>= 2, items >>= 2) {
    const cut = cutAt(value, most, Math.max(items, 3)) as Json
    if (length(cut) <= MOST_CHARACTERS) return { ...cut, more: `long parts are truncated, ${narrow}` }
  }
  return { text: JSON.stringify(value).slice(0, MOST_CHARACTERS), more: `the rest is truncated, ${narrow}` }
}

function cutAt (value: unknown, most: number, items: number): unknown {
  if (typeof value === 'string') return value.length <= most ? value : `…${value.slice(-most)}`
  if (Array.isArray(value)) {
    const kept = value.slice(0, items).map(item => cutAt(item, most, items))
    return value.length > items ? [...kept, `${value.length - items} more`] : kept
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutAt(item, most, items)]))
}
