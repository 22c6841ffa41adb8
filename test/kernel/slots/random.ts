/** A small seeded generator (mulberry32): the same seed gives the same script on every machine. */
export class Random {
  #state: number

  constructor (seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 <= x < 1 */
  next (): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let z = this.#state
    z = Math.imul(z ^ (z >>> 15), z | 1)
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61)
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296
  }

  int (below: number): number { return Math.floor(this.next() * below) }
  chance (p: number): boolean { return this.next() < p }
  pick<T> (list: readonly T[]): T { return list[this.int(list.length)]! }
}
