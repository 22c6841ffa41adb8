/** Finds where a JSON value ends while it arrives in pieces. Looks at each character once and nests in a count. */
export class ValueEnd {
  #depth = 0
  #string = false
  #escaped = false

  /** Index behind the value, which has begun at `from` or before it; null when it goes on. */
  find (text: string, from: number): number | null {
    for (let at = from; at < text.length; at++) {
      const char = text[at]!
      if (this.#string) {
        if (this.#escaped) this.#escaped = false
        else if (char === '\\') this.#escaped = true
        else if (char === '"') {
          this.#string = false
          if (this.#depth === 0) return at + 1
        }
      } else if (char === '"') this.#string = true
      else if (char === '{' || char === '[') this.#depth++
      else if (char === '}' || char === ']') {
        if (this.#depth === 0) return at
        if (--this.#depth === 0) return at + 1
      } else if (this.#depth === 0 && /[\s,]/.test(char)) return at
    }
    return null
  }
}
