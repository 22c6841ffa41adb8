import { messageOf, settingsOf, type ConfigService } from 'svc-gateway/plugin'
import { z } from 'zod'
import { askEngine, bankPath, engineRows, valueOf, type MemoryEngine, type MemoryService } from '../../services/memory/ref.js'
import { memorySettings } from '../../services/memory/settings.js'

const AT_ONCE = 8
/** Each is a question of its own. */
const MOST_COUNTED = 1000

export const graphStatusSchema = z.strictObject({
  enabled: z.boolean(),
  extraction_slot: z.string(),
  route: z.string().meta({ description: 'The same as `extraction_slot`', deprecated: true }),
  slot_resolves: z.boolean().meta({ description: 'Whether it is an enabled llm slot' }),
  available_slots: z.array(z.string()),
  in_flight: z.int().meta({ description: 'Pending and running operations' }),
  builds_ok: z.int(),
  errors: z.int(),
  last_built_at: z.string().nullable(),
  last_error: z.string().nullable(),
  banks: z.int().meta({ description: 'Number of banks; 0 where `last_error` says why nothing was counted' }),
  banks_counted: z.int().meta({ description: 'Number of banks whose operations are counted: the first 1,000 that the engine lists' }),
  llm_timeout_s: z.int()
}).meta({ title: 'MemoryGraphStatus' })
type GraphStatus = z.output<typeof graphStatusSchema>

type Counters = Pick<GraphStatus, 'in_flight' | 'builds_ok' | 'errors' | 'last_built_at' | 'banks' | 'banks_counted'>

/** How the graph is made, and what the engine did of it. An engine that does not answer is told, and no failure. */
export async function graphStatus (config: ConfigService, memory: MemoryService, signal: AbortSignal): Promise<GraphStatus> {
  const engine = memory.engine()
  const { graph } = settingsOf(config.snapshot.svc, memorySettings)
  const slots = llmSlots(config)
  const { enabled, extraction_slot: slot, llm_timeout_s: timeout } = graph
  const about = {
    enabled,
    extraction_slot: slot,
    route: slot,
    slot_resolves: slots.includes(slot),
    available_slots: slots,
    llm_timeout_s: timeout
  }
  try {
    return { ...about, ...await counters(engine, signal), last_error: null }
  } catch (error) {
    const isLate = signal.aborted && (signal.reason as Error).name === 'TimeoutError'
    if (!isLate) signal.throwIfAborted()
    const why = isLate ? 'the memory engine did not say in time what it did' : messageOf(error)
    return { ...about, in_flight: 0, builds_ok: 0, errors: 0, last_built_at: null, last_error: why, banks: 0, banks_counted: 0 }
  }
}

export function llmSlots (config: ConfigService): string[] {
  return [...config.snapshot.slots.values()].filter(({ type, enabled }) => type === 'llm' && enabled).map(({ name }) => name).sort()
}

/** Ids of all banks of an engine. */
export async function banksOf (engine: MemoryEngine, signal: AbortSignal): Promise<readonly string[]> {
  const ids: string[] = []
  for await (const { bank_id: id } of engineRows(engine, { path: '/v1/default/banks', key: 'banks', id: 'bank_id' }, signal)) {
    if (typeof id === 'string') ids.push(id)
  }
  return ids
}

async function counters (engine: MemoryEngine, signal: AbortSignal): Promise<Counters> {
  const all = await banksOf(engine, signal)
  const ids = all.slice(0, MOST_COUNTED)
  const banks = { banks: all.length, banks_counted: ids.length }
  const sum = { ...banks, in_flight: 0, builds_ok: 0, errors: 0, last_built_at: null as string | null }
  const one = async (id: string): Promise<void> => {
    const path = bankPath(id, 'stats')
    const reply = await askEngine(engine, { method: 'GET', path, signal })
    // deleted since the banks were listed
    if (reply.status === 404) return
    const stats = valueOf(reply, path) as Readonly<Record<string, unknown>>
    const { completed } = (stats.operations_by_status ?? {}) as { readonly completed?: unknown }
    sum.in_flight += number(stats.pending_operations)
    sum.errors += number(stats.failed_operations)
    sum.builds_ok += number(completed)
    const at = stats.last_consolidated_at
    if (typeof at === 'string' && (sum.last_built_at === null || Date.parse(at) > Date.parse(sum.last_built_at))) sum.last_built_at = at
  }
  for (let at = 0; at < ids.length; at += AT_ONCE) await Promise.all(ids.slice(at, at + AT_ONCE).map(one))
  return sum
}

function number (value: unknown): number {
  return typeof value === 'number' ? value : 0
}
