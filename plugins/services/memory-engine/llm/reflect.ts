import { dispositionOf, missionOf } from '../banks/profile.js'
import type { Core } from '../core.js'
import type { TagGroup, TagMode } from '../memories/tag-filter.js'
import type { RecalledRow } from '../recall/recalled-row.js'
import { DirectiveTable, type Directive } from '../models/directive-table.js'
import { MentalModelTable, type MentalModel } from '../models/mental-model-table.js'
import { tagsMatch } from '../models/tag-match.js'
import type { BankRow } from '../store/bank-table.js'
import type { FactType } from '../store/memory-table.js'
import { wireTime } from '../wire/times.js'
import { ask, requireChat } from './ask.js'
import { jsonAnswer } from './json-answer.js'
import { tokensOf } from '../recall/tokens.js'
import { addUsage, noUsage, type Purpose, type Usage } from './model.js'
import { reflectionMessages, structureMessages } from './reflection.js'
import { readSources } from './sources.js'

export interface ReflectAsk {
  readonly query: string
  readonly context: string | null
  readonly maxTokens: number
  /** Of the memories that the model is shown. */
  readonly sourceTokens: number
  readonly types: readonly FactType[] | null
  readonly tags: readonly string[] | null
  readonly tagsMatch: TagMode
  readonly tagGroups: readonly TagGroup[] | null
  readonly allDirectives: boolean
  readonly withModels: boolean
  readonly withoutModels: readonly string[]
  readonly schema: Readonly<Record<string, unknown>> | null
  readonly isDocument: boolean
  /** Where they are read already. */
  readonly memories?: readonly RecalledRow[]
}

export interface Reflection {
  readonly text: string
  readonly memories: readonly RecalledRow[]
  readonly models: readonly MentalModel[]
  readonly directives: readonly Directive[]
  readonly structured: Readonly<Record<string, unknown>> | null
  readonly structureError: string | null
  readonly usage: Usage
  readonly recallMs: number
  readonly calls: ReadonlyArray<{ readonly scope: string, readonly duration_ms: number }>
}

export const NOTHING_KNOWN = 'The memory says nothing about that.'
/** What mental models may take of a prompt. */
const MODELS_TOKENS = 2000

/** An answer from what the bank remembers. Throws `NoModel` first of all; asks nothing where nothing is remembered. */
export async function reflect (core: Core, bank: BankRow, purpose: Omit<Purpose, 'bank' | 'scope'>, request: ReflectAsk, signal: AbortSignal): Promise<Reflection> {
  requireChat(core, purpose.operation === 'reflect' ? 'reflect' : 'the refresh of a mental model')
  const start = performance.now()
  const memories = request.memories ?? await readSources(core, bank, { ...request, maxTokens: request.sourceTokens }, signal)
  const recallMs = Math.round(performance.now() - start)
  const models = request.withModels ? modelsFor(core, bank, request) : []
  const directives = directivesFor(core, bank, request)
  const found = { memories, models, directives, recallMs, structured: null, structureError: null, usage: noUsage, calls: [] }
  if (memories.length === 0 && models.length === 0) return { ...found, text: request.isDocument ? '' : NOTHING_KNOWN }
  const messages = reflectionMessages({
    query: request.query, context: request.context, mission: missionOf(bank), disposition: dispositionOf(bank), directives,
    memories: memories.map(({ text, fact_type: type, occurred_start: occurred, mentioned_at: mentioned }) => ({
      text, type, at: wireTime(occurred ?? mentioned)
    })),
    models: models.map(({ name, content }) => ({ name, text: content })), isDocument: request.isDocument
  })
  const asked = performance.now()
  const answer = await ask(
    core, { ...purpose, bank: bank.seq, scope: purpose.operation }, { messages, maxTokens: request.maxTokens }, signal
  )
  const calls = [{ scope: purpose.operation, duration_ms: Math.round(performance.now() - asked) }]
  const reflection = { ...found, text: answer.text.trim(), usage: answer, calls }
  return request.schema === null ? reflection : await structured(core, bank, purpose, reflection, request, signal)
}

async function structured (
  core: Core, bank: BankRow, purpose: Omit<Purpose, 'bank' | 'scope'>, reflection: Reflection, { schema, maxTokens }: ReflectAsk, signal: AbortSignal
): Promise<Reflection> {
  const start = performance.now()
  try {
    const answer = await ask(core, { ...purpose, bank: bank.seq, scope: 'structured_output' }, {
      messages: structureMessages(reflection.text), maxTokens, json: schema!
    }, signal)
    const calls = [...reflection.calls, { scope: 'structured_output', duration_ms: Math.round(performance.now() - start) }]
    return { ...reflection, calls, usage: addUsage(reflection.usage, answer), structured: jsonAnswer(answer.text, 'the structured output') }
  } catch (error) {
    signal.throwIfAborted()
    return { ...reflection, structureError: (error as Error).message }
  }
}

function modelsFor (core: Core, bank: BankRow, { tags, tagsMatch: mode, withoutModels }: ReflectAsk): readonly MentalModel[] {
  const models: MentalModel[] = []
  let left = MODELS_TOKENS
  for (const model of new MentalModelTable(core).each(bank.seq)) {
    if (model.content === '' || withoutModels.includes(model.id) || !tagsMatch(model.tags, tags, mode)) continue
    left -= tokensOf(model.content)
    if (left < 0) break
    models.push(model)
  }
  return models
}

/** What is to be heeded when something is written about memories of these tags. */
export function directivesFor (
  core: Core, bank: BankRow, { tags, tagsMatch: mode, allDirectives }: Pick<ReflectAsk, 'tags' | 'tagsMatch' | 'allDirectives'>
): readonly Directive[] {
  return new DirectiveTable(core).all(bank.seq).filter(
    directive => directive.isActive && (allDirectives || tagsMatch(directive.tags, tags, mode))
  )
}
