import type { Core } from '../core.js'
import { basedOn } from '../llm/reflect-routes.js'
import { ask } from '../llm/ask.js'
import { directivesFor, reflect } from '../llm/reflect.js'
import { noUsage, type Usage } from '../llm/model.js'
import { readSources } from '../llm/sources.js'
import { tokensOf } from '../recall/tokens.js'
import { wireTime } from '../wire/times.js'
import type { TagGroup, TagMode } from '../memories/tag-filter.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Run, Work } from '../operations/operation-queue.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import type { FactType } from '../store/memory-table.js'
import { MentalModelTable, type MentalModel } from './mental-model-table.js'
import { deltaMessages, edited, editsIn, sectionsOf, type Edit } from './delta.js'
import { triggerOf } from './model-view.js'
import { isFullRefresh } from './submit-refresh.js'

/** What a refresh would make of a mental model. */
export interface Draft {
  readonly outcome: 'content_written' | 'content_unchanged' | 'content_preserved_no_new_facts' | 'refresh_failed_empty_candidate'
  readonly content: string
  readonly candidate: string
  readonly mode: 'full' | 'delta'
  /** Why a delta was none; null if it was, or was not asked for. */
  readonly fallback: string | null
  /** Of a delta. */
  readonly edits: readonly Edit[] | null
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
/** A draft reads memories, then has the model write. */
const STEPS = 2
/** What is new is looked for among so many times the memories that a model is shown. */
const NEW_AMONG = 4
const NOTHING_TO_READ = 'Nothing in the scope of this mental model was readable, so it was left as it is. Its tags, tag groups and fact types all narrow the scope.'

/** Which memories a mental model is made of. Pure. */
export function scopeOf (model: Pick<MentalModel, 'tags' | 'settings'>): Scope {
  const trigger = triggerOf(model.settings)
  return {
    tags: model.tags.length === 0 ? null : model.tags,
    tagsMatch: (trigger.tags_match ?? (model.tags.length === 0 ? 'any' : 'all_strict')) as TagMode,
    tagGroups: trigger.tag_groups as readonly TagGroup[] | null,
    types: trigger.fact_types as readonly FactType[] | null
  }
}

export interface DraftOptions {
  readonly traceId: string | null
  /** Whatever the mode of the model. */
  readonly full?: boolean
  /** Told which step is next, and how many of all are done. */
  readonly progress?: Run['progress']
}

/** Makes a mental model anew without keeping it, in its own mode. Throws what `reflect` throws. */
export async function draft (
  core: Core, bank: BankRow, model: MentalModel, options: DraftOptions, signal: AbortSignal
): Promise<Draft> {
  options.progress?.('reading', 0, STEPS)
  if (options.full === true || triggerOf(model.settings).mode !== 'delta') return await fullDraft(core, bank, model, options, signal)
  const fallback = noDelta(core, bank, model)
  if (fallback !== null) return { ...await fullDraft(core, bank, model, options, signal), fallback }
  return await deltaDraft(core, bank, model, options, signal)
}

/** Why a mental model cannot be brought up to date by its new memories alone; null if it can. */
function noDelta (core: Core, bank: BankRow, model: MentalModel): string | null {
  if (model.content === '' || model.reflectResponse === null) return 'no_baseline'
  if (model.reflectResponse.source_query !== model.sourceQuery) return 'source_query_changed'
  const ids = usedIn(model).map(({ id }) => id)
  const { valid } = core.store.get<{ valid: number }>(`SELECT count(*) AS valid FROM memories
    WHERE bank = ? AND state = 'valid' AND id IN (SELECT value FROM json_each(?))`, [bank.seq, JSON.stringify(ids)])!
  return valid < ids.length ? 'memories_retracted' : null
}

/** The memories that the content was made of, as `ReflectBasedOn` has them. */
function usedIn ({ reflectResponse }: MentalModel): ReadonlyArray<{ readonly id: string }> {
  const { memories } = (reflectResponse?.based_on ?? {}) as { readonly memories?: ReadonlyArray<{ readonly id: string }> }
  return memories ?? []
}

/** Edits the sections that new memories have to do with. An answer that is not sound changes nothing. */
async function deltaDraft (
  core: Core, bank: BankRow, model: MentalModel, { traceId, progress }: DraftOptions, signal: AbortSignal
): Promise<Draft> {
  const start = performance.now()
  const { recall_max_tokens: recallTokens } = triggerOf(model.settings)
  const scope = scopeOf(model)
  const maxTokens = (recallTokens ?? SOURCE_TOKENS) as number
  const found = await readSources(core, bank, { ...scope, query: model.sourceQuery, maxTokens: maxTokens * NEW_AMONG }, signal)
  let left = maxTokens
  const since = model.lastMemorySeenAt ?? 0
  const fresh = found.filter(row => row.updated_at > since && (left -= tokensOf(row.text)) >= 0)
  const recallMs = Math.round(performance.now() - start)
  const kept = usedIn(model)
  const common = { mode: 'delta', fallback: null, recallMs } as const
  if (fresh.length === 0) {
    return {
      ...common, outcome: 'content_preserved_no_new_facts', content: model.content, candidate: '', edits: [],
      basedOn: { memories: kept }, retrieved: {}, lastMemorySeenAt: null, usage: noUsage, calls: [],
      durationMs: recallMs, warnings: []
    }
  }
  const directives = directivesFor(core, bank, { ...scope, allDirectives: false })
  const facts = fresh.map(row => ({ text: row.text, at: wireTime(row.occurred_start ?? row.mentioned_at) }))
  progress?.('writing', 1, STEPS)
  const asked = performance.now()
  const messages = deltaMessages(model.sourceQuery, model.content, { facts, directives })
  const answer = await ask(core, { bank: bank.seq, operation: 'refresh_mental_model', scope: 'delta', traceId },
    { messages, maxTokens: model.maxTokens, json: true }, signal)
  const edits = editsIn(answer.text, sectionsOf(model.content).length)
  const content = edited(model.content, edits)
  if (content === '') throw new PermanentFailure('the model would have removed the whole document')
  const based = basedOn(bank.bank_id, { memories: fresh, models: [], directives })
  const ids = new Set(fresh.map(({ id }) => id))
  return {
    ...common, outcome: content === model.content ? 'content_unchanged' : 'content_written', content, candidate: content,
    edits,
    basedOn: { ...based, memories: [...kept.filter(({ id }) => !ids.has(id)), ...based.memories as object[]] },
    retrieved: countsOf(fresh), lastMemorySeenAt: Math.max(...fresh.map(row => row.updated_at)), usage: answer,
    calls: [{ scope: 'delta', duration_ms: Math.round(performance.now() - asked) }],
    durationMs: Math.round(performance.now() - start), warnings: []
  }
}

function countsOf (rows: ReadonlyArray<{ readonly fact_type: string }>): Readonly<Record<string, number>> {
  const types = [...new Set(rows.map(row => row.fact_type))]
  return Object.fromEntries(types.map(type => [type, rows.filter(row => row.fact_type === type).length]))
}

async function fullDraft (
  core: Core, bank: BankRow, model: MentalModel, { traceId, progress }: DraftOptions, signal: AbortSignal
): Promise<Draft> {
  const start = performance.now()
  const {
    recall_max_tokens: recallTokens, exclude_mental_models: alone, exclude_mental_model_ids: without
  } = triggerOf(model.settings)
  const scope = scopeOf(model)
  const maxTokens = (recallTokens ?? SOURCE_TOKENS) as number
  const nothing = {
    mode: 'full' as const, fallback: null, edits: null,
    content: model.content, candidate: '', basedOn: {}, retrieved: {}, lastMemorySeenAt: null, usage: noUsage, calls: [], recallMs: 0
  }
  const found = await readSources(core, bank, { ...scope, query: model.sourceQuery, maxTokens }, signal)
  // without anything to read no model is needed to say so
  if (found.length === 0) {
    return { ...nothing, outcome: 'content_preserved_no_new_facts', durationMs: Math.round(performance.now() - start), warnings: [NOTHING_TO_READ] }
  }
  progress?.('writing', 1, STEPS)
  const reflection = await reflect(core, bank, { operation: 'refresh_mental_model', traceId }, {
    ...scope, memories: found, query: model.sourceQuery, context: null, maxTokens: model.maxTokens, sourceTokens: maxTokens,
    allDirectives: false,
    withModels: alone !== true, withoutModels: [model.id, ...(without ?? []) as string[]], schema: null, isDocument: true
  }, signal)
  const { text, memories, usage, calls, recallMs } = reflection
  const outcome = text === '' ? 'refresh_failed_empty_candidate' : text === model.content ? 'content_unchanged' : 'content_written'
  return {
    mode: 'full', fallback: null, edits: null, outcome, content: text === '' ? model.content : text, candidate: text, basedOn: basedOn(bank.bank_id, reflection), usage, calls, recallMs,
    retrieved: countsOf(memories),
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
      const options = { traceId: operation.id, full: isFullRefresh(operation), progress: run.progress }
      const made = await draft(core, bank, model, options, run.signal)
      if (made.outcome === 'refresh_failed_empty_candidate') throw new PermanentFailure('the model answered with an empty document')
      run.commit(() => {
        const isSkipped = made.outcome === 'content_preserved_no_new_facts'
        run.progress(isSkipped ? 'reading' : 'writing', STEPS, STEPS)
        const why = made.mode === 'full' ? 'no_sources_in_scope' : 'no_new_facts'
        const skipped = isSkipped ? { mental_models: [], reflect_skipped: why } : {}
        table.refreshed(bank.seq, table.get(bank.seq, model.id)!, {
          content: made.content, lastMemorySeenAt: made.lastMemorySeenAt, isFull: made.mode === 'full',
          reflectResponse: {
            text: made.candidate, outcome: made.outcome, source_query: model.sourceQuery, based_on: made.basedOn, ...skipped
          }
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
