import type { Token } from 'node-llama-cpp'

/** One token of an answer with its probability, as llama-server tells it. */
export interface TokenProbability {
  readonly id: number
  /** What of it is text by itself; empty for a part of a character and for what is not shown. */
  readonly token: string
  readonly bytes: readonly number[]
  readonly logprob: number
}

export interface RankedToken extends TokenProbability {
  readonly top_logprobs: readonly TokenProbability[]
}

/** What llama-server writes for a probability of zero, which JSON has no logarithm for. */
const LOWEST = -3.4028234663852886e38

/**
 * What is told of a token that was picked. Pure.
 *
 * @param ranked every token of the vocabulary, the likeliest first, before anything was left out
 */
export function rankedToken (
  token: Token, ranked: ReadonlyMap<Token, number>, top: number, bytesOf: (token: Token) => Buffer
): RankedToken {
  const told = (id: Token, probability: number): TokenProbability => {
    const bytes = bytesOf(id)
    return { id, token: validText(bytes), bytes: [...bytes], logprob: probability > 0 ? Math.log(probability) : LOWEST }
  }
  const best: TokenProbability[] = []
  for (const [id, probability] of ranked) {
    if (best.length === top) break
    best.push(told(id, probability))
  }
  return { ...told(token, ranked.get(token) ?? 0), top_logprobs: best }
}

/** The text up to the first byte that is no character, or not a whole one. */
function validText (bytes: Buffer): string {
  const text = bytes.toString('utf8')
  const broken = text.indexOf('\uFFFD')
  return broken === -1 ? text : text.slice(0, broken)
}

/** The shape of completions in OpenAI's own API, beside llama-server's. `offset` in characters of the answer. Pure. */
export function legacyLogprobs (tokens: readonly RankedToken[], offset: number): object {
  let at = offset
  const offsets = tokens.map(({ token }) => {
    at += token.length
    return at - token.length
  })
  return {
    content: tokens,
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    // of several that look alike the likeliest is told
    top_logprobs: tokens.map(({ top_logprobs: top }) =>
      Object.fromEntries(top.toReversed().map(({ token, logprob }) => [token, logprob]))),
    text_offset: offsets
  }
}
