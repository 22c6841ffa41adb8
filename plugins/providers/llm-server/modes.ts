import { svcError, type LaunchInput, type Model, type SlotType } from 'svc-gateway/plugin'
import type { Flag } from './flags.js'

/** Largest physical batch for slots whose inputs must fit into one batch. Tokens. */
const POOLED_BATCH = 8192

/**
 * Texts that an embedding engine computes together, where only the slot's defaults say how many. A call holds many texts;
 * with one sequence the server computes them one by one, however they came. Measured on a BERT of 11 million weights on a
 * CPU: texts of 30 tokens cost half of it, those of 300 the same.
 */
const SEQUENCES = 16
/**
 * Tokens. Above it batches are larger, and every token looks at all of its batch: there the same 16 sequences made texts
 * of 450 tokens half as expensive again.
 */
const SMALL_CONTEXT = 512

/**
 * Flags that the slot's type demands and its profile, model and extra arguments (`given`) do not bring. They
 * stand in `slot_overrides`, above the profile: an embedding slot on a chat profile needs another batch size
 * than the one tuned for chat, because a pooled input is read in one physical batch.
 *
 * @throws SvcError `slot.config_error` when embedding and reranking meet in one engine.
 */
export function modeFlags (input: LaunchInput, given: readonly Flag[], profile: readonly Flag[]): string[] {
  const { slot, model } = input
  const names = new Set(given.map(flag => flag.name))
  const problem = modeProblem(slot, given)
  if (problem !== null) throw svcError('slot.config_error', problem, { details: { slot: slot.name } })
  if (slot.type !== 'embedding' && slot.type !== 'reranking') return []

  const mode = slot.type
  const flags = names.has(mode) ? [] : [`--${mode}`]
  if (mode === 'embedding' && !names.has('pooling') && lacksPooling(model)) flags.push('--pooling', 'mean')
  if (!profile.some(flag => flag.name === mode)) {
    const batch = String(Math.min(POOLED_BATCH, input.contextSize ?? POOLED_BATCH))
    flags.push('--batch-size', batch, '--ubatch-size', batch)
  }
  // unified: a text may use the whole context, however many others are computed
  if (choosesSequences(input, given, profile)) flags.push('--parallel', String(Math.max(SEQUENCES, slot.workers)), '--kv-unified')
  return flags
}

/**
 * Whether the number of sequences is this provider's: none is configured for an embedding slot of a small context. One in a
 * profile for chat was not. Calls are then as many at a time as the slot has workers. Pure.
 */
export function choosesSequences (
  { slot, contextSize }: Pick<LaunchInput, 'slot' | 'contextSize'>, given: readonly Flag[], profile: readonly Flag[]
): boolean {
  if (slot.type !== 'embedding' || contextSize === null || contextSize > SMALL_CONTEXT) return false
  const isFor = (flags: readonly Flag[], name: string): boolean => flags.some(flag => flag.name === name)
  const elsewhere = given.filter(flag => !profile.includes(flag))
  return !isFor(elsewhere, 'parallel') && !(isFor(profile, 'embedding') && isFor(profile, 'parallel'))
}

/**
 * Chat models say nothing about pooling, and the server refuses embeddings without one. Embedding models say
 * in their file what they were trained with (cls, last, mean), which a flag here would overrule.
 */
function lacksPooling (model: Model | null): boolean {
  if (model === null) return false
  const declared = model.metadata.pooling_type
  return (declared === undefined || declared === null) && model.capabilities.includes('chat')
}

/** Why a slot cannot run, from its type and the flags it would get; null when it can. Pure. */
export function modeProblem (slot: { readonly name: string, readonly type: SlotType }, given: readonly Flag[]): string | null {
  const has = (mode: SlotType & ('embedding' | 'reranking')): boolean => slot.type === mode || given.some(flag => flag.name === mode)
  if (!has('embedding') || !has('reranking')) return null
  return `slot '${slot.name}' asks one engine for embeddings and reranking, which gives all-zero scores; ` +
    'make two slots, one of type embedding and one of type reranking, and remove the other flag from profile and extra_args'
}
