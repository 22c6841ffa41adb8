/**
 * Whether an engine runs the image that was asked for. A driver spells names out (`docker.io/library/`, `localhost/`,
 * `:latest`), each in its own way; a name without a registry is of whichever the driver found it in. Pure.
 */
export function isImage (running: string, asked: string): boolean {
  const [actual, wanted] = [parse(running), parse(asked)]
  const isThere = actual.registry === wanted.registry || actual.registry === null || wanted.registry === null
  return isThere && actual.path === wanted.path
}

/** The first part is a registry where it looks like a host. */
function parse (name: string): { readonly registry: string | null, readonly path: string } {
  const [, registry = null, path = ''] = /^(?:(localhost|[^/]*[.:][^/]*)\/)?(?:library\/)?(.*)$/s.exec(name) ?? []
  return { registry, path: path.includes('@') || /:[^/]+$/.test(path) ? path : `${path}:latest` }
}
