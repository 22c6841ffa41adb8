import type { Note } from './note.js'

export interface RerankBounds {
  /** Longest wait, in milliseconds; by default what the settings allow. */
  readonly withinMs?: number | undefined
}

/** Orders what was found anew. Rejects with the signal's reason only. */
export interface Reranker {
  /**
   * The notes with the scores of a model, 0 to 1, the first 50 of them before the others. As they are where there is no
   * reranker, or fewer than two notes, or it is slow, away or answers nonsense.
   * @param notes the best first
   */
  scored (query: string, notes: readonly Note[], bounds: RerankBounds, signal: AbortSignal): Promise<readonly Note[]>
}
