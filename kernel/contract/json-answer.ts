import { hasBrand, JSON_BRAND } from './brand.js'

export interface JsonAnswer {
  readonly json: string
}

/** JSON that is text already, as the answer of a handler: of a list that is too large to be written anew at every request. */
export function jsonAnswer (json: string): JsonAnswer {
  return { json, [JSON_BRAND]: true } as JsonAnswer
}

export function isJsonAnswer (value: unknown): value is JsonAnswer {
  return hasBrand(value, JSON_BRAND)
}

/** The JSON of a large value, kept for as long as what the value is made of stays the same. */
export class KeptJson {
  #parts: readonly unknown[] | null = null
  #json = ''

  /** @param parts everything that `make` looks at; compared by identity */
  of (parts: readonly unknown[], make: () => unknown): string {
    const known = this.#parts
    const isKept = known !== null && known.length === parts.length && known.every((part, i) => part === parts[i])
    if (!isKept) {
      this.#json = JSON.stringify(make())
      this.#parts = parts
    }
    return this.#json
  }
}
