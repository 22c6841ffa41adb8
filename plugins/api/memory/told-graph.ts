import { askEngine, bankPath, engineValue, rowsIn, valueOf, type MemoryEngine, type Row } from '../../services/memory/ref.js'
import type { Graph, GraphPart } from './subgraph.js'

/** What is asked of the engine at most, to choose from: so many memories the embedded one compares by their vectors. */
const MOST_NODES = 2000
/** What is asked of a server for each thing that ties a memory to others. */
const MOST_TIED = 300
const MOST_NAMES = 8
/** In what an engine's list of memories says of entities. */
const BETWEEN_NAMES = ', '
/** How an engine says that it has no such thing, or that this is no id. */
const MISSING: readonly number[] = [400, 404, 422]
const LONGEST_LABEL = 30
/** Of a node that the engine tells by itself alone, not in a graph. */
const COLOR = '#90caf9'

export interface GraphWish {
  readonly kind: 'memories' | 'entities'
  /** In the middle; undefined for the newest memories, or the entities that are named most. */
  readonly node: string | undefined
  readonly depth: number
  readonly type: string | undefined
  readonly q: string | undefined
}

export interface ToldGraph extends Graph {
  /** Of the bank. */
  readonly total: number
  /** Of what was told. */
  readonly totalEdges: number
}

interface Place {
  readonly engine: MemoryEngine
  readonly bank: string
  readonly signal: AbortSignal
}

/**
 * The part of a graph that a subgraph is chosen from. Around a node, the embedded engine tells it; a server knows none but the
 * newest memories and the strongest pairs of entities, and is asked for what else ties the node to others.
 */
export async function toldGraph (place: Place, wish: GraphWish): Promise<ToldGraph> {
  const { kind, node, depth, type, q } = wish
  const isMemories = kind === 'memories'
  const value = await asked(place, isMemories ? ['graph'] : ['entities', 'graph'], {
    limit: MOST_NODES, ...isMemories ? { type, q } : {}, ...node === undefined ? {} : { around: node, depth }
  })
  const told = graphIn(value, place)
  const around = node === undefined || told.nodes.some(({ data: { id } }) => id === node) ? null
    : await (isMemories ? memoryAround(place, wish, node) : entityAround(place, node, told))
  const all = around ?? told
  const isAsked = ({ data }: GraphPart): boolean => String(data.label).toLowerCase().includes(q?.toLowerCase() ?? '')
  return {
    nodes: isMemories ? all.nodes : all.nodes.filter(isAsked),
    edges: all.edges,
    total: isMemories ? Number(value.total_units ?? told.nodes.length) : await entitiesOf(place, node === undefined, told),
    totalEdges: around === null ? Number(value.total_edges ?? told.edges.length) : around.edges.length
  }
}

/** As many as were told, where that was all: a server tells those alone that stand in a pair. */
async function entitiesOf (place: Place, isAll: boolean, { nodes, edges }: Graph): Promise<number> {
  if (place.engine.name === 'embedded' && isAll && nodes.length < MOST_NODES && edges.length < MOST_NODES) return nodes.length
  return Number((await asked(place, ['entities'], { limit: 1 })).total ?? nodes.length)
}

/** With those of its chunk and document, and those that name what it names. Null if it is not in the bank, or not asked for. */
async function memoryAround (place: Place, { type, q }: GraphWish, id: string): Promise<Graph | null> {
  const memory = await thingOf(place, 'memories', id)
  if (memory === null || memory.state === 'invalidated' || (type !== undefined && memory.type !== type)) return null
  const words = q?.toLowerCase() ?? ''
  const has = ({ text, context }: Row): boolean => `${String(text)}\n${String(context ?? '')}`.toLowerCase().includes(words)
  if (!has(memory)) return null
  const names = Array.isArray(memory.entities) ? memory.entities.slice(0, MOST_NAMES) : []
  // an observation is found by the document of what it was made from
  const [source] = Array.isArray(memory.source_memory_ids) ? memory.source_memory_ids : []
  const home = source === undefined ? memory : await thingOf(place, 'memories', String(source)) ?? memory
  const ties = [
    ...[{ chunk_id: home.chunk_id }, { document_id: home.document_id }].filter(tie => Object.values(tie)[0] != null),
    ...names.map(name => ({ q: String(name) }))
  ]
  const parts = await Promise.all(ties.map(async tie =>
    graphIn(await asked(place, ['graph'], { limit: MOST_TIED, type, ...tie }), place)))
  const graph = united([{ nodes: [nodeOf(id, memory)], edges: [] }, ...parts])
  return { ...graph, nodes: graph.nodes.filter(({ data }) => has(data)) }
}

/** With those that its newest memories name beside it, as far as the engine tells their ids, and what it told of these. */
async function entityAround (place: Place, id: string, told: Graph): Promise<Graph | null> {
  const entity = await thingOf(place, 'entities', id)
  if (entity === null) return null
  const [memories, entities] = await Promise.all([
    asked(place, ['memories', 'list'], { entity_id: id, limit: MOST_TIED }), asked(place, ['entities'], { limit: MOST_NODES })
  ])
  const name = String(entity.canonical_name)
  const nodes = rowsIn(entities, 'items', bankPath(place.bank, 'entities')).map(entityNode)
  const ids = new Map([...nodes, ...told.nodes].map(({ data }) => [String(data.label), String(data.id)]))
  const known = new Set([name, ...ids.keys()])
  const most = Math.max(...[...known].map(label => label.split(BETWEEN_NAMES).length))
  const edges = new Map<string, { weight: number, lastCooccurred: unknown }>()
  for (const { entities: named, mentioned_at: at } of rowsIn(memories, 'items', bankPath(place.bank, 'memories', 'list'))) {
    for (const other of namesIn(String(named), known, most)) {
      const to = ids.get(other)
      if (to === undefined || other === name) continue
      const edge = edges.get(to)
      // the newest comes first
      if (edge === undefined) edges.set(to, { weight: 1, lastCooccurred: at ?? null })
      else edge.weight += 1
    }
  }
  const beside = [...edges].map(([to, edge]) =>
    ({ data: { id: `${id}-${to}`, source: id, target: to, linkType: 'cooccurrence', ...edge } }))
  return united([{ nodes: [entityNode(entity), ...nodes.filter(({ data }) => edges.has(String(data.id)))], edges: beside }, told])
}

/** The known ones, the longest first: a comma may stand within a name. `most` is of how many parts a known one is. Pure. */
function namesIn (named: string, known: ReadonlySet<string>, most: number): ReadonlySet<string> {
  const parts = named.split(BETWEEN_NAMES)
  const names = new Set<string>()
  for (let at = 0; at < parts.length;) {
    let length = Math.min(most, parts.length - at)
    while (length > 1 && !known.has(parts.slice(at, at + length).join(BETWEEN_NAMES))) length--
    names.add(parts.slice(at, at + length).join(BETWEEN_NAMES))
    at += length
  }
  return names
}

function entityNode ({ id, canonical_name: label, mention_count: mentionCount }: Row): GraphPart {
  return { data: { id, label, mentionCount, color: COLOR } }
}

function nodeOf (id: string, { text, date, mentioned_at: at, context, entities }: Row): GraphPart {
  const label = String(text)
  return {
    data: {
      id, label: label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL)}...` : label, text, date: date ?? at ?? '',
      context: context ?? '', entities: Array.isArray(entities) ? entities.join(', ') : '', color: COLOR
    }
  }
}

/** Each node and each edge once, as the last graph has it. Pure. */
function united (graphs: readonly Graph[]): Graph {
  const once = (parts: readonly GraphPart[]) => [...new Map(parts.map(part => [part.data.id, part])).values()]
  return { nodes: once(graphs.flatMap(({ nodes }) => nodes)), edges: once(graphs.flatMap(({ edges }) => edges)) }
}

async function thingOf ({ engine, bank, signal }: Place, what: 'memories' | 'entities', id: string): Promise<Row | null> {
  const path = bankPath(bank, what, id)
  const reply = await askEngine(engine, { method: 'GET', path, signal })
  return MISSING.includes(reply.status) ? null : valueOf(reply, path) as Row
}

async function asked (
  { engine, bank, signal }: Place, names: readonly string[], query: Readonly<Record<string, unknown>>
): Promise<Row> {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
  return await engineValue(engine, { method: 'GET', path: bankPath(bank, ...names), query: given.toString(), signal }) as Row
}

function graphIn (value: unknown, { bank }: Place): Graph {
  const partsIn = (key: string) => rowsIn(value, key, bankPath(bank, 'graph')) as unknown as readonly GraphPart[]
  return { nodes: partsIn('nodes'), edges: partsIn('edges') }
}
