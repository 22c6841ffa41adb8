import type { LlamaEmbeddingContext, Token } from 'node-llama-cpp'
import type { EngineArgs } from './args.js'
import type { ModelHost } from './model-host.js'
import { SlotPool } from './slot-pool.js'
import { badRequest, WireError } from './wire-error.js'

export interface Embedding {
  readonly vector: readonly number[]
  readonly tokens: number
}

/** One vector per input, of length 1. Inputs are read one after the other: a vector takes the whole engine. */
export class VectorEngine {
  readonly kind = 'embedding'
  readonly pool = new SlotPool([{ id: 0 }])

  private constructor (
    readonly host: ModelHost, readonly args: EngineArgs, readonly context: LlamaEmbeddingContext,
    /** Most tokens of an input: all of it must fit into one batch to be pooled. */
    readonly contextSize: number
  ) {}

  static async create (host: ModelHost, args: EngineArgs): Promise<VectorEngine> {
    const size = Math.min(host.contextSize, args.physicalBatch ?? host.contextSize)
    const context = await host.model.createEmbeddingContext({ contextSize: size, batchSize: size, threads: host.threads })
    return new VectorEngine(host, args, context, size)
  }

  async embed (inputs: ReadonlyArray<string | readonly number[]>, signal: AbortSignal): Promise<Embedding[]> {
    if (this.host.pooling === null || this.host.pooling === 'none') {
      throw badRequest('Pooling type \'none\' is not OAI compatible. Please use a different pooling type')
    }
    const slot = await this.pool.acquire(signal)
    try {
      const embeddings: Embedding[] = []
      for (const input of inputs) {
        signal.throwIfAborted()
        embeddings.push(await this.#embed(typeof input === 'string' ? this.host.model.tokenize(input, true) : input as Token[]))
      }
      return embeddings
    } finally {
      this.pool.release(slot)
    }
  }

  async #embed (input: readonly Token[]): Promise<Embedding> {
    const tokens = this.context.calculateInputLength([...input])
    if (tokens >= this.contextSize) throw inputTooLarge(tokens, this.contextSize)
    const { vector } = await this.context.getEmbeddingFor(input.length === 0 ? '' : [...input])
    return { vector: normalised(vector), tokens }
  }
}

export function inputTooLarge (tokens: number, limit: number): WireError {
  return new WireError(400, 'exceed_context_size_error',
    `input (${tokens} tokens) is too large to process. increase the physical batch size (current batch size: ${limit})`,
    { n_prompt_tokens: tokens, n_ctx: limit })
}

/** Scales a vector to length 1; the zero vector stays. Pure. */
export function normalised (vector: readonly number[]): number[] {
  const length = Math.hypot(...vector)
  return length === 0 ? [...vector] : vector.map(value => value / length)
}
