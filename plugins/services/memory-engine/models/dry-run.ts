import type { Core } from '../core.js'
import { usageView } from '../llm/model.js'
import { needBank } from '../store/bank-table.js'
import { wireTime } from '../wire/times.js'
import type { MentalModel } from './mental-model-table.js'
import { triggerOf } from './model-view.js'
import { draft, scopeOf } from './refresh.js'
import { withTexts } from './shown-basis.js'

/** `MentalModelDryRunRefreshResult` of the wire: what a refresh would do, and nothing is kept. */
export async function dryRun (
  core: Core, bankId: string, model: MentalModel, signal: AbortSignal
): Promise<Record<string, unknown>> {
  const bank = needBank(core.store, bankId)
  const now = core.now()
  const made = await draft(core, bank, model, { traceId: null }, signal)
  const trigger = triggerOf(model.settings)
  const { tags, tagsMatch, tagGroups, types } = scopeOf(model)
  const usage = usageView(made.usage)
  const { based_on: basedOn } = withTexts(core.store, bank, model, { based_on: made.basedOn })
  const common = {
    effective_mode: made.mode, mode_fallback_reason: made.fallback, outcome: made.outcome,
    delta_operations: made.edits, retraction: null
  }
  return {
    mental_model_id: model.id, name: model.name, requested_mode: trigger.mode, ...common,
    would_persist: made.outcome === 'content_written',
    scope: {
      tags: tags ?? [], tags_match: tagsMatch, tag_groups: tagGroups, fact_types: types,
      exclude_mental_models: trigger.exclude_mental_models,
      exclude_mental_model_ids: [model.id, ...(trigger.exclude_mental_model_ids ?? []) as string[]]
    },
    window: { created_after: made.mode === 'delta' ? wireTime(model.lastMemorySeenAt) : null, created_before: wireTime(now), watermark: wireTime(model.lastMemorySeenAt) },
    facts: { retrieved: made.retrieved, used: made.candidate === '' ? {} : made.retrieved },
    based_on: basedOn, current_content: model.content, candidate_content: made.candidate, preview_content: made.content,
    diff: made.content === model.content ? '' : lineDiff(model.content, made.content),
    trace: {
      recorded_at: wireTime(now), ...common, usage, duration_ms: made.durationMs, warnings: made.warnings, llm_calls: made.calls,
      tool_calls: [{ tool: 'recall', reason: null, input: { query: model.sourceQuery }, output: null, duration_ms: made.recallMs, iteration: 0 }]
    },
    usage, duration_ms: made.durationMs, warnings: made.warnings
  }
}

/** Lines that go and lines that come. Pure. */
function lineDiff (before: string, after: string): string {
  const [old, next] = [before, after].map(text => text === '' ? [] : text.split('\n')) as [string[], string[]]
  const kept = new Set(old.filter(line => next.includes(line)))
  return [...old.filter(line => !kept.has(line)).map(line => `-${line}`), ...next.filter(line => !kept.has(line)).map(line => `+${line}`)].join('\n')
}
