import { overridesOf, type BankRow } from '../store/bank-table.js'

/** What a bank's configuration has where the bank says nothing. Keys and values are the wire's. */
export const configDefaults = {
  reflect_mission: null,
  retain_mission: null,
  retain_extraction_mode: 'concise',
  retain_custom_instructions: null,
  retain_chunk_size: 3000,
  retain_structured_chunk_size: null,
  retain_chunk_batch_size: 100,
  retain_max_attachments_per_chunk: 8,
  retain_default_strategy: null,
  retain_strategies: null,
  enable_observations: true,
  observations_mission: null,
  enable_auto_consolidation: true,
  enable_text_search: true,
  enable_temporal_retrieval: true,
  enable_graph_retrieval: true,
  enable_reranking: true,
  reflect_use_decision_model: true,
  reflect_source_facts_max_tokens: -1,
  reflect_default_options: null,
  mental_model_refresh_use_decision_model: true,
  mental_model_delta_use_decision_model: true,
  mental_model_min_refresh_interval_seconds: 0,
  knowledge_page_default_trigger: null,
  disposition_skepticism: null,
  disposition_literalism: null,
  disposition_empathy: null,
  entity_labels: null,
  entities_allow_free_form: true,
  mcp_enabled_tools: null,
  consolidation_llm_batch_size: 8,
  consolidation_llm_parallelism: 4,
  consolidation_source_facts_max_tokens: 4096,
  consolidation_source_facts_max_tokens_per_observation: 256,
  consolidation_max_memories_per_round: 100,
  consolidation_use_decision_model: true,
  consolidation_strategies: null,
  max_observations_per_scope: -1,
  observation_scope_limits: null,
  default_observation_scopes: null,
  llm_gemini_safety_settings: null,
  recall_budget_function: 'fixed',
  recall_budget_fixed_low: 100,
  recall_budget_fixed_mid: 300,
  recall_budget_fixed_high: 1000,
  recall_budget_adaptive_low: 0.025,
  recall_budget_adaptive_mid: 0.075,
  recall_budget_adaptive_high: 0.25,
  recall_budget_min: 20,
  recall_budget_max: 2000,
  recall_include_chunks: true,
  recall_prefer_observations: false,
  recall_max_tokens: 2048,
  recall_chunks_max_tokens: 1000,
  audit_log_enabled: true,
  store_document_text: true,
  memory_defense: null
} as const

export type ConfigKey = keyof typeof configDefaults
export type BankConfig = { readonly [K in ConfigKey]: unknown }

/** Defaults and the bank's own. */
export function configOf (bank: BankRow): BankConfig {
  return bank.overrides === '{}' ? configDefaults : { ...configDefaults, ...overridesOf(bank) }
}

/** Why the wire refuses these updates; null if it does not. A null value takes the bank's own away. Pure. */
export function configProblem (updates: Readonly<Record<string, unknown>>): string | null {
  const unknown = Object.keys(updates).filter(key => !Object.hasOwn(configDefaults, key))
  if (unknown.length > 0) {
    const names = (keys: readonly string[]): string => `[${keys.map(key => `'${key}'`).join(', ')}]`
    const some = unknown.slice(0, 10).map(key => key.slice(0, 100))
    return `Unknown configuration fields: ${names(some)}. Valid configurable fields: ${names(Object.keys(configDefaults).toSorted())}`
  }
  for (const [key, value] of Object.entries(updates)) {
    if (value === null) continue
    const problem = valueProblem(key as ConfigKey, value)
    if (problem !== null) return `Invalid value for '${key}': ${problem}`
  }
  return null
}

const texts: readonly string[] = ['reflect_mission', 'retain_mission', 'retain_custom_instructions', 'observations_mission', 'retain_default_strategy']
const modes: readonly unknown[] = ['concise', 'verbose', 'verbatim', 'chunks', 'custom']
const LONGEST_TEXT = 20_000
/** Of a list or map as JSON: each read of a bank reads its whole configuration. */
const LONGEST_VALUE = 100_000

function valueProblem (key: ConfigKey, value: unknown): string | null {
  const preset = configDefaults[key]
  const isInt = (min: number, max: number): string | null =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max ? null : `must be an integer from ${min} to ${max}`
  if (/^disposition_/.test(key)) return isInt(1, 5)
  if (key === 'retain_chunk_size') return isInt(200, 100_000)
  if (key === 'consolidation_llm_batch_size') return isInt(1, 1000)
  if (key === 'consolidation_max_memories_per_round') return isInt(1, 10_000)
  if (texts.includes(key)) return typeof value === 'string' && value.length <= LONGEST_TEXT ? null : `must be a string of at most ${LONGEST_TEXT} characters`
  if (key === 'retain_extraction_mode') return modes.includes(value) ? null : `must be one of ${modes.join(', ')}`
  if (key === 'recall_budget_function') return value === 'fixed' || value === 'adaptive' ? null : 'must be fixed or adaptive'
  if (typeof preset === 'boolean') return typeof value === 'boolean' ? null : 'must be true or false'
  if (typeof preset === 'number') return typeof value === 'number' && Number.isFinite(value) ? null : 'must be a number'
  return JSON.stringify(value).length <= LONGEST_VALUE ? null : `must take at most ${LONGEST_VALUE} characters`
}
