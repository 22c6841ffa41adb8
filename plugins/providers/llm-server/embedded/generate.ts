import type { LlamaContextSequence, LlamaGrammar, SequenceEvaluateOptions, Token } from 'node-llama-cpp'
import type { ModelHost } from './model-host.js'
import type { GenerationLimits, Sampling } from './sampler-options.js'
import { StopScanner } from './stop-strings.js'
import { TokenText } from './token-text.js'

export interface GenerationRequest extends GenerationLimits {
  readonly prompt: readonly Token[]
  readonly sampling: Sampling
  /** Tokens of prompt and answer together; null goes on forever, forgetting the oldest. */
  readonly contextLimit: number | null
  readonly signal: AbortSignal
  /** Shape of the answer, in llama.cpp's notation. */
  readonly grammar: LlamaGrammar | null
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
): AsyncGenerator<string, GenerationEnd> {
  const { prompt, signal } = request
  const startedAt = performance.now()
  const cachedTokens = await readPrompt(sequence, prompt, signal)
  const history = [...prompt]
  const text = new TokenText<Token>((tokens, before) => host.model.detokenize(tokens, false, before), prompt)
  const scanner = new StopScanner(request.stops)
  let firstTokenAt: number | null = null
  let completionTokens = 0
  let finishReason: 'stop' | 'length' = 'stop'

  for await (const token of sequence.evaluate([prompt.at(-1)!], evaluateOptions(host, request, history))) {
    signal.throwIfAborted()
    firstTokenAt ??= performance.now()
    completionTokens++
    if (host.model.isEogToken(token)) break
    history.push(token)
    const piece = scanner.push(text.push(token))
    if (piece !== '') yield piece
    if (scanner.stopped) break
    if (completionTokens === request.maxTokens || history.length === request.contextLimit) {
      finishReason = 'length'
      break
    }
  }
  const rest = scanner.push(text.flush()) + scanner.flush()
  if (rest !== '') yield rest
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
  { model, module }: ModelHost, { sampling, grammar }: GenerationRequest, history: readonly Token[]
): SequenceEvaluateOptions {
  const { penalties, bias } = sampling
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
        punishTokens: () => penalties.lastTokens < 0 ? [...history] : history.slice(-penalties.lastTokens),
        ...penalties.lastTokens < 0 ? {} : { maxPunishTokens: penalties.lastTokens },
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
