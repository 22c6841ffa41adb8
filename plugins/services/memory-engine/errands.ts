import { svcError, type CallAnswer, type ConfigSnapshot, type DispatchService, type SurfaceName } from 'svc-gateway/plugin'
import type { Abilities, Ability, AbilityName, Errand, ErrandAnswer } from './messages.js'
import { sendToWeb } from './web-errand.js'

const surfaces: Readonly<Record<AbilityName, { readonly surface: SurfaceName, readonly path: string }>> = {
  embed: { surface: 'embeddings', path: '/embeddings' },
  rerank: { surface: 'rerank', path: '/rerank' },
  chat: { surface: 'chat', path: '/chat/completions' }
}
const LARGEST_ANSWER_BYTES = 32 * 1024 * 1024

/** What the gateway itself does for the engine: requests to models, on the path of a client's request, and webhooks. */
export async function runErrand (
  dispatch: DispatchService, requestId: string, errand: Errand, signal: AbortSignal
): Promise<ErrandAnswer> {
  if (errand.to === 'web') return await sendToWeb(errand, signal)
  const answer: CallAnswer = await dispatch.call({
    ...surfaces[errand.to], body: Buffer.from(errand.body), priority: errand.background ? 'low' : 'normal', requestId, signal
  })
  return { status: answer.status, body: await bounded(answer.body, LARGEST_ANSWER_BYTES) }
}

async function bounded (body: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limitBytes) throw svcError('dispatch.upstream_failed', `the answer is larger than ${limitBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** How long a recall waits for the vector of its query. */
const EMBED_MS = 3000

/**
 * What the configuration has for each step: the operator's default of its type, else the first slot that is enabled; for the
 * rerank the model of the settings, where `reranks` finds it. Pure but for that.
 */
export function abilitiesOf (snapshot: ConfigSnapshot, reranks: (model: string) => boolean = () => false): Abilities {
  const { enabled, llm_timeout_s: timeoutS } = snapshot.svc.memory.graph
  const settings = snapshot.svc.memory.embedding
  const { rerank_model: reranker, rerank_connect_timeout_s: connectS, rerank_read_timeout_s: readS } = settings
  return {
    patience: { embedMs: EMBED_MS, rerankMs: (connectS + readS) * 1000 },
    extracts: enabled,
    chatTimeoutMs: timeoutS * 1000,
    embed: slotOf(snapshot, 'embedding', 'recall runs on text alone'),
    rerank: reranks(reranker) ? { model: reranker, why: null } : slotOf(snapshot, 'reranking', 'the fused order stands'),
    chat: chatSlotOf(snapshot)
  }
}

/** The slot of the graph's settings where it can be used. */
function chatSlotOf (snapshot: ConfigSnapshot): Ability {
  const named = snapshot.slots.get(snapshot.svc.memory.graph.extraction_slot)
  if (named?.type === 'llm' && named.enabled) return { model: named.name, why: null }
  return slotOf(snapshot, 'llm', 'texts are kept as they are')
}

function slotOf ({ slots }: ConfigSnapshot, type: 'embedding' | 'reranking' | 'llm', effect: string): Ability {
  const fitting = [...slots.values()].filter(slot => slot.type === type && slot.enabled)
  const slot = fitting.find(each => each.default) ?? fitting[0]
  if (slot === undefined) return { model: null, why: `there is no enabled slot of type ${type}, so ${effect}` }
  return { model: slot.name, identity: `${slot.name} ${slot.model.default ?? ''}`.trim(), why: null }
}
