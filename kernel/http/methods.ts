import type { AnyRoute } from '../contract/index.js'

/** Methods that some route has for a path. Asked only when a request found no route. */
export function allowedMethods (routes: readonly AnyRoute[], path: string): readonly string[] {
  const methods = new Set<string>()
  for (const { method, url } of routes) {
    if (!patternOf(url).test(path)) continue
    methods.add(method)
    if (method === 'GET') methods.add('HEAD')
  }
  return [...methods].sort()
}

function patternOf (url: string): RegExp {
  const source = url.split('/').map(part => {
    if (part === '*') return '.+'
    return part.split(/(:[A-Za-z_]\w*)/).map(piece => piece.startsWith(':') ? '[^/]+' : piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('')
  }).join('/')
  return new RegExp(`^${source}/?$`)
}
