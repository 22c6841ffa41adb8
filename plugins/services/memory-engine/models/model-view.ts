import { wireTime } from '../wire/times.js'
import type { Directive } from './directive-table.js'
import type { MentalModel, ModelSettings } from './mental-model-table.js'

export function directiveView (bankId: string, directive: Directive): Record<string, unknown> {
  return {
    id: directive.id,
    bank_id: bankId,
    name: directive.name,
    content: directive.content,
    priority: directive.priority,
    is_active: directive.isActive,
    tags: directive.tags,
    created_at: wireTime(directive.createdAt),
    updated_at: wireTime(directive.updatedAt)
  }
}

const defaultTrigger: ModelSettings = {
  budget: null,
  mode: 'full',
  refresh_after_consolidation: false,
  refresh_cron: null,
  full_refresh_cron: null,
  min_refresh_interval_seconds: null,
  fact_types: null,
  exclude_mental_models: false,
  exclude_mental_model_ids: null,
  tags_match: null,
  tag_groups: null,
  include_chunks: null,
  recall_max_tokens: null,
  recall_chunks_max_tokens: null,
  reflect_search_observations_max_tokens: null,
  reflect_search_observations_include_entities: null,
  response_schema: null,
  keep_trace: false
}

/** All of the settings, with the defaults of those that were not given. Pure. */
export function triggerOf (settings: ModelSettings): ModelSettings {
  return Object.fromEntries(Object.entries(defaultTrigger).map(([name, value]) => [name, settings[name] ?? value]))
}

export const modelDetails = ['metadata', 'content', 'full'] as const
export type ModelDetail = typeof modelDetails[number]

/** A mental model with as much of it as was asked for, the rest null. `isStale` is null where it was not looked at. Pure. */
export function modelView (
  bankId: string, model: MentalModel, detail: ModelDetail, isStale: boolean | null
): Record<string, unknown> {
  const withContent = detail !== 'metadata'
  return {
    id: model.id,
    bank_id: bankId,
    name: model.name,
    source_query: withContent ? model.sourceQuery : null,
    content: withContent ? model.content : null,
    tags: model.tags,
    max_tokens: withContent ? model.maxTokens : null,
    trigger: withContent ? triggerOf(model.settings) : null,
    last_refreshed_at: wireTime(model.lastRefreshedAt ?? model.createdAt),
    last_memory_seen_at: wireTime(model.lastMemorySeenAt),
    last_refresh_failed_at: wireTime(model.lastRefreshFailedAt),
    last_full_refreshed_at: wireTime(model.lastFullRefreshedAt),
    created_at: wireTime(model.createdAt),
    is_knowledge_page: isStale === null ? null : model.isKnowledgePage,
    reflect_response: detail === 'full' ? model.reflectResponse : null,
    is_stale: isStale
  }
}
