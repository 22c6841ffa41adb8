import type { Sampling } from '../sampler-options.js'

/**
 * Picks the next token as llama.cpp's chain of samplers does: the likeliest `topK`, of these as many as make up `topP`, none
 * below `minP` of the best, then by chance. For answers whose probabilities are told, which the library's own chain
 * has already cut. Pure but for `random`.
 *
 * @param ranked probabilities of the vocabulary, the likeliest first
 * @param random 0 to below 1
 */
export function pickToken<T> (
  ranked: ReadonlyMap<T, number>, { temperature, topK, topP, minP }: Pick<Sampling, 'temperature' | 'topK' | 'topP' | 'minP'>, random: () => number
): T {
  const [first] = ranked
  if (first === undefined) throw new Error('the model has no token to offer')
  if (temperature === 0) return first[0]
  const few: Array<readonly [T, number]> = []
  for (const entry of ranked) {
    few.push(entry)
    if (few.length === topK) break
  }
  const all = few.reduce((sum, [, probability]) => sum + probability, 0)
  let mass = 0
  const likely = topP < 1 ? few.findIndex(([, probability]) => (mass += probability) >= topP * all) + 1 : few.length
  const kept = few.slice(0, likely === 0 ? few.length : likely)
    .filter(([, probability], i) => i === 0 || probability >= minP * first[1])
  const weights = kept.map(([, probability]) => (probability / first[1]) ** (1 / temperature))
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0)
  const at = weights.findIndex(weight => (left -= weight) < 0)
  return kept[at === -1 ? 0 : at]![0]
}

/** Numbers from 0 to below 1 that are the same for the same seed (mulberry32). */
export function randomOf (seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6D2B79F5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
