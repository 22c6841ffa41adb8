import { configOf } from '../banks/config.js'
import { dispositionOf, missionOf } from '../banks/profile.js'
import type { Core } from '../core.js'
import { content } from '../retain/request.js'
import { chunkText } from '../retain/chunk-text.js'
import { needBank, type BankRow } from '../store/bank-table.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { anything, bool, int, listOf, maybe, object, oneOf, optional, readBody, required, text } from '../wire/shape.js'
import { parseTime, wireTime } from '../wire/times.js'
import { ask } from './ask.js'
import { consolidationMessages } from './consolidation.js'
import { extractedFacts, extractionMessages } from './extraction.js'
import { addUsage, noUsage, usageView, type ChatMessage } from './model.js'
import { reflectionMessages } from './reflection.js'
import { asking } from './refusal.js'

const ANSWER_TOKENS = 4096

const dryRun = object({
  content: required(content), context: optional(text, ''), timestamp: maybe(text), agent_name: maybe(text), strategy: maybe(text),
  retain_mission: maybe(text), retain_extraction_mode: maybe(text), retain_custom_instructions: maybe(text),
  retain_extract_causal_links: maybe(bool),
  retain_chunk_size: maybe(int({ min: 200, max: 100_000 })), entity_labels: maybe(listOf(anything)),
  entities_allow_free_form: maybe(bool),
  llm_output_language: maybe(text)
})

/** What would be extracted of a text; nothing of it is kept. */
const dryRunExtract = asking(async ({ core, params, body, headers, ignored, signal }) => {
  const given = readBody(body, headers, ignored, dryRun)
  const bank = needBank(core.store, params.bank_id!)
  const config = configOf(bank)
  const at = given.timestamp === null ? core.now() : parseTime(given.timestamp)
  if (at === null) throw new WireError(400, 'Invalid timestamp: use ISO 8601')
  const chunks: Array<Record<string, unknown>> = []
  const facts: Array<Record<string, unknown>> = []
  let usage = noUsage
  for (const [index, chunk] of chunkText(given.content, given.retain_chunk_size ?? Number(config.retain_chunk_size)).entries()) {
    const messages = extractionMessages({
      content: chunk, context: given.context, at: wireTime(at),
      mission: given.retain_mission ?? config.retain_mission as string | null,
      instructions: given.retain_extraction_mode === 'custom' ? given.retain_custom_instructions : null
    })
    const answer = await ask(core, { bank: bank.seq, operation: 'retain', scope: 'dry_run', traceId: null }, { messages, maxTokens: ANSWER_TOKENS, json: true }, signal)
    const found = extractedFacts(answer.text)
    usage = addUsage(usage, answer)
    chunks.push({ text: chunk, fact_count: found.length })
    facts.push(...found.map(fact => ({
      text: fact.text, fact_type: fact.type, occurred_start: fact.occurredStart, occurred_end: fact.occurredEnd,
      entities: fact.entities,
      chunk_index: index, attachments: []
    })))
  }
  return json({ facts, chunks, usage: usageView(usage) })
})

const previewBody = object({ operation: optional(oneOf('retain', 'consolidation', 'reflect'), 'retain'), strategy: maybe(text) })

/** What a model is asked for this bank, with an example in place of its data. */
const preview: Handler = ({ core, params, body, headers, ignored }) => {
  const { operation, strategy } = readBody(body, headers, ignored, previewBody)
  const bank = needBank(core.store, params.bank_id!)
  const { chat } = core.outside.abilities
  return json({
    messages: messagesOf(bank, operation).map(({ role, content: said }) => ({
      role, blocks: [{ text: said, source: 'builtin', field: '', section: '', heading: '', active: true, value: null, kind: 'text', choices: null, editable: false }]
    })),
    strategy, strategies: [], run_settings: [{ field: 'model', value: chat.model, kind: 'text', editable: false }], response_schema: null,
    skipped_reason: chat.why
  })
}

function messagesOf (bank: BankRow, operation: 'retain' | 'consolidation' | 'reflect'): readonly ChatMessage[] {
  const config = configOf(bank)
  if (operation === 'retain') {
    return extractionMessages({ content: '{content}', context: '{context}', at: '{timestamp}', mission: config.retain_mission as string | null, instructions: null })
  }
  if (operation === 'consolidation') return consolidationMessages([{ id: '{id}', text: '{fact}', at: null }], [], config.observations_mission as string | null)
  return reflectionMessages({
    query: '{query}', context: null, mission: missionOf(bank), disposition: dispositionOf(bank), directives: [],
    memories: [{ text: '{memory}', type: null, at: null }], models: [], isDocument: false
  })
}

/** Whether the model answers at all, for each kind of work. */
const health: Handler = async ({ core, params, signal }) => {
  const bank = needBank(core.store, params.bank_id!)
  const { ok, status, latency } = await tried(core, bank, signal)
  return json({ bank_id: bank.bank_id, operations: ['retain', 'consolidation', 'reflect'].map(operation => ({ operation, ok, status, latency_ms: latency })) })
}

async function tried (core: Core, bank: BankRow, signal: AbortSignal): Promise<{
  readonly ok: boolean
  readonly status: string
  readonly latency: number | null
}> {
  if (core.outside.abilities.chat.model === null) return { ok: false, status: 'not_configured', latency: null }
  const start = performance.now()
  try {
    await ask(core, { bank: bank.seq, operation: 'reflect', scope: 'health', traceId: null }, { messages: [{ role: 'user', content: 'Say ok.' }], maxTokens: 8 }, signal)
    return { ok: true, status: 'connected', latency: Math.round(performance.now() - start) }
  } catch (error) {
    signal.throwIfAborted()
    return { ok: false, status: /\b40[13]\b/.test((error as Error).message) ? 'auth_failed' : 'unreachable', latency: null }
  }
}

export const routes: readonly WireRoute[] = [
  { method: 'POST', path: `${BANK}/memories/dry-run-extract`, handler: dryRunExtract },
  { method: 'POST', path: `${BANK}/prompts/preview`, handler: preview },
  { method: 'POST', path: `${BANK}/health/llm`, handler: health }
]
