import {
  settingsOf, type CallAnswer, type ConfigService, type ConfigSnapshot, type DispatchService, type DispatchTarget,
  type SurfaceName
} from 'svc-gateway/plugin'
import { memorySettings } from '../memory/settings.js'
import { bounded } from './bounded.js'
import type { Abilities, Ability, AbilityName, Errand, ErrandAnswer } from './messages.js'
import { askReranker, reranksElsewhere } from './rerank-gateway.js'
import { sendToWeb } from './web-errand.js'

const surfaces: Readonly<Record<Exclude<AbilityName, 'rerank'>, { readonly surface: SurfaceName, readonly path: string }>> = {
  embed: { surface: 'embeddings', path: '/embeddings' },
  chat: { surface: 'chat', path: '/chat/completions' }
}
const LARGEST_ANSWER_BYTES = 32 * 1024 * 1024

export interface ErrandDeps {
  readonly dispatch: DispatchService
  readonly config: Pick<ConfigService, 'snapshot'>
}

/** What the gateway itself does for the engine: requests to models, on the path of a client's request, and webhooks. */
export async function runErrand (
  { dispatch, config }: ErrandDeps, requestId: string, errand: Errand, signal: AbortSignal
): Promise<ErrandAnswer> {
  if (errand.to === 'web') return await sendToWeb(errand, signal)
  const { to, background } = errand
  const body = Buffer.from(errand.body)
  if (to === 'rerank') {
    const { embedding } = settingsOf(config.snapshot.svc, memorySettings)
    return await askReranker(dispatch, embedding, { body, requestId, background }, signal)
  }
  const answer: CallAnswer = await dispatch.call({ ...surfaces[to], body, priority: background ? 'low' : 'normal', requestId, signal })
  return { status: answer.status, body: await bounded(answer.body, LARGEST_ANSWER_BYTES) }
}

/** How long a recall waits for the vector of its query. */
const EMBED_MS = 3000

/** Who would serve a model at this moment. */
export type FindTarget = (model: string, surface: SurfaceName) => DispatchTarget | null

/**
 * What the configuration has for each step: what the settings name, else the operator's default of its type, else the first slot
 * that is enabled. A model that reranks is one that `find` knows, or another gateway's. Pure but for that.
 */
export function abilitiesOf (snapshot: ConfigSnapshot, find: FindTarget = () => null): Abilities {
  const settings = settingsOf(snapshot.svc, memorySettings)
  const { graph: { enabled, llm_timeout_s: timeoutS }, embedding, consolidation_tokens_per_day: budget } = settings
  const { rerank_connect_timeout_s: connectS, rerank_read_timeout_s: readS } = embedding
  return {
    patience: { embedMs: EMBED_MS, rerankMs: (connectS + readS) * 1000 },
    extracts: enabled,
    chatTimeoutMs: timeoutS * 1000,
    consolidationTokens: budget,
    embed: embedding.model === '' ? slotOf(snapshot, 'embedding', 'recall runs on text alone') : namedEmbedder(embedding.model, find),
    rerank: rerankerOf(snapshot, find),
    chat: chatSlotOf(snapshot)
  }
}

/** The model of the settings where it can be asked, else a slot. Pure but for `find`. */
export function rerankerOf (snapshot: ConfigSnapshot, find: FindTarget): Ability {
  const { embedding } = settingsOf(snapshot.svc, memorySettings)
  const { rerank_model: model } = embedding
  if (reranksElsewhere(embedding) || find(model, 'rerank') !== null) return { model, why: null }
  return slotOf(snapshot, 'reranking', 'the fused order stands')
}

/** An upstream's list of models may not be known yet, so that any name will do; the answer says what is wrong with it. */
function namedEmbedder (model: string, find: FindTarget): Ability {
  const target = find(model, 'embeddings')
  return { model, identity: target?.slot == null ? model : `${target.slot} ${target.modelId ?? ''}`.trim(), why: null }
}

/** The slot of the graph's settings where it can be used. */
function chatSlotOf (snapshot: ConfigSnapshot): Ability {
  const named = snapshot.slots.get(settingsOf(snapshot.svc, memorySettings).graph.extraction_slot)
  if (named?.type === 'llm' && named.enabled) return { model: named.name, why: null }
  return slotOf(snapshot, 'llm', 'texts are kept as they are')
}

function slotOf ({ slots }: ConfigSnapshot, type: 'embedding' | 'reranking' | 'llm', effect: string): Ability {
  const fitting = [...slots.values()].filter(slot => slot.type === type && slot.enabled)
  const slot = fitting.find(each => each.default) ?? fitting[0]
  if (slot === undefined) return { model: null, why: `there is no enabled slot of type ${type}, so ${effect}` }
  return { model: slot.name, identity: `${slot.name} ${slot.model.default ?? ''}`.trim(), why: null }
}
