/** What a thing may be: its content as text, or null for not there. */
export type Value = string | null

interface Known {
  /** Of the last answered write. */
  readonly sure: Value
  /** Of writes that were sent since then and whose answer never came. */
  readonly maybe: readonly Value[]
}

/**
 * What clients were told of their writes. A write that was answered with success holds; one that was refused changed nothing;
 * one without an answer may have happened or not.
 */
export class Truth {
  readonly #known = new Map<string, Known>()

  get (key: string): Value { return this.#known.get(key)?.sure ?? null }
  /** Whether a write of this value may have happened or not. */
  mayBe (key: string, value: Value): boolean { return this.#known.get(key)?.maybe.includes(value) === true }
  keys (): readonly string[] { return [...this.#known.keys()] }

  sent (key: string, value: Value): void {
    const { sure, maybe } = this.#known.get(key) ?? { sure: null, maybe: [] }
    this.#known.set(key, { sure, maybe: [...maybe, value] })
  }

  acknowledged (key: string, value: Value): void {
    this.#known.set(key, { sure: value, maybe: [] })
  }

  /** `value` was sent last. */
  refused (key: string): void {
    const { sure, maybe } = this.#known.get(key)!
    this.#known.set(key, { sure, maybe: maybe.slice(0, -1) })
  }

  /** What is wrong with what was found; null when it fits. What is found is sure from now on. */
  compare (key: string, found: Value): string | null {
    const { sure, maybe } = this.#known.get(key) ?? { sure: null, maybe: [] }
    this.#known.set(key, { sure: found, maybe: [] })
    if (found === sure || maybe.includes(found)) return null
    return `${key}: ${shown(sure)} was acknowledged${maybe.length === 0 ? '' : ` (then perhaps ${maybe.map(shown).join(', ')})`}, ${shown(found)} is there`
  }
}

function shown (value: Value): string {
  return value === null ? 'nothing' : `'${value}'`
}
