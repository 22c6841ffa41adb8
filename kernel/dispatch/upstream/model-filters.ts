import type { Upstream } from '../../contract/index.js'

/** Whether an upstream's model is listed. Filters only hide; what is hidden can still be asked for by name. */
export function isListed (id: string, filters: Upstream['model_filters']): boolean {
  if (filters === undefined) return true
  const { models, include, exclude } = filters
  if (exclude.some(pattern => globMatches(pattern, id))) return false
  if (models.length > 0 && models.includes(id)) return true
  if (include.some(pattern => globMatches(pattern, id))) return true
  return models.length === 0 && include.length === 0
}

/** `*` stands for any run of characters, `?` for one. Goes back to the last star only, so no pattern takes for ever. */
export function globMatches (pattern: string, text: string): boolean {
  let p = 0
  let star = -1
  let from = 0
  for (let i = 0; i < text.length;) {
    if (pattern[p] === '*') {
      star = p++
      from = i
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[i])) {
      p++
      i++
    } else if (star !== -1) {
      p = star + 1
      i = ++from
    } else {
      return false
    }
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
