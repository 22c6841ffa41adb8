/** A node or an edge, as the engine words it. */
export interface GraphPart { readonly data: Readonly<Record<string, unknown>> }

export interface Graph {
  readonly nodes: readonly GraphPart[]
  readonly edges: readonly GraphPart[]
}

export interface SubgraphWish {
  readonly mode: 'top' | 'ego'
  /** In the middle, of an ego graph. */
  readonly node?: string | undefined
  /** Steps away from it. */
  readonly depth: number
  readonly limit: number
  /** How many of the first are taken, of the top. */
  readonly topK: number
  readonly by: 'degree' | 'recency'
}

/**
 * A part of a graph that can be drawn: the nodes that come first by their degree or their date, or those around one. Edges
 * are those between its nodes. Null where the node in the middle is not there. Takes time by nodes and edges. Pure.
 */
export function subgraphOf ({ nodes, edges }: Graph, wish: SubgraphWish): Graph | null {
  const neighbours = new Map<string, Set<string>>(nodes.map(node => [idOf(node), new Set()]))
  for (const { data: { source, target } } of edges) {
    const [a, b] = [String(source), String(target)]
    neighbours.get(a)?.add(b)
    neighbours.get(b)?.add(a)
  }
  const weightOf = wish.by === 'degree' ? (node: GraphPart) => neighbours.get(idOf(node))!.size : recencyOf(edges)
  const order = ranked(nodes, weightOf)
  const taken = wish.mode === 'top' ? new Set(order.slice(0, Math.min(wish.topK, wish.limit))) : around(wish, order, neighbours)
  if (taken === null) return null
  return {
    nodes: nodes.filter(node => taken.has(idOf(node))),
    edges: edges.filter(({ data: { source, target } }) => taken.has(String(source)) && taken.has(String(target)))
  }
}

type Neighbours = ReadonlyMap<string, ReadonlySet<string>>

/** Ids, the first ones first. */
function ranked (nodes: readonly GraphPart[], weightOf: (node: GraphPart) => number): readonly string[] {
  return nodes.map(node => ({ id: idOf(node), weight: weightOf(node) })).sort((a, b) => b.weight - a.weight).map(({ id }) => id)
}

/** A memory has a date. An entity has none on either engine, only its edges do: it is as new as the newest of them. */
function recencyOf (edges: readonly GraphPart[]): (node: GraphPart) => number {
  const newest = new Map<string, number>()
  for (const { data: { source, target, lastCooccurred } } of edges) {
    const time = timeOf(lastCooccurred)
    for (const id of [String(source), String(target)]) newest.set(id, Math.max(time, newest.get(id) ?? 0))
  }
  return node => timeOf(node.data.date) || (newest.get(idOf(node)) ?? 0)
}

function timeOf (date: unknown): number {
  return Date.parse(String(date)) || 0
}

/** Step by step, in each the first ones first. */
function around (
  { node = '', depth, limit }: SubgraphWish, order: readonly string[], neighbours: Neighbours
): Set<string> | null {
  if (!neighbours.has(node)) return null
  const taken = new Set([node])
  let rim: ReadonlySet<string> = taken
  for (let step = 0; step < depth && taken.size < limit; step++) {
    const reached = new Set([...rim].flatMap(id => [...neighbours.get(id) ?? []]).filter(id => !taken.has(id)))
    for (const id of order) {
      if (taken.size >= limit) break
      if (reached.has(id)) taken.add(id)
    }
    rim = reached
  }
  return taken
}

function idOf ({ data: { id } }: GraphPart): string {
  return String(id)
}
