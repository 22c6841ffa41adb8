import type { SamplingDefaults } from './args.js'
import type { GenerationBody } from './requests.js'

/** How the next token is picked. `seed` null means a new one for every request. */
export interface Sampling {
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly minP: number
  readonly seed: number | null
  /** Null when no token is to be punished for having occurred. */
  readonly penalties: Penalties | null
  readonly bias: ReadonlyArray<readonly [token: number, logit: number]>
}

export interface Penalties {
  /** Tokens that are looked back; -1 is all. */
  readonly lastTokens: number
  readonly repeat: number
  readonly frequency: number
  readonly presence: number
}

export interface GenerationLimits {
  /** Most tokens to generate; null is as many as the context holds. */
  readonly maxTokens: number | null
  readonly stops: readonly string[]
}

/** Request options over the engine's defaults. Null and absent mean the default. Pure. */
export function samplingOf (body: GenerationBody, defaults: SamplingDefaults): Sampling {
  const seed = body.seed ?? defaults.seed
  return {
    temperature: Math.max(0, body.temperature ?? defaults.temperature),
    topK: Math.max(0, body.top_k ?? defaults['top-k']),
    topP: body.top_p ?? defaults['top-p'],
    minP: body.min_p ?? defaults['min-p'],
    // llama-server's two ways to say random
    seed: seed < 0 || seed >= 0xFFFFFFFF ? null : Math.floor(seed),
    penalties: penaltiesOf(body, defaults),
    bias: biasOf(body)
  }
}

/** A limit of zero still gives one token, as in llama-server. Pure. */
export function limitsOf (body: GenerationBody, defaults: SamplingDefaults): GenerationLimits {
  const limit = body.max_completion_tokens ?? body.max_tokens ?? body.n_predict ?? defaults.predict
  const stops = body.stop ?? []
  return { maxTokens: limit < 0 ? null : Math.max(1, limit), stops: typeof stops === 'string' ? [stops] : stops }
}

function penaltiesOf (body: GenerationBody, defaults: SamplingDefaults): Penalties | null {
  const penalties = {
    lastTokens: body.repeat_last_n ?? defaults['repeat-last-n'],
    repeat: body.repeat_penalty ?? defaults['repeat-penalty'],
    frequency: body.frequency_penalty ?? defaults['frequency-penalty'],
    presence: body.presence_penalty ?? defaults['presence-penalty']
  }
  const none = penalties.repeat === 1 && penalties.frequency === 0 && penalties.presence === 0
  return none || penalties.lastTokens === 0 ? null : penalties
}

function biasOf ({ logit_bias: bias }: GenerationBody): ReadonlyArray<readonly [number, number]> {
  if (bias === null || bias === undefined) return []
  return Array.isArray(bias) ? bias : Object.entries(bias).map(([token, logit]) => [Number(token), logit] as const)
}
