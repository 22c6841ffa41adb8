import type { FoundNote, Note } from './note.js'

export interface RerankBounds {
  /** Longest wait, in milliseconds; by default what the settings allow. */
  readonly withinMs?: number | undefined
}

export interface Reranked {
  readonly notes: readonly Note[]
  /** The reranker had its say. */
  readonly counted: boolean
}

/** Orders what was found anew. Rejects with the signal's reason only. */
export interface Reranker {
  /**
   * The notes with the word of a model added to the scores of the first 50. As they are where there is no reranker, or fewer than
   * two notes, or it contradicts what was found, is slow, away or answers nonsense.
   * @param found the best first
   */
  scored (query: string, found: readonly FoundNote[], bounds: RerankBounds, signal: AbortSignal): Promise<Reranked>
}
