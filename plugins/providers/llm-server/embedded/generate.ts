import type { LlamaContextSequence, LlamaGrammar, SequenceEvaluateOptions, Token } from 'node-llama-cpp'
import type { ModelHost } from './model-host.js'
import type { GenerationLimits, Sampling } from './sampler-options.js'
import { ShownText, type Piece } from './tokens/shown-text.js'
import { rankedToken, type RankedToken } from './tokens/logprobs.js'
import { pickToken, randomOf } from './tokens/pick-token.js'
import { tokenBytes } from './tokens/token-bytes.js'
import { lookBackOf, RecentTokens } from './tokens/recent-tokens.js'
import { TokenText } from './tokens/token-text.js'

export interface GenerationRequest extends GenerationLimits {
  readonly prompt: readonly Token[]
  readonly sampling: Sampling
  /** Tokens of prompt and answer together; null goes on forever, forgetting the oldest. */
  readonly contextLimit: number | null
  readonly signal: AbortSignal
  /** Shape of the answer, in llama.cpp's notation. */
  readonly grammar: LlamaGrammar | null
  /** How many of the likeliest tokens are told with each one; null tells no probabilities. */
  readonly topLogprobs: number | null
  /** Special tokens that mean something to the reader of the answer, with their text. */
  readonly spoken: ReadonlyMap<Token, string>
  /** Asked behind each piece: true ends the answer. */
  readonly enough: () => boolean
}

/** Counts in tokens. */
export interface GenerationEnd {
  readonly finishReason: 'stop' | 'length'
  readonly promptTokens: number
  /** Prompt tokens that the slot still knew from its last request. */
  readonly cachedTokens: number
  readonly completionTokens: number
  readonly promptMs: number
  readonly predictedMs: number
}

/** Prompt tokens that are read between two looks at the signal. */
const CHUNK = 512

/**
 * Yields the answer in pieces that can be shown, and returns how it ended. Rejects with the signal's reason
 * after at most one more token, or one more chunk of the prompt.
 */
export async function* generate (
  host: ModelHost, sequence: LlamaContextSequence, request: GenerationRequest
): AsyncGenerator<Piece, GenerationEnd> {
  const { prompt, signal, spoken } = request
  const startedAt = performance.now()
  const cachedTokens = await readPrompt(sequence, prompt, signal)
  const history = new RecentTokens(prompt)
  const text = new TokenText<Token>((tokens, before) => host.model.detokenize(tokens, false, before), prompt)
  const shown = new ShownText(request.stops)
  let firstTokenAt: number | null = null
  let completionTokens = 0
  let finishReason: 'stop' | 'length' = 'stop'

  for await (const { token, ranked } of picks(host, sequence, request, history)) {
    signal.throwIfAborted()
    firstTokenAt ??= performance.now()
    completionTokens++
    if (host.model.isEogToken(token)) break
    history.push(token)
    const mark = spoken.get(token)
    const piece = shown.push(mark === undefined ? text.push(token) : text.flush() + mark, ranked)
    if (piece !== null) yield piece
    if (shown.stopped || request.enough()) break
    if (completionTokens === request.maxTokens || prompt.length + completionTokens === request.contextLimit) {
      finishReason = 'length'
      break
    }
  }
  const rest = shown.end(text.flush())
  if (rest !== null) yield rest
  const endedAt = performance.now()
  firstTokenAt ??= endedAt
  return {
    finishReason,
    promptTokens: prompt.length,
    cachedTokens,
    completionTokens,
    promptMs: firstTokenAt - startedAt,
    predictedMs: endedAt - firstTokenAt
  }
}

interface Pick {
  readonly token: Token
  readonly ranked: RankedToken | null
}

/** The tokens of the answer. `history` is what was read so far, kept by the caller. */
async function* picks (
  host: ModelHost, sequence: LlamaContextSequence, request: GenerationRequest, history: RecentTokens
): AsyncGenerator<Pick, void> {
  const last = [request.prompt.at(-1)!]
  const options = evaluateOptions(host, request, history)
  const { topLogprobs, sampling } = request
  if (topLogprobs === null) {
    for await (const token of sequence.evaluate(last, options)) yield { token, ranked: null }
    return
  }
  // the library tells what its samplers leave of the probabilities, so it gets none that leave anything out
  const uncut = { ...options, temperature: 1, topK: 0, topP: 1, minP: 0 }
  const all = sequence.evaluateWithMetadata(last, { probabilities: true }, uncut)
  const random = randomOf(options.seed!)
  try {
    for (let next = await all.next(); next.done !== true;) {
      const { probabilities } = next.value
      const token = pickToken(probabilities, sampling, random)
      yield { token, ranked: rankedToken(token, probabilities, topLogprobs, id => bytesOf(host, id)) }
      next = await all.next(token)
    }
  } finally {
    await all.return()
  }
}

function bytesOf ({ model }: ModelHost, token: Token): Buffer {
  const { ggml } = model.fileInfo.metadata.tokenizer ?? {}
  const text = ggml?.tokens?.[token]
  return tokenBytes(model.detokenize([token], false), text === undefined ? null : { text, tokenizer: ggml?.model ?? '' })
}

/** Reads all of the prompt but its last token, which `evaluate` needs. Returns how much of it was still known. */
async function readPrompt (sequence: LlamaContextSequence, prompt: readonly Token[], signal: AbortSignal): Promise<number> {
  const end = prompt.length - 1
  await sequence.adaptStateToTokens(prompt.slice(0, end), false)
  const known = sequence.nextTokenIndex
  for (let at = known; at < end; at += CHUNK) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, Math.min(at + CHUNK, end)))
  }
  signal.throwIfAborted()
  return known
}

function evaluateOptions (
  { model, module }: ModelHost, { sampling, grammar }: GenerationRequest, history: RecentTokens
): SequenceEvaluateOptions {
  const { penalties, bias } = sampling
  const lookBack = lookBackOf(penalties?.lastTokens ?? 0)
  return {
    temperature: sampling.temperature,
    topK: sampling.topK,
    topP: sampling.topP,
    minP: sampling.minP,
    seed: sampling.seed ?? Math.floor(Math.random() * 0xFFFFFFFF),
    ...grammar === null ? {} : { grammarEvaluationState: new module.LlamaGrammarEvaluationState({ model, grammar }) },
    yieldEogToken: true, // it counts as a token of the answer, as in llama-server
    ...penalties === null ? {} : {
      repeatPenalty: {
        punishTokens: () => history.last(lookBack),
        maxPunishTokens: lookBack,
        penalty: penalties.repeat,
        frequencyPenalty: penalties.frequency,
        presencePenalty: penalties.presence
      }
    },
    ...bias.length === 0 ? {} : {
      tokenBias: bias.reduce((all, [token, logit]) => all.set(token as Token, { logit }), module.TokenBias.for(model))
    }
  }
}
