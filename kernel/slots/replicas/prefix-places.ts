import { createHash } from 'node:crypto'

/** A request's body as far as its beginning is looked at: where top-level members stand. */
export interface PrefixSource {
  readonly body: Buffer
  member (key: string): { readonly valueStart: number, readonly valueEnd: number } | undefined
}

/** The first of these is what engines cache the beginning of. */
const texts = ['messages', 'input', 'prompt', 'contents'] as const
const MOST_PLACES = 16_384
/** Lengths of the pieces, and up to which offset: short ones where conversations part, long ones where there is much. */
const pieces = [[256, 4_096], [1_024, 32_768], [8_192, 1_048_576]] as const

/**
 * One key for each length of beginning that two conversations could share: two bodies have their first n keys in common
 * when their texts begin with the same bytes up to the n-th boundary. Nothing is parsed. Empty for a body without text, or
 * with less of it than is worth the caching.
 */
export function prefixKeys (source: PrefixSource): readonly string[] {
  const member = texts.map(key => source.member(key)).find(found => found !== undefined)
  if (member === undefined) return []
  const keys: string[] = []
  let key = ''
  let at = 0
  for (const [step, until] of pieces) {
    for (; at < until && member.valueStart + at + step <= member.valueEnd; at += step) {
      const piece = source.body.subarray(member.valueStart + at, member.valueStart + at + step)
      keys.push(key = createHash('sha1').update(key).update(piece).digest('base64'))
    }
    if (at < until) break
  }
  return keys
}

/** Which replica was given the beginning of which conversation last. Bounded: what was not used for longest is forgotten. */
export class PrefixPlaces {
  readonly #places = new Map<string, number>()
  readonly #most: number

  constructor (most = MOST_PLACES) {
    this.#most = most
  }

  get size (): number { return this.#places.size }

  /** The replica with the longest of the beginnings; null when none has any. */
  find (keys: readonly string[]): number | null {
    for (let i = keys.length - 1; i >= 0; i--) {
      const index = this.#places.get(keys[i]!)
      if (index !== undefined) return index
    }
    return null
  }

  note (keys: readonly string[], index: number): void {
    for (const key of keys) {
      this.#places.delete(key)
      this.#places.set(key, index)
    }
    for (const key of this.#places.keys()) {
      if (this.#places.size <= this.#most) break
      this.#places.delete(key)
    }
  }

  /** Its engine is gone, and what it had cached. */
  forget (index: number): void {
    for (const [key, at] of this.#places) if (at === index) this.#places.delete(key)
  }
}
