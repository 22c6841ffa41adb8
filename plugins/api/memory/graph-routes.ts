import {
  defineRoute, isSvcError, settingsOf, whileConnected, type ActivityLog, type AnyRoute, type ConfigService
} from 'svc-gateway/plugin'
import { z } from 'zod'
import {
  askEngine, bankPath, committedSignal, engineRows, identityOf, type MemoryEngine, type MemoryService
} from '../../services/memory/ref.js'
import { memorySettings } from '../../services/memory/settings.js'
import { checkOperator } from './access.js'
import { tag } from './bank-routes.js'
import { dialect } from './dialect.js'
import { graphError } from './errors.js'
import { banksOf, graphStatus, graphStatusSchema, llmSlots } from './graph-status.js'
import { propagate, type UnitPlace } from './propagation.js'

export interface GraphDeps {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly memory: MemoryService
  readonly unit: UnitPlace
}

/** For the results that the answer to a change tells. */
const STATUS_MS = 120_000

const { shape } = memorySettings.schema.shape.graph.unwrap()
const bodySchema = z.strictObject({
  enabled: shape.enabled.unwrap().optional(),
  extraction_slot: shape.extraction_slot.unwrap().optional().meta({ description: 'An enabled llm slot' }),
  llm_timeout_s: shape.llm_timeout_s.unwrap().optional()
})

const propagationSchema = z.strictObject({
  slot: z.string(),
  model: z.string(),
  timeout_s: z.int(),
  drop_in: z.string(),
  written: z.boolean(),
  daemon_reloaded: z.boolean(),
  restarted: z.boolean(),
  error: z.string().nullable()
})
const savedSchema = z.strictObject({
  enabled: z.boolean(),
  extraction_slot: z.string(),
  llm_timeout_s: z.int(),
  status: graphStatusSchema,
  propagation: propagationSchema.optional().meta({ description: 'For a Hindsight server: whether the setting was passed on' })
})
const countSchema = z.strictObject({ queued: z.int(), skipped: z.int(), failed: z.int() })
const retriedSchema = z.strictObject({ queued: z.int(), skipped: z.int(), banks: z.record(z.string(), countSchema) })
type Retried = z.output<typeof retriedSchema>

/** `/api/memory/graph`: whether and by which slot the graph is extracted. */
export function graphRoutes ({ activity, config, memory, unit }: GraphDeps): AnyRoute[] {
  const place = { tag, dialect } as const
  return [
    defineRoute({
      ...place,
      method: 'GET',
      url: '/api/memory/graph',
      alsoAt: ['/api/memory/graph/status'],
      summary: 'Settings and results of the graph extraction',
      schema: { response: graphStatusSchema },
      handler: call => graphStatus(config, memory, call.signal)
    }),
    defineRoute({
      ...place,
      method: 'PUT',
      url: '/api/memory/graph',
      summary: 'Switch the graph extraction on or off, or change its slot',
      description: 'Switching it off cancels what the embedded engine is extracting. A Hindsight server that runs under systemd is reconfigured and restarted; see `propagation` for the result.',
      bodyError: graphError.kind('config.memory_graph_invalid'),
      schema: { body: bodySchema, response: savedSchema },
      example: { enabled: false },
      handler: call => {
        checkOperator(identityOf(call.request.headers).agent)
        return whileConnected(call, activity.audited({
          category: 'memory', action: 'memory.graph.update', target: 'svc.toml', actor: call.actor, request_id: call.requestId
        }, async note => {
          const engine = memory.engine()
          const before = settingsOf(config.snapshot.svc, memorySettings).graph
          checkSlot(config, call.body.extraction_slot, before.extraction_slot)
          const { graph } = settingsOf(await config.patchSvc({ memory: { graph: call.body } }).catch(asSlotError), memorySettings)
          const { enabled, extraction_slot: slot, llm_timeout_s: timeout } = graph
          note({
            before: { enabled: before.enabled, extraction_slot: before.extraction_slot, llm_timeout_s: before.llm_timeout_s },
            after: { enabled, extraction_slot: slot, llm_timeout_s: timeout }
          })
          const isChanged = slot !== before.extraction_slot || timeout !== before.llm_timeout_s
          const propagation = engine.name === 'hindsight' && isChanged ? { propagation: await propagate(unit, slot, timeout) } : {}
          const status = await graphStatus(config, memory, AbortSignal.timeout(STATUS_MS))
          return { enabled, extraction_slot: slot, llm_timeout_s: timeout, status, ...propagation }
        }))
      }
    }),
    defineRoute({
      ...place,
      method: 'POST',
      url: '/api/memory/graph/retry',
      summary: 'Retry all failed background operations',
      schema: { response: retriedSchema },
      handler: call => {
        checkOperator(identityOf(call.request.headers).agent)
        memory.engine()
        return whileConnected(call, activity.audited({
          category: 'memory', action: 'memory.graph.retry_failed', target: 'memory', actor: call.actor, request_id: call.requestId
        }, async note => {
          return await retryAll(memory, ({ queued, skipped }) => note({ after: { queued, skipped } }))
        }))
      }
    })
  ]
}

/** @param note told after each operation: where one of them fails, what was done before it stays done */
async function retryAll (memory: MemoryService, note: (done: Retried) => void): Promise<Retried> {
  const engine = memory.engine()
  const done: Retried = { queued: 0, skipped: 0, banks: {} }
  note(done)
  const signal = committedSignal()
  for (const bank of await banksOf(engine, signal)) {
    // one that is retried leaves the list: all of it is read before
    const ids = await failedOf(engine, bank, signal)
    if (ids.length === 0) continue
    const count = done.banks[bank] = { queued: 0, skipped: 0, failed: 0 }
    for (const id of ids) {
      const path = bankPath(bank, 'operations', id, 'retry')
      const { status } = await askEngine(engine, { method: 'POST', path, signal })
      const outcome = status < 300 ? 'queued' : status === 409 ? 'skipped' : 'failed'
      count[outcome]++
      if (outcome !== 'failed') done[outcome]++
      note(done)
    }
  }
  return done
}

async function failedOf (engine: MemoryEngine, bank: string, signal: AbortSignal): Promise<readonly string[]> {
  const ids: string[] = []
  const list = { path: bankPath(bank, 'operations'), query: 'status=failed', key: 'operations', id: 'id' }
  try {
    for await (const { id } of engineRows(engine, list, signal)) ids.push(String(id))
  } catch (error) {
    // deleted since the banks were listed
    if (isSvcError(error) && error.status === 404) return []
    throw error
  }
  return ids
}

/** One that was named before may be away for now, and where there is none any name will do until there is. */
function checkSlot (config: ConfigService, asked: string | undefined, before: string): void {
  const slots = llmSlots(config)
  if (asked === undefined || asked === before || slots.includes(asked)) return
  const there = slots.length === 0 ? 'there is none yet' : `there are ${slots.slice(0, 20).join(', ')}`
  throw noSlot(`'${asked}' is not an enabled llm slot: ${there}`, slots)
}

function asSlotError (error: unknown): never {
  if (!isSvcError(error) || !error.code.startsWith('validation.')) throw error
  throw noSlot(error.message, [])
}

function noSlot (message: string, slots: readonly string[]): Error {
  return graphError('config.memory_graph_slot_invalid', message, { param: 'extraction_slot', details: { available_slots: slots.join(',') } })
}
