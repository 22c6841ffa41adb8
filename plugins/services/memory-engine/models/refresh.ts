import type { Core } from '../core.js'
import { basedOn } from '../llm/reflect-routes.js'
import { reflect } from '../llm/reflect.js'
import { noUsage, type Usage } from '../llm/model.js'
import { readSources } from '../llm/sources.js'
import type { TagGroup, TagMode } from '../memories/tag-filter.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Work } from '../operations/operation-queue.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import type { FactType } from '../store/memory-table.js'
import { MentalModelTable, type MentalModel } from './mental-model-table.js'
import { triggerOf } from './model-view.js'

/** What a refresh would make of a mental model. */
export interface Draft {
  readonly outcome: 'content_written' | 'content_unchanged' | 'content_preserved_no_new_facts' | 'refresh_failed_empty_candidate'
  readonly content: string
  readonly candidate: string
  readonly basedOn: Readonly<Record<string, unknown>>
  /** Memories that were read, by type. */
  readonly retrieved: Readonly<Record<string, number>>
  readonly lastMemorySeenAt: number | null
  readonly usage: Usage
  readonly calls: ReadonlyArray<{ readonly scope: string, readonly duration_ms: number }>
  readonly recallMs: number
  readonly durationMs: number
  readonly warnings: readonly string[]
}

export interface Scope {
  readonly tags: readonly string[] | null
  readonly tagsMatch: TagMode
  readonly tagGroups: readonly TagGroup[] | null
  readonly types: readonly FactType[] | null
}

const SOURCE_TOKENS = 2048
const NOTHING_TO_READ = 'Nothing in the scope of this mental model was readable, so it was left as it is. Its tags, tag groups and fact types all narrow the scope.'

/** Which memories a mental model is made of. Pure. */
export function scopeOf (model: MentalModel): Scope {
  const trigger = triggerOf(model.settings)
  return {
    tags: model.tags.length === 0 ? null : model.tags,
    tagsMatch: (trigger.tags_match ?? (model.tags.length === 0 ? 'any' : 'all_strict')) as TagMode,
    tagGroups: trigger.tag_groups as readonly TagGroup[] | null,
    types: trigger.fact_types as readonly FactType[] | null
  }
}

/** Makes a mental model anew without keeping it. Throws what `reflect` throws. */
export async function draft (
  core: Core, bank: BankRow, model: MentalModel, traceId: string | null, signal: AbortSignal
): Promise<Draft> {
  const start = performance.now()
  const {
    recall_max_tokens: recallTokens, exclude_mental_models: alone, exclude_mental_model_ids: without
  } = triggerOf(model.settings)
  const scope = scopeOf(model)
  const maxTokens = (recallTokens ?? SOURCE_TOKENS) as number
  const nothing = {
    content: model.content, candidate: '', basedOn: {}, retrieved: {}, lastMemorySeenAt: null, usage: noUsage, calls: [], recallMs: 0
  }
  const found = await readSources(core, bank, { ...scope, query: model.sourceQuery, maxTokens }, signal)
  // without anything to read no model is needed to say so
  if (found.length === 0) {
    return { ...nothing, outcome: 'content_preserved_no_new_facts', durationMs: Math.round(performance.now() - start), warnings: [NOTHING_TO_READ] }
  }
  const reflection = await reflect(core, bank, { operation: 'refresh_mental_model', traceId }, {
    ...scope, memories: found, query: model.sourceQuery, context: null, maxTokens: model.maxTokens, sourceTokens: maxTokens,
    allDirectives: false,
    withModels: alone !== true, withoutModels: [model.id, ...(without ?? []) as string[]], schema: null, isDocument: true
  }, signal)
  const { text, memories, usage, calls, recallMs } = reflection
  const outcome = text === '' ? 'refresh_failed_empty_candidate' : text === model.content ? 'content_unchanged' : 'content_written'
  return {
    outcome, content: text === '' ? model.content : text, candidate: text, basedOn: basedOn(bank.bank_id, reflection), usage, calls, recallMs,
    retrieved: Object.fromEntries(
      [...new Set(memories.map(row => row.fact_type))].map(type => [type, memories.filter(row => row.fact_type === type).length])
    ),
    lastMemorySeenAt: Math.max(...memories.map(row => row.updated_at)), durationMs: Math.round(performance.now() - start),
    warnings: []
  }
}

/** The work of `refresh_mental_model`. */
export function refreshWork (core: Core): Work {
  return async (operation, run) => {
    const bank = findBank(core.store, operation.bankId)
    const table = new MentalModelTable(core)
    const model = bank === undefined ? null : table.get(bank.seq, operation.mentalModelId!)
    if (bank === undefined || model === null) throw new PermanentFailure(`Mental model '${operation.mentalModelId!}' not found`)
    try {
      const made = await draft(core, bank, model, operation.id, run.signal)
      if (made.outcome === 'refresh_failed_empty_candidate') throw new PermanentFailure('the model answered with an empty document')
      run.commit(() => {
        const skipped = made.outcome === 'content_preserved_no_new_facts' ? { mental_models: [], reflect_skipped: 'no_sources_in_scope' } : {}
        table.refreshed(bank.seq, table.get(bank.seq, model.id)!, {
          content: made.content, lastMemorySeenAt: made.lastMemorySeenAt, isFull: true,
          reflectResponse: { text: made.candidate, outcome: made.outcome, based_on: made.basedOn, ...skipped }
        })
        return { outcome: made.outcome }
      }, { operation_type: 'refresh_mental_model', outcome: made.outcome, failure_reason: null })
    } catch (error) {
      run.signal.throwIfAborted()
      table.refreshFailed(bank.seq, model, 'refresh_failed_error', 'unexpected_error', (error as Error).message)
      const details = { operation_type: 'refresh_mental_model', outcome: 'refresh_failed_error', failure_reason: 'unexpected_error' }
      throw error instanceof PermanentFailure ? new PermanentFailure(error.message, details) : error
    }
  }
}
