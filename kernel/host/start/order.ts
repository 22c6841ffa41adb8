/** A plugin as the graph sees it. */
export interface Node {
  readonly name: string
  readonly requires: readonly string[]
  readonly provides: readonly string[]
}

export interface Order {
  /** Providers before consumers; otherwise as given. */
  readonly order: readonly string[]
  readonly missing: ReadonlyMap<string, string>
  /** Members of a circle, with the path that closes it. */
  readonly cycles: ReadonlyMap<string, string>
  /** Plugins that need one of the above, with its name. */
  readonly skipped: ReadonlyMap<string, string>
  /** Two plugins offer the same service: the later one, with the name of the service. */
  readonly duplicates: ReadonlyMap<string, string>
}

/** Orders plugins by what they require and provide. Pure. `core` lists the services that are there anyway. */
export function orderPlugins (nodes: readonly Node[], core: ReadonlySet<string>): Order {
  const providers = new Map<string, string>()
  const duplicates = new Map<string, string>()
  for (const node of nodes) {
    for (const id of node.provides) {
      if (core.has(id) || providers.has(id)) duplicates.set(node.name, id)
      else providers.set(id, node.name)
    }
  }
  const byName = new Map(nodes.map(node => [node.name, node]))
  const missing = new Map<string, string>()
  const cycles = new Map<string, string>()
  const skipped = new Map<string, string>()
  const done = new Set<string>()
  const order: string[] = []
  const dependencies = (node: Node): string[] => node.requires.filter(id => !core.has(id)).flatMap(id => providers.get(id) ?? [])

  for (const node of nodes) {
    const absent = node.requires.find(id => !core.has(id) && !providers.has(id))
    if (absent !== undefined) missing.set(node.name, absent)
  }
  const visit = (node: Node, path: ReadonlySet<string>): void => {
    if (done.has(node.name) || path.has(node.name)) return
    for (const name of dependencies(node)) visit(byName.get(name)!, new Set([...path, node.name]))
    done.add(node.name)
    order.push(node.name)
  }
  for (const node of nodes) visit(node, new Set())
  for (const node of nodes) {
    const circle = circleThrough(node.name, name => dependencies(byName.get(name)!))
    if (circle === null) continue
    // told the same to all members: from the one that was given first
    const first = circle.indexOf(nodes.find(({ name }) => circle.includes(name))!.name)
    const path = [...circle.slice(first), ...circle.slice(0, first)]
    cycles.set(node.name, [...path, path[0]].join(' -> '))
  }
  for (const name of order) {
    if (missing.has(name) || cycles.has(name) || duplicates.has(name)) continue
    const isOut = (dep: string): boolean => [missing, cycles, duplicates, skipped].some(out => out.has(dep))
    const culprit = dependencies(byName.get(name)!).find(isOut)
    if (culprit !== undefined) skipped.set(name, culprit)
  }
  return { order, missing, cycles, skipped, duplicates }
}

/** The shortest way from a plugin over what it requires back to itself; null when there is none. */
function circleThrough (start: string, dependencies: (name: string) => readonly string[]): readonly string[] | null {
  const ways: Array<readonly string[]> = [[start]]
  const seen = new Set<string>()
  for (const way of ways) {
    for (const name of dependencies(way.at(-1)!)) {
      if (name === start) return way
      if (seen.has(name)) continue
      seen.add(name)
      ways.push([...way, name])
    }
  }
  return null
}
