import { tagGroup, tagModes } from '../memories/tag-filter.js'
import type { RecalledRow } from '../recall/recalled-row.js'
import { chunkIdOf } from '../wire/chunk-id.js'
import { ensureBank, overridesOf } from '../store/bank-table.js'
import { factTypes } from '../store/memory-table.js'
import { BANK, json, type WireRoute } from '../wire/answer.js'
import { anything, bool, int, listOf, mapOf, maybe, nullable, object, oneOf, optional, readBody, required, text } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'
import { requireChat } from './ask.js'
import { usageView } from './model.js'
import { asking } from './refusal.js'
import { reflect, type Reflection } from './reflect.js'

const include = object({ facts: maybe(object({})), tool_calls: maybe(object({ output: optional(bool, true) })) })
const nothing = { facts: null, tool_calls: null } as const
const request = object({
  query: required(text),
  budget: optional(nullable(oneOf('low', 'mid', 'high')), 'low'),
  context: maybe(text),
  max_tokens: optional(int({ min: 1, max: 131_072 }), 4096),
  include: optional(nullable(include), nothing),
  response_schema: maybe(mapOf(anything)),
  tags: maybe(listOf(text)),
  tags_match: optional(nullable(oneOf(...tagModes)), 'any'),
  tag_groups: maybe(listOf(tagGroup)),
  apply_all_directives: optional(bool, false),
  fact_types: maybe(listOf(oneOf(...factTypes))),
  exclude_mental_models: optional(bool, false),
  exclude_mental_model_ids: maybe(listOf(text)),
  reflect_search_observations_max_tokens: maybe(int({ min: 1 })),
  reflect_search_observations_include_entities: maybe(bool)
})

/** Of the memories that a model is shown: a local model's context is small. */
const sourceTokens = { low: 1500, mid: 3000, high: 6000 } as const

const handler = asking(async ({ core, params, body, headers, ignored, signal }) => {
  const given = readBody(body, headers, ignored, request)
  requireChat(core, 'reflect')
  const bank = ensureBank(core.store, params.bank_id!, core.now())
  const preset = (overridesOf(bank).reflect_default_options ?? {}) as Record<string, unknown>
  const reflection = await reflect(core, bank, { operation: 'reflect', traceId: null }, {
    query: given.query, context: given.context, maxTokens: given.max_tokens, sourceTokens: sourceTokens[given.budget ?? 'low'],
    types: given.fact_types, tags: given.tags, tagsMatch: given.tags_match ?? 'any', tagGroups: given.tag_groups,
    allDirectives: given.apply_all_directives, withModels: !given.exclude_mental_models && preset.exclude_mental_models !== true,
    withoutModels: given.exclude_mental_model_ids ?? [], schema: given.response_schema, isDocument: false
  }, signal)
  const { facts, tool_calls: calls } = given.include ?? nothing
  return json({
    text: reflection.text,
    based_on: facts === null ? null : basedOn(bank.bank_id, reflection),
    structured_output: reflection.structured,
    structured_output_error: reflection.structureError,
    usage: usageView(reflection.usage),
    trace: calls === null ? null : {
      tool_calls: [{
        tool: 'recall', input: { query: given.query }, output: calls.output ? { count: reflection.memories.length } : null,
        duration_ms: reflection.recallMs, iteration: 0
      }],
      llm_calls: reflection.calls
    }
  })
})

/** `ReflectBasedOn` of the wire. */
export function basedOn (bankId: string, { memories, models, directives }: Pick<Reflection, 'memories' | 'models' | 'directives'>): Record<string, unknown> {
  return {
    memories: memories.map(row => fact(bankId, row)),
    mental_models: models.map(({ id, content }) => ({ id, text: content, context: null })),
    directives: directives.map(({ id, name, content }) => ({ id, name, content }))
  }
}

/** A memory as it stands there. */
export function fact (bankId: string, row: RecalledRow): Record<string, unknown> {
  const { document_id: document, chunk_index: chunk } = row
  return {
    id: row.id, text: row.text, type: row.fact_type, context: row.context, occurred_start: wireTime(row.occurred_start),
    occurred_end: wireTime(row.occurred_end), mentioned_at: wireTime(row.mentioned_at), document_id: document,
    chunk_id: document === null || chunk === null ? null : chunkIdOf(bankId, document, chunk),
    tags: JSON.parse(row.tags) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, string>, attachments: null
  }
}

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/reflect`, handler }]
