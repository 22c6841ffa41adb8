import { messageOf, settingsOf, type Clock, type ConfigService, type DispatchService, type Logger } from 'svc-gateway/plugin'
import { askReranker, rerankBody, rerankerOf, scoresIn } from '../../memory-engine/ref.js'
import { memorySettings } from '../settings.js'
import type { Note } from './note.js'
import type { RerankBounds, Reranker } from './reranker.js'

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

  constructor (deps: SecondPassDeps) {
    this.#deps = deps
  }

  async scored (
    query: string, notes: readonly Note[], { withinMs }: RerankBounds, signal: AbortSignal
  ): Promise<readonly Note[]> {
    const { clock, config: { snapshot }, dispatch, log } = this.#deps
    const { model } = rerankerOf(snapshot, (name, surface) => dispatch.target(name, surface))
    if (model === null || notes.length < 2 || clock.monotonic() < this.#sparedUntilMs) return notes
    const { embedding } = settingsOf(snapshot.svc, memorySettings)
    const patienceMs = withinMs ?? (embedding.rerank_connect_timeout_s + embedding.rerank_read_timeout_s) * 1000
    const top = notes.slice(0, MOST_CANDIDATES)
    const body = Buffer.from(JSON.stringify(rerankBody(model, query, top.map(({ text }) => text))))
    const bound = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)])
    try {
      const requestId = `memory-recall-${++this.#count}`
      const { status, body: bytes } = await askReranker(dispatch, embedding, { body, requestId, background: false }, bound)
      const text = Buffer.from(bytes).toString('utf8')
      if (status !== 200) throw new Error(`status ${status}: ${text.slice(0, 300)}`)
      return withScores(notes, scoresIn(JSON.parse(text) as unknown, top.length))
    } catch (error) {
      signal.throwIfAborted()
      this.#sparedUntilMs = clock.monotonic() + SPARED_MS
      const why = bound.aborted ? `it did not answer within ${patienceMs} ms` : messageOf(error)
      log.info({ model, error: why }, 'memories keep their order: the reranker failed')
      return notes
    }
  }
}

/** Scores of any scale become 0 to 1; what was not reranked stays behind, in its order. Pure. */
function withScores (notes: readonly Note[], scores: readonly number[]): readonly Note[] {
  const isShare = scores.every(score => score >= 0 && score <= 1)
  const shares = isShare ? scores : scores.map(score => 1 / (1 + Math.exp(-score)))
  const least = Math.min(...shares)
  return notes.map((note, i) => ({ ...note, score: shares[i] ?? Math.min(least, note.score ?? 0) }))
}
