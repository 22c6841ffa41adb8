import { nameSchema, tomlValueSchema, type ApplyClass, type SettingsChange, type SettingsProblem, type SettingsTable } from 'svc-gateway/plugin'
import { z } from 'zod'

const about = (apply: ApplyClass) => (description: string): { readonly description: string, readonly apply_class: ApplyClass } =>
  ({ description, apply_class: apply })
const live = about('live')
const gatewayRestart = about('gateway-restart')

const memoryEngines = ['embedded', 'hindsight'] as const

/** Address of a server, without a user name or query. */
const serverAddress = z.string().max(2048)
  .regex(/^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/, { error: 'must be an http(s) address without a user name or query' })

const memorySchema = z.strictObject({
  enabled: z.boolean().default(false).meta(live('Whether agents and chats have a memory')),
  engine: z.enum(memoryEngines).default('embedded').meta(live('Engine of the memory: the gateway itself, or a Hindsight server')),
  url: serverAddress.default('http://127.0.0.1:9177').meta(live('Address of the Hindsight server')),
  auth_value_env: z.string().regex(/^(?:[A-Za-z_][A-Za-z0-9_]*)?$/, { error: 'must be the name of a variable of api.env, not the key itself' })
    .default('HINDSIGHT_API_TENANT_API_KEY').meta(live('Variable of api.env that holds the key of the Hindsight server')),
  consolidation_tokens_per_day: z.int().min(0).max(1_000_000_000).default(500_000)
    .meta(live('Tokens that the embedded engine may spend on the consolidation of one bank per day (UTC); 0 allows none')),
  embedding: z.object({
    model: z.string().max(200).regex(/^\S*$/, { error: 'must be the name of a slot or model' }).default('')
      .meta(live('Embedding model of the embedded engine: a slot, or a model of an upstream, which then receives everything that is remembered; empty is the slot of type embedding')),
    rerank_gateway_url: serverAddress.default('http://127.0.0.1:8080')
      .meta(gatewayRestart('Base URL of the gateway that the second-pass reranker asks; the default is this one, whatever its port')),
    rerank_model: z.string().min(1).default('builtin.jina-reranker-v1-tiny-en-q8')
      .meta(gatewayRestart('Reranking model, of a slot or an upstream')),
    rerank_connect_timeout_s: z.number().min(0.05).max(10).default(1).meta(gatewayRestart('Connect timeout of the rerank call')),
    rerank_read_timeout_s: z.number().min(0.05).max(60).default(8)
      .meta(gatewayRestart('Read budget of the rerank call; then recall falls back to vector order'))
  }).catchall(tomlValueSchema).prefault({}),
  graph: z.object({
    enabled: z.boolean().default(false).meta(live('Whether the graph is extracted from what is remembered')),
    extraction_slot: nameSchema.default('utility').meta(live('Local llm slot that extracts the graph')),
    llm_timeout_s: z.int().min(30).max(3600).default(300).meta(live('Timeout of the memory engine for its model calls'))
  }).catchall(tomlValueSchema).prefault({})
})
export type MemorySettings = z.output<typeof memorySchema>

/** `[memory]` of svc.toml. */
export const memorySettings: SettingsTable<typeof memorySchema> = {
  name: 'memory', schema: memorySchema, problems: extractionSlotProblems
}

/**
 * Only an enabled llm slot extracts the graph. One that was named before may be away for now, and the default, which a null puts
 * back, needs none to be there.
 */
function extractionSlotProblems ({ next, previous, patch, slots }: SettingsChange<MemorySettings>): readonly SettingsProblem[] {
  const { extraction_slot: name } = next.graph
  const asked = (patch.graph as Readonly<Record<string, unknown>> | null | undefined)?.extraction_slot
  if (typeof asked !== 'string' || name === previous?.graph.extraction_slot) return []
  const usable = [...slots.values()].filter(({ type, enabled }) => type === 'llm' && enabled).map(slot => slot.name)
  if (usable.includes(name)) return []
  const there = usable.length === 0 ? 'there is none yet' : `one of ${usable.slice(0, 20).join(', ')}`
  return [{ path: ['graph', 'extraction_slot'], message: `must be an enabled llm slot: ${there}` }]
}
