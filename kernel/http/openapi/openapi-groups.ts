import type { AnyRoute } from '../../contract/index.js'

type Grouped = Pick<AnyRoute, 'tag' | 'url' | 'inference'>

/** The group of a route: what its plugin calls it, else what its path does: `Chat templates` of `/api/chat-templates`. Pure. */
export function groupOf ({ tag, url, inference = false }: Grouped): string {
  if (tag !== undefined) return tag
  const words = url.split('/').filter(word => /^[a-z0-9]/i.test(word))
  const [first = 'gateway', second] = words
  const word = second !== undefined && (first === 'api' || isInference({ url, inference })) ? second : first
  const text = word.replaceAll(/[-_.]+/g, ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** What clients of models use. */
export function isInference ({ url, inference = false }: Pick<AnyRoute, 'url' | 'inference'>): boolean {
  return inference || url.startsWith('/v1/')
}

/** Groups as people look for them: first `/v1` and what else clients of models use, as mounted, then the others by name. Pure. */
export function groupsOf (routes: readonly Grouped[]): string[] {
  const inference = new Set([...routes.filter(({ url }) => isInference({ url })), ...routes.filter(isInference)].map(groupOf))
  const others = new Set(routes.map(groupOf).filter(group => !inference.has(group)))
  return [...inference, ...[...others].sort((a, b) => a < b ? -1 : 1)]
}
