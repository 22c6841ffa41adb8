import { hasBrand, JSON_BRAND } from '../brand.js'

export interface JsonAnswer {
  readonly json: string | Buffer
}

/** JSON that is text already, as the answer of a handler: of a list that is too large to be written anew at every request. */
export function jsonAnswer (json: string | Buffer): JsonAnswer {
  return { json, [JSON_BRAND]: true } as JsonAnswer
}

export function isJsonAnswer (value: unknown): value is JsonAnswer {
  return hasBrand(value, JSON_BRAND)
}

/** The JSON of a large value as bytes, kept for as long as what the value is made of stays the same. */
export class KeptBytes {
  readonly #kept = new KeptJson()
  #json = ''
  #bytes: Buffer = Buffer.alloc(0)

  /** @param parts everything that `make` looks at; compared by identity */
  of (parts: readonly unknown[], make: () => unknown): Buffer {
    const json = this.#kept.of(parts, make)
    if (json !== this.#json) {
      this.#json = json
      this.#bytes = Buffer.from(json)
    }
    return this.#bytes
  }
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
