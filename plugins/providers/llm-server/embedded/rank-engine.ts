import type { LlamaRankingContext } from 'node-llama-cpp'
import type { EngineArgs } from './args.js'
import type { ModelHost } from './model-host.js'
import { SlotPool } from './slot-pool.js'
import { inputTooLarge } from './vector-engine.js'

export interface Ranking {
  /** 0 to 1: how probably the document answers the query. */
  readonly scores: readonly number[]
  readonly tokens: number
}

/** Scores documents against a query, one after the other. */
export class RankEngine {
  readonly kind = 'reranking'
  readonly pool = new SlotPool([{ id: 0 }])

  private constructor (
    readonly host: ModelHost, readonly args: EngineArgs, readonly context: LlamaRankingContext, readonly contextSize: number
  ) {}

  /**
   * Rejects for a model without a ranking head. llama-server loads such a model and then scores everything 0,
   * which looks like an answer and is none.
   */
  static async create (host: ModelHost, args: EngineArgs): Promise<RankEngine> {
    if (!host.model.fileInsights.supportsRanking) {
      throw new Error(`${args.alias} has no ranking head, so it cannot score documents; reranking needs a reranker model`)
    }
    const size = Math.min(host.contextSize, args.physicalBatch ?? host.contextSize)
    const context = await host.model.createRankingContext({ contextSize: size, batchSize: size, threads: host.threads })
    return new RankEngine(host, args, context, size)
  }

  async rank (query: string, documents: readonly string[], signal: AbortSignal): Promise<Ranking> {
    const slot = await this.pool.acquire(signal)
    try {
      const scores: number[] = []
      let tokens = 0
      for (const document of documents) {
        signal.throwIfAborted()
        const length = this.context.calculateInputLength(query, document)
        if (length >= this.contextSize) throw inputTooLarge(length, this.contextSize)
        tokens += length
        scores.push(await this.context.rank(query, document))
      }
      return { scores, tokens }
    } finally {
      this.pool.release(slot)
    }
  }
}
