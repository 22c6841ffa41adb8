import type { TagMode } from '../memories/tag-filter.js'

/** Whether something with these tags is meant. `any` and `all` mean what has no tags, too. Pure. */
export function tagsMatch (tags: readonly string[], wanted: readonly string[] | null, mode: TagMode): boolean {
  if (mode === 'exact') return wanted === null || sameTags(tags, wanted)
  if (wanted === null || wanted.length === 0) return true
  if (tags.length === 0) return mode === 'any' || mode === 'all'
  return mode === 'any' || mode === 'any_strict' ? wanted.some(tag => tags.includes(tag)) : wanted.every(tag => tags.includes(tag))
}

function sameTags (a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)]
  return one.size === other.size && [...one].every(tag => other.has(tag))
}
