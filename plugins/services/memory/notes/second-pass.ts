import { messageOf, settingsOf, within, type Clock, type ConfigService, type DispatchService, type Logger } from 'svc-gateway/plugin'
import {
  askReranker, certain, NO_AGREEMENT, rerankBody, rerankerOf, rerankTrust, scoresIn, spread, type Agreement
} from '../../memory-engine/ref.js'
import { memorySettings } from '../settings.js'
import type { FoundNote } from './note.js'
import type { RerankBounds, Reranked, Reranker } from './reranker.js'

export interface SecondPassDeps {
  readonly clock: Clock
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly dispatch: DispatchService
  readonly log: Pick<Logger, 'info'>
}

/** A reranker reads no more. */
const MOST_CANDIDATES = 50
/** After a failure it is not asked again for so long. */
const SPARED_MS = 5000

/** Orders what was found anew, by a model that reads the question beside each memory. Recall never fails with it. */
export class SecondPass implements Reranker {
  readonly #deps: SecondPassDeps
  #count = 0
  /** Monotonic. */
  #sparedUntilMs = -Infinity
  /** Of the reranker that was asked last. */
  #agreed: { readonly model: string, readonly agreement: Agreement } | null = null

  constructor (deps: SecondPassDeps) {
    this.#deps = deps
  }

  async scored (
    query: string, found: readonly FoundNote[], { withinMs }: RerankBounds, signal: AbortSignal
  ): Promise<Reranked> {
    const { clock, config: { snapshot }, dispatch, log } = this.#deps
    const asFound: Reranked = { notes: found.map(({ note }) => note), counted: false }
    const { model } = rerankerOf(snapshot, (name, surface) => dispatch.target(name, surface))
    if (model === null || found.length < 2 || clock.monotonic() < this.#sparedUntilMs) return asFound
    const { embedding } = settingsOf(snapshot.svc, memorySettings)
    const patienceMs = withinMs ?? (embedding.rerank_connect_timeout_s + embedding.rerank_read_timeout_s) * 1000
    const top = asFound.notes.slice(0, MOST_CANDIDATES)
    const body = Buffer.from(JSON.stringify(rerankBody(model, query, top.map(({ text }) => text))))
    return await within(signal, patienceMs, async bound => {
      try {
        const requestId = `memory-recall-${++this.#count}`
        const { status, body: bytes } = await askReranker(dispatch, embedding, { body, requestId, background: false }, bound)
        const text = Buffer.from(bytes).toString('utf8')
        if (status !== 200) throw new Error(`status ${status}: ${text.slice(0, 300)}`)
        const before = this.#agreed?.model === model ? this.#agreed.agreement : NO_AGREEMENT
        const { reranked, agreement } = withScores(found, scoresIn(JSON.parse(text) as unknown, top.length), before)
        this.#agreed = { model, agreement }
        return reranked
      } catch (error) {
        signal.throwIfAborted()
        this.#sparedUntilMs = clock.monotonic() + SPARED_MS
        const why = bound.aborted ? `it did not answer within ${patienceMs} ms` : messageOf(error)
        log.info({ model, error: why }, 'memories keep their order: the reranker failed')
        return asFound
      }
    })
  }
}

/**
 * As within one bank: a reranker may add a share of the best score, and one that contradicts words and vectors, or agrees with
 * them by chance alone, adds nothing.
 * Where the engine gives no scores, it alone decides. Pure.
 */
function withScores (
  found: readonly FoundNote[], scores: readonly number[], before: Agreement
): { readonly reranked: Reranked, readonly agreement: Agreement } {
  const best = found[0]!.note.score ?? 0
  const shares = spread(scores)
  if (best <= 0) {
    const notes = found.map(({ note }, i) => ({ ...note, score: shares[i] ?? 0 }))
    return { reranked: { notes, counted: true }, agreement: before }
  }
  // not by the scores of the banks: they may hold the word of the same reranker
  const judged = found.slice(0, scores.length)
    .map(each => ({ score: certain(each) || (each.note.score ?? 0), semantic: each.semantic }))
  const { weight, agrees, agreement } = rerankTrust(judged, scores, before)
  const sums = found.map(({ note }, i) => (note.score ?? 0) / best + weight * (shares[i] ?? 0))
  const most = Math.max(...sums)
  const notes = found.map(({ note }, i) => ({ ...note, score: best * sums[i]! / most }))
  return { reranked: { notes, counted: agrees }, agreement }
}
