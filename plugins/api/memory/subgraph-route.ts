import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import { bankPath, engineValue, rowsIn, type MemoryService } from '../../services/memory/ref.js'
import { enteredBank } from './access.js'
import { bankParam, BANKS, tag } from './bank-routes.js'
import { dialect } from './dialect.js'
import { memoryApiError } from './errors.js'
import { subgraphOf, type GraphPart } from './subgraph.js'

/** What is asked of the engine at most, to choose from. */
const MOST_NODES = 5000
const most = z.coerce.number().int().min(1).max(500)

const querySchema = z.strictObject({
  kind: z.enum(['memories', 'entities']).default('memories'),
  mode: z.enum(['top', 'ego']).default('top'),
  node: z.string().min(1).max(256).optional().meta({ description: 'Id of the central node, for `mode=ego`' }),
  depth: z.coerce.number().int().min(0).max(2).default(1),
  limit: most.default(240),
  top_k: most.default(200),
  by: z.enum(['degree', 'recency']).default('degree'),
  type: z.string().max(64).optional(),
  q: z.string().max(500).optional()
})

const partSchema = z.looseObject({ data: z.looseObject({}) })
const responseSchema = z.strictObject({
  nodes: z.array(partSchema),
  edges: z.array(partSchema),
  total_edges: z.int(),
  total_units: z.int().optional().meta({ description: 'Of memories' }),
  total_entities: z.int().optional().meta({ description: 'Of entities' }),
  returned_nodes: z.int(),
  returned_edges: z.int(),
  truncated: z.boolean(),
  mode: z.enum(['top', 'ego']),
  center: z.string().nullable()
})

/** A part of a bank's graph that can be drawn, chosen here from what either engine tells. */
export function subgraphRoute (memory: MemoryService): AnyRoute {
  return defineRoute({
    method: 'GET',
    url: `${BANKS}/:bank/graph/subgraph`,
    tag,
    dialect,
    summary: 'A part of the graph of a bank: its most connected or newest nodes, or those around one',
    queryError: memoryApiError.kind('memory.invalid_query'),
    schema: { params: z.strictObject({ bank: bankParam }), querystring: querySchema, response: responseSchema },
    handler: async call => {
      const { query: { kind, mode, node, depth, limit, top_k: topK, by, type, q } } = call
      const bank = await enteredBank(memory, call)
      if (mode === 'ego' && node === undefined) throw memoryApiError('memory.invalid_query', 'mode=ego needs the id of a node', { param: 'node' })
      const isMemories = kind === 'memories'
      const path = bankPath(bank, ...isMemories ? ['graph'] : ['entities', 'graph'])
      const asked = new URLSearchParams({ limit: String(MOST_NODES) })
      if (isMemories && type !== undefined) asked.set('type', type)
      if (isMemories && q !== undefined) asked.set('q', q)
      const value = await engineValue(memory.engine(), { method: 'GET', path, query: asked.toString(), signal: call.signal })
      const all = rowsIn(value, 'nodes', path) as unknown as readonly GraphPart[]
      const isAsked = ({ data }: GraphPart): boolean => String(data.label).toLowerCase().includes(q?.toLowerCase() ?? '')
      const nodes = isMemories ? all : all.filter(isAsked)
      const edges = rowsIn(value, 'edges', path) as unknown as readonly GraphPart[]
      const part = subgraphOf({ nodes, edges }, { mode, node, depth, limit, topK, by })
      if (part === null) throw memoryApiError('memory.node_not_found', `the graph of '${bank}' has no node '${node!.slice(0, 100)}'`, { param: 'node' })
      const told = value as Readonly<Record<string, unknown>>
      const total = Number(isMemories ? told.total_units ?? all.length : told.total_entities ?? all.length)
      return {
        ...part,
        total_edges: Number(told.total_edges ?? edges.length),
        ...isMemories ? { total_units: total } : { total_entities: total },
        returned_nodes: part.nodes.length,
        returned_edges: part.edges.length,
        truncated: part.nodes.length < total,
        mode,
        center: mode === 'ego' ? node! : null
      }
    }
  })
}
