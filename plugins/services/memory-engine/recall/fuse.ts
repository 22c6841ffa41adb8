import type { Found } from './vector-index.js'

/*
 * How the order of a recall is made. The numbers are measured: `npm run bench -- --memory` shows what the order finds with and
 * without vectors, links, subjects, recency and a rerank.
 */

/** What words weigh beside vectors, where there are both. */
const TEXT_WEIGHT = 0.6
/** What a memory gains from each neighbour in its document, as a share of the neighbour's own score. */
export const NEIGHBOUR_SHARE = 0.3
/** What a memory gains of the better one of those that were kept right before and after it, as a share of its score. */
const MOMENT_SHARE = 0.25
/** What is kept within this time belongs together. */
const MOMENT_MS = 10 * 60_000
/** What a memory gains that begins with a word of the query: it tells of that, or that one says it. */
const SUBJECT_GAIN = 0.15
/** What the newest memory gains over one that is years old. */
const RECENCY_WEIGHT = 0.02
/** What a reranker may add to a score, if it tells what the vectors do not. */
const RERANK_WEIGHT = 0.4
/** So much of a correlation with the order before it, beyond what chance may give, and a reranker is believed. */
const BELIEVED = 0.3
/** Of random scores for n candidates, one correlation in a thousand is above this through the root of n. */
const CHANCE = 3
/** Of fewer candidates a correlation says next to nothing, and all of them are among the first ten in any order. */
const LEAST_JUDGED = 11
/** Scores of BM25 have no bound: one of this size counts as half certain. */
const HALF_CERTAIN = 8
/** In a bank of few memories every word is in most of them, and BM25 gives it next to nothing. */
const LEAST_CERTAIN = 0.1

export interface Scored {
  readonly seq: number
  /** Share of the best, 0 to 1: the order of the candidates. */
  score: number
  /** 0 to 1; null if no word was found. */
  readonly keyword: number | null
  /** Cosine; null where there is no vector, or it is too far. */
  readonly semantic: number | null
  reranker: number | null
}

/** Words and vectors together: each as a share of its best, vectors above the farthest that was found. Pure. */
export function fuse (byText: readonly Found[], byVector: readonly Found[] | null): Map<number, Scored> {
  const bestText = byText[0]?.score ?? 0
  const [near, far] = [byVector?.[0]?.score ?? 0, Math.max(0, byVector?.at(-1)?.score ?? 0)]
  const [textWeight, vectorWeight] = byVector === null || byVector.length === 0 ? [1, 0] : [TEXT_WEIGHT, 1 - TEXT_WEIGHT]
  const all = new Map<number, Scored>()
  for (const { seq, score } of byText) {
    const share = bestText === 0 ? 0 : score / bestText
    all.set(seq, { seq, score: textWeight * share, keyword: score / (score + HALF_CERTAIN), semantic: null, reranker: null })
  }
  for (const { seq, score } of byVector ?? []) {
    if (score <= 0) continue
    const share = near > far ? Math.max(0, (score - far) / (near - far)) : 1
    const known = all.get(seq)
    all.set(seq, {
      seq, score: (known?.score ?? 0) + vectorWeight * share, keyword: known?.keyword ?? null, semantic: score, reranker: null
    })
  }
  return all
}

/** Pairs of memories that stand beside each other in a document; both ways. */
export type Neighbours = ReadonlyMap<number, readonly (readonly number[])[]>

/** What belongs to what was found. */
export interface Beside {
  /** Both ways. Those that were not found themselves join. */
  readonly inDocuments: Neighbours
  /** Two that were found, kept one right after the other and within minutes. */
  readonly inTime: ReadonlyArray<readonly [earlier: number, later: number]>
}

/** Adds to each memory a share of the best on either side of it in its document, or of the best that was kept beside it. */
export function expand (scored: Map<number, Scored>, { inDocuments, inTime }: Beside): void {
  const bestOf = (side: readonly number[]): number => Math.max(0, ...side.map(other => scored.get(other)?.score ?? 0))
  // all gains are shares of what was found, and not of what others have gained
  const gains = new Map<number, number>()
  for (const [seq, sides] of inDocuments) gains.set(seq, sides.reduce((sum, side) => sum + bestOf(side), 0) * NEIGHBOUR_SHARE)
  for (const pair of inTime) {
    // the better one of two and no sum: of statements that are told one after the other, none has more for being in the middle
    for (const [i, seq] of pair.entries()) gains.set(seq, Math.max(gains.get(seq) ?? 0, bestOf([pair[1 - i]!]) * MOMENT_SHARE))
  }
  for (const [seq, gain] of gains) {
    if (gain === 0) continue
    const known = scored.get(seq)
    if (known === undefined) scored.set(seq, { seq, score: gain, keyword: null, semantic: null, reranker: null })
    else known.score += gain
  }
}

/** These memories with what was kept right before or after them and is known too, in pairs. Pure. */
export function keptTogether (
  memories: readonly number[], known: ReadonlyMap<number, { readonly mentionedAt: number | null }>
): Beside['inTime'] {
  const at = (seq: number): number | null => known.get(seq)?.mentionedAt ?? null
  const pairs = memories.flatMap(seq => [[seq - 1, seq], [seq, seq + 1]] as const)
  return pairs.filter(([earlier, later]) => {
    const [from, to] = [at(earlier), at(later)]
    return from !== null && to !== null && Math.abs(to - from) <= MOMENT_MS
  })
}

/**
 * What a memory is about, or who says it, stands first. A bank where half of all memories have a name gives next to nothing for
 * the name alone.
 */
export function addSubjects (
  scored: ReadonlyMap<number, Scored>, known: ReadonlyMap<number, { readonly firstWord: string }>, words: ReadonlySet<string>
): void {
  for (const each of scored.values()) if (words.has(known.get(each.seq)?.firstWord ?? '')) each.score += SUBJECT_GAIN
}

const DAY_MS = 86_400_000
const OLDEST_DAYS = 3650

/** From 1 for now to 0 for ten years ago and for no time at all; recent differences weigh more. Pure. */
export function recency (mentionedAt: number | null, now: number): number {
  if (mentionedAt === null) return 0
  const days = Math.max(0, now - mentionedAt) / DAY_MS
  return Math.max(0, 1 - Math.log1p(days) / Math.log1p(OLDEST_DAYS))
}

/** Newer ones win among equals. */
export function addRecency (
  scored: ReadonlyMap<number, Scored>, known: ReadonlyMap<number, { readonly mentionedAt: number | null }>, now: number
): void {
  for (const each of scored.values()) each.score += RECENCY_WEIGHT * recency(known.get(each.seq)?.mentionedAt ?? null, now)
}

/** Best first; the newer of equals. Pure. */
export function ordered (scored: ReadonlyMap<number, Scored>): Scored[] {
  return [...scored.values()].sort((a, b) => b.score - a.score || b.seq - a.seq)
}

/** What a reranker's word counts for. */
export interface RerankTrust {
  /** What it may add to a score at most, as a share of the best. */
  readonly weight: number
  /** Its scores agree with what was found by more than chance. */
  readonly agrees: boolean
  /** With this recall. */
  readonly agreement: Agreement
}

/**
 * Its word counts for less the more it repeats the vectors: one that ranks by nothing but the same vectors changes nothing. It
 * also counts for less the less it agrees with what words and vectors say (`score`), here and in the recalls before: one that
 * contradicts it counts for nothing, and so does one that agrees with it no more than random scores would. Pure.
 */
export function rerankTrust (
  top: ReadonlyArray<Pick<Scored, 'score' | 'semantic'>>, scores: readonly number[], before: Agreement
): RerankTrust {
  const vectors = top.map(({ semantic }) => semantic)
  const known = vectors.flatMap((value, i) => value === null ? [] : [i])
  const repeats = known.length < 3 ? 0 : correlation(known.map(i => vectors[i]!), known.map(i => scores[i]!))
  const weight = RERANK_WEIGHT * (1 - Math.max(0, repeats) ** 2)
  // so few are all among the first that are looked at
  if (top.length < LEAST_JUDGED) return { weight, agrees: true, agreement: before }
  const here = correlation(top.map(({ score }) => score), scores)
  const agreement = joinedAgreement(before, here, top.length)
  const beyondChance = agreement.sum / agreement.candidates - CHANCE / Math.sqrt(agreement.candidates)
  const agrees = here > 0 && beyondChance > 0
  return { weight: agrees ? weight * Math.min(1, here / BELIEVED, beyondChance / BELIEVED) : 0, agrees, agreement }
}

/** How far a reranker has agreed with what words and vectors said. */
export interface Agreement {
  /** Correlations, each as often as it had candidates. */
  readonly sum: number
  readonly candidates: number
}

export const NO_AGREEMENT: Agreement = { sum: 0, candidates: 0 }
/** Recalls of long ago count for less and less: the model behind a name may be another one now. */
const MOST_CANDIDATES = 5000

function joinedAgreement ({ sum, candidates }: Agreement, correlated: number, count: number): Agreement {
  const share = candidates === 0 ? 0 : Math.min(1, (MOST_CANDIDATES - count) / candidates)
  return { sum: sum * share + correlated * count, candidates: candidates * share + count }
}

/** Scores of any scale as shares of what lies between the least and the best of them; 0 where they are all the same. Pure. */
export function spread (scores: readonly number[]): readonly number[] {
  const [least, most] = [Math.min(...scores), Math.max(...scores)]
  return scores.map(score => most > least ? (score - least) / (most - least) : 0)
}

/** Adds what a reranker says of the first ones, as far as it is trusted. */
export function addRerank (top: readonly Scored[], scores: readonly number[], before: Agreement): RerankTrust {
  const trust = rerankTrust(top, scores, before)
  const shares = spread(scores)
  for (const [i, each] of top.entries()) {
    each.reranker = scores[i]!
    each.score += trust.weight * shares[i]!
  }
  return trust
}

function correlation (a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const [ma, mb] = [mean(a), mean(b)]
  let [ab, aa, bb] = [0, 0, 0]
  for (const [i, value] of a.entries()) {
    ab += (value - ma) * (b[i]! - mb)
    aa += (value - ma) ** 2
    bb += (b[i]! - mb) ** 2
  }
  return aa === 0 || bb === 0 ? 0 : ab / Math.sqrt(aa * bb)
}

/** How certain the best answer is by itself, 0 to 1: it makes the scores of different banks comparable. Pure. */
export function certainty (scored: Iterable<Scored>): number {
  let best = 0
  for (const each of scored) best = Math.max(best, certain(each))
  return best
}

/** How certain one is by its words and its vector. Pure. */
export function certain ({ keyword, semantic }: Pick<Scored, 'keyword' | 'semantic'>): number {
  const [words, meaning] = [keyword === null ? 0 : Math.max(LEAST_CERTAIN, keyword), Math.max(0, semantic ?? 0)]
  return Math.max(semantic === null ? words : TEXT_WEIGHT * words + (1 - TEXT_WEIGHT) * meaning, meaning)
}
