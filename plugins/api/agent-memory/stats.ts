import { messageOf } from 'svc-gateway/plugin'
import { askEngine, bankPath, datasetOf, engineFailure, type Dataset, type MemoryEngine, type MemoryService } from '../../services/memory/ref.js'

export interface AgentMemoryStats {
  readonly agent_id: string
  readonly namespace: string
  readonly writes: number
  readonly reads: number
  readonly last_write: string | null
  readonly available: boolean
  readonly reason?: string
}

/** Names of agents are names of datasets, too. Pure. */
export function ownDataset (agent: string): Dataset {
  return datasetOf(`private:${agent}`)!
}

/** Rejects only where the caller has left. */
export async function memoryStats (memory: Pick<MemoryService, 'engine'>, agent: string, signal: AbortSignal): Promise<AgentMemoryStats> {
  const { name: namespace, bank } = ownDataset(agent)
  const none = { agent_id: agent, namespace, writes: 0, reads: 0, last_write: null }
  try {
    const engine = memory.engine()
    const held = await rowOf(engine, bankPath(bank, 'stats'), '', signal)
    // a dataset comes to be with its first memory
    if (held === null) return { ...none, available: true }
    const { total_documents: documents, last_memory_write_at: at } = held
    // not every engine keeps a record of what it was asked
    const recalls = await rowOf(engine, bankPath(bank, 'audit-logs'), 'action=recall&limit=1', signal).catch(() => null)
    signal.throwIfAborted()
    return { ...none, writes: count(documents), reads: count(recalls?.total), last_write: typeof at === 'string' ? at : null, available: true }
  } catch (error) {
    signal.throwIfAborted()
    return { ...none, available: false, reason: messageOf(error) }
  }
}

/** Null where the engine has no such thing. */
async function rowOf (
  engine: MemoryEngine, path: string, query: string, signal: AbortSignal
): Promise<Readonly<Record<string, unknown>> | null> {
  const reply = await askEngine(engine, { method: 'GET', path, query, signal })
  if (reply.status === 404) return null
  if (reply.status > 299 || typeof reply.value !== 'object' || reply.value === null) throw engineFailure(reply, path)
  return reply.value as Readonly<Record<string, unknown>>
}

function count (value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}
