import type { AnyRoute, WireDialect } from '../contract/index.js'

/**
 * Methods that some route has for a path. A path that is a route's own is no value for the placeholder of another one. Asked
 * only when a request found no route.
 */
export function allowedMethods (all: readonly AnyRoute[], path: string): readonly string[] {
  const methods = new Set<string>()
  const own = all.filter(route => placesOf(route).includes(withoutSlash(path)))
  const routes = own.length > 0 ? own : all
  for (const route of routes) {
    if (!placesOf(route).some(place => patternOf(place).test(path))) continue
    const { method } = route
    methods.add(method)
    if (method === 'GET') methods.add('HEAD')
  }
  return [...methods].sort()
}

/** How failures look at a route that words them in its own way, below it, and beside what its placeholder stands for. */
export function dialectAround (routes: readonly AnyRoute[], path: string): WireDialect | undefined {
  return routes.find(({ url, dialect }) => {
    if (dialect === undefined) return false
    const [fixed = ''] = url.split(/\/(?:[:*]|[^/]*:)/, 1)
    return path === fixed || (fixed !== '' && path.startsWith(`${fixed}/`))
  })?.dialect
}

function placesOf ({ url, alsoAt = [] }: AnyRoute): readonly string[] {
  return [url, ...alsoAt]
}

function patternOf (url: string): RegExp {
  const source = url.split('/').map(part => {
    if (part === '*') return '.+'
    return part.split(/(:[A-Za-z_]\w*)/).map(piece => piece.startsWith(':') ? '[^/]+' : piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('')
  }).join('/')
  return new RegExp(`^${source}/?$`)
}

function withoutSlash (path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** Paths without placeholders, to tell when the router takes one of them for a value: `DELETE /a/list` for `DELETE /a/:name`. */
export class FixedPaths {
  readonly #methods = new Map<string, Set<string>>()

  add (method: string | readonly string[], url: string): void {
    if (isPattern(url)) return
    const methods = this.#methods.get(url) ?? new Set<string>()
    this.#methods.set(url, methods)
    for (const one of typeof method === 'string' ? [method] : method) methods.add(one)
  }

  isMistaken (route: string | undefined, method: string, url: string): boolean {
    // the paths of inference have no placeholders, and cost nothing here
    if (route === undefined || !isPattern(route)) return false
    return this.#methods.get(withoutSlash(url.split('?', 1)[0]!))?.has(method) === false
  }
}

function isPattern (url: string): boolean {
  return url.includes(':') || url.endsWith('*')
}
