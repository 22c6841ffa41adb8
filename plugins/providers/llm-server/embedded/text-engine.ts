import { readFile } from 'node:fs/promises'
import type { LlamaContextSequence, LlamaGrammar, Token } from 'node-llama-cpp'
import type { EngineArgs } from './args.js'
import { createChatRenderer, type ChatRenderer } from './chat-template.js'
import { generate, type GenerationEnd, type GenerationRequest } from './generate.js'
import type { ModelHost } from './model-host.js'
import type { Piece } from './tokens/shown-text.js'
import { SlotPool } from './slot-pool.js'
import { badRequest, tooLong } from './wire-error.js'

export interface TextSlot {
  readonly id: number
  readonly sequence: LlamaContextSequence
}

export type TextRequest = Omit<GenerationRequest, 'contextLimit'>

/** Sums since the start, for `/metrics`. */
export interface TextTotals {
  promptTokens: number
  promptMs: number
  completionTokens: number
  predictedMs: number
}

/** A text model with a fixed number of slots; further requests wait in line. */
export class TextEngine {
  readonly kind = 'text'
  readonly totals: TextTotals = { promptTokens: 0, promptMs: 0, completionTokens: 0, predictedMs: 0 }

  private constructor (
    readonly host: ModelHost, readonly args: EngineArgs, readonly pool: SlotPool<TextSlot>, readonly renderer: ChatRenderer,
    /** Tokens of one slot. */
    readonly contextSize: number,
    /** Marks of calls and thoughts that are special tokens, which are not shown otherwise. */
    readonly spoken: ReadonlyMap<Token, string>
  ) {}

  static async create (host: ModelHost, args: EngineArgs): Promise<TextEngine> {
    const { model } = host
    const source = args.chatTemplateFile === null
      ? templateOf(model.fileInfo.metadata.tokenizer)
      : await readFile(args.chatTemplateFile, 'utf8')
    const renderer = createChatRenderer(source, { bos: model.tokens.bosString ?? '', eos: model.tokens.eosString ?? '' })
    const contextSize = args.kvUnified ? host.contextSize : Math.floor(host.contextSize / args.parallel)
    const context = await model.createContext({ contextSize, sequences: args.parallel, threads: host.threads })
    const slots = Array.from({ length: args.parallel }, (_, id) => ({ id, sequence: context.getSequence() }))
    return new TextEngine(host, args, new SlotPool(slots), renderer, contextSize, spokenTokens(model, renderer))
  }

  /** Text with special tokens spelled out, or tokens as they are; begins with the model's first token where it wants one. */
  tokenize (prompt: string | readonly number[]): Token[] {
    if (typeof prompt !== 'string') return this.#known(prompt)
    const { model } = this.host
    const tokens = model.tokenize(prompt, true)
    const { bos } = model.tokens
    if (bos !== null && model.tokens.shouldPrependBosToken && tokens[0] !== bos) tokens.unshift(bos)
    return tokens
  }

  /** Throws a `WireError` for a grammar that llama.cpp does not take. */
  async compile (grammar: string): Promise<LlamaGrammar> {
    try {
      return await this.host.llama.createGrammar({ grammar })
    } catch {
      throw badRequest('The grammar cannot be parsed: a rule is missing, wrong, or leads back to itself without a character in between')
    }
  }

  /** Waits for a slot, generates, gives the slot back. Throws a `WireError` for a prompt that does not fit. */
  async* generate (request: TextRequest): AsyncGenerator<Piece, GenerationEnd> {
    const { prompt, signal } = request
    if (prompt.length === 0) throw badRequest('The prompt is empty')
    if (prompt.length >= this.contextSize) throw tooLong(prompt.length, this.contextSize)
    const slot = await this.pool.acquire(signal, ({ sequence }) => sequence.compareContextTokens([...prompt]).firstDifferentIndex)
    try {
      const contextLimit = this.args.contextShift ? null : this.contextSize
      const end = yield* generate(this.host, slot.sequence, { ...request, contextLimit })
      this.#count(end)
      return end
    } finally {
      this.pool.release(slot)
    }
  }

  #known (tokens: readonly number[]): Token[] {
    const { model } = this.host
    const unknown = tokens.find(token => token >= vocabularySize(model.fileInfo.metadata.tokenizer))
    if (unknown !== undefined) throw badRequest(`Token ${unknown} is not in the vocabulary of the model`)
    return tokens as Token[]
  }

  #count (end: GenerationEnd): void {
    this.totals.promptTokens += end.promptTokens - end.cachedTokens
    this.totals.promptMs += end.promptMs
    this.totals.completionTokens += end.completionTokens
    this.totals.predictedMs += end.predictedMs
  }
}

function spokenTokens (model: ModelHost['model'], { family, traits }: ChatRenderer): ReadonlyMap<Token, string> {
  const marks = [...family.marks, ...family.inner, ...traits.thinks ? ['<think>', '</think>'] : []]
  return new Map(marks.flatMap(mark => {
    const [token, ...more] = model.tokenize(mark, true)
    return token === undefined || more.length > 0 ? [] : [[token, mark] as const]
  }))
}

type TokenizerMetadata = ModelHost['model']['fileInfo']['metadata']['tokenizer']

function templateOf (tokenizer: TokenizerMetadata): string | null {
  const template: unknown = tokenizer?.chat_template
  return typeof template === 'string' ? template : null
}

export function vocabularySize (tokenizer: TokenizerMetadata): number {
  return tokenizer?.ggml?.tokens?.length ?? 0
}
