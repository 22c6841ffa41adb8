import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { MemoryService } from '../../services/memory/ref.js'
import { enteredBank } from './access.js'
import { bankParam, BANKS, tag } from './bank-routes.js'
import { dialect } from './dialect.js'
import { memoryApiError } from './errors.js'
import { subgraphOf } from './subgraph.js'
import { toldGraph } from './told-graph.js'

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
  total_edges: z.int().meta({ description: 'Number in the part of the graph that was considered: the newest 2,000 memories, the 2,000 entities mentioned most, or what is around the node' }),
  total_units: z.int().optional().meta({ description: 'Number of memories' }),
  total_entities: z.int().optional().meta({ description: 'Number of entities' }),
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
      const place = { engine: memory.engine(), bank, signal: call.signal }
      const told = await toldGraph(place, { kind, node: mode === 'ego' ? node : undefined, depth, type, q })
      const part = subgraphOf(told, { mode, node, depth, limit, topK, by })
      if (part === null) throw memoryApiError('memory.node_not_found', `the graph of '${bank}' has no node '${node!.slice(0, 100)}'`, { param: 'node' })
      return {
        ...part,
        total_edges: told.totalEdges,
        ...kind === 'memories' ? { total_units: told.total } : { total_entities: told.total },
        returned_nodes: part.nodes.length,
        returned_edges: part.edges.length,
        truncated: part.nodes.length < told.total,
        mode,
        center: mode === 'ego' ? node! : null
      }
    }
  })
}
