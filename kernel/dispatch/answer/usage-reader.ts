const KEY = Buffer.from('"usage"')
/** A usage block of any dialect is shorter. */
const MOST_BYTES = 2048
const EMPTY = Buffer.alloc(0)

/** Tokens that an answer names. Null where it names none. */
export interface NamedUsage {
  readonly inputTokens: number | null
  readonly cachedTokens: number
  readonly outputTokens: number | null
}

/**
 * Finds the `usage` blocks of an answer while it passes, whatever the dialect: chat, completions, embeddings, Responses and
 * Messages, whole or as events. Keeps at most the 2 KiB in which a block may stand. Text that a model writes cannot pass
 * for one: quotes inside of JSON strings are escaped.
 */
export class UsageReader {
  #tail: Buffer = EMPTY
  #input: number | null = null
  #cached = 0
  #output: number | null = null

  push (chunk: Buffer): void {
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk])
    let keepFrom = bytes.length - KEY.length + 1
    for (let at = bytes.indexOf(KEY); at !== -1; at = bytes.indexOf(KEY, at + KEY.length)) {
      const block = bytes.toString('latin1', at + KEY.length, at + KEY.length + MOST_BYTES)
      const text = objectAt(block)
      if (text !== null) this.#take(text)
      else if (block.length < MOST_BYTES) {
        keepFrom = at
        break
      }
    }
    // a copy: the chunk is the connection's own memory
    this.#tail = keepFrom >= bytes.length ? EMPTY : Buffer.from(bytes.subarray(Math.max(0, keepFrom)))
  }

  usage (): NamedUsage {
    return { inputTokens: this.#input, cachedTokens: this.#cached, outputTokens: this.#output }
  }

  /** Events of a stream name running totals, or the two sides apart: the largest of each counts. */
  #take (text: string): void {
    const usage = parsed(text)
    if (usage === null) return
    const details = [usage.prompt_tokens_details, usage.input_tokens_details].find(isRecord)
    const read = count(usage.cache_read_input_tokens) ?? 0
    // the Messages API counts what a cache gave, and what it took in, beside the input
    const beside = read + (count(usage.cache_creation_input_tokens) ?? 0)
    const input = count(usage.prompt_tokens) ?? count(usage.input_tokens)
    if (input !== null) this.#input = Math.max(this.#input ?? 0, input + beside)
    const output = count(usage.completion_tokens) ?? count(usage.output_tokens)
    if (output !== null) this.#output = Math.max(this.#output ?? 0, output)
    this.#cached = Math.max(this.#cached, read, count(details?.cached_tokens) ?? 0)
  }
}

/** The object behind `:`; null for what is none, or has not ended. */
function objectAt (text: string): string | null {
  const start = /^\s*:\s*\{/.exec(text)
  if (start === null) return /^\s*:?\s*$/.test(text) ? null : ''
  const open = start[0].length - 1
  let depth = 0
  for (let at = open; at < text.length; at++) {
    if (text[at] === '{') depth++
    else if (text[at] === '}' && --depth === 0) return text.slice(open, at + 1)
  }
  return null
}

function parsed (text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : null
  } catch {
    return null
  }
}

function isRecord (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function count (value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}
