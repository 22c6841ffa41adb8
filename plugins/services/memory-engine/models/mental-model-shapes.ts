import { tagGroup, tagModes } from '../memories/tag-filter.js'
import {
  anything, bool, int, invalid, listOf, mapOf, maybe, nullable, object, oneOf, optional, required, text, type Shape
} from '../wire/shape.js'
import { storedTags } from '../wire/tags.js'
import { cronOf } from './cron.js'

const cron: Shape<string> = (value, at, reading) => {
  const read = text(value, at, reading)
  return typeof read === 'string' && cronOf(read) === null
    ? invalid(reading, at, 'a cron expression has five fields: minute, hour, day of month, month, day of week', value)
    : read
}

const triggerFields = object({
  budget: maybe(oneOf('low', 'mid', 'high')),
  mode: optional(oneOf('full', 'delta'), 'full'),
  refresh_after_consolidation: optional(bool, false),
  refresh_cron: maybe(cron),
  full_refresh_cron: maybe(cron),
  min_refresh_interval_seconds: maybe(int({ min: 0 })),
  fact_types: maybe(listOf(oneOf('world', 'experience', 'observation'))),
  exclude_mental_models: optional(bool, false),
  exclude_mental_model_ids: maybe(listOf(text)),
  tags_match: maybe(oneOf(...tagModes)),
  tag_groups: maybe(listOf(tagGroup)),
  include_chunks: maybe(bool),
  recall_max_tokens: maybe(int({ min: 1 })),
  recall_chunks_max_tokens: maybe(int({ min: 1 })),
  reflect_search_observations_max_tokens: maybe(int({ min: 1 })),
  reflect_search_observations_include_entities: maybe(bool),
  response_schema: maybe(mapOf(anything)),
  keep_trace: optional(bool, false)
})

/** `MentalModelTrigger` of the wire. */
export const trigger: typeof triggerFields = (value, at, reading) => {
  const read = triggerFields(value, at, reading)
  return read?.refresh_after_consolidation === true && read.refresh_cron !== null
    ? invalid(reading, at, 'refresh_after_consolidation and refresh_cron are mutually exclusive', value)
    : read
}

export const MAX_TOKENS = 2048
const maxTokens = int({ min: 256, max: 8192 })

export const createModel = object({
  id: maybe(text),
  name: required(text),
  source_query: required(text),
  tags: optional(storedTags, []),
  max_tokens: optional(maxTokens, MAX_TOKENS),
  trigger: optional(nullable(trigger), null)
})

export const updateModel = object({
  name: maybe(text), source_query: maybe(text), max_tokens: maybe(maxTokens), tags: maybe(storedTags), trigger: maybe(trigger)
})

export const refreshModel = object({ mode: maybe(oneOf('full')) })
