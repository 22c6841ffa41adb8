/** Lets requests be served between two slices of work. */
export function turn (): Promise<void> {
  return new Promise(resolve => { setImmediate(resolve) })
}

const SLICE_MS = 4

/** Slices of a long walk: a turn whenever one is over. */
export class Turns {
  readonly #signal: AbortSignal
  #since = performance.now()

  constructor (signal: AbortSignal) {
    this.#signal = signal
  }

  /** Between two steps. Rejects with the signal's reason. */
  async next (): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return
    await turn()
    this.#signal.throwIfAborted()
    this.#since = performance.now()
  }
}

/** A piece of an answer or of a file that is written bit by bit. */
const PIECE_CHARS = 64 * 1024

/**
 * Text as bytes, in pieces of about 64 KiB, with turns of the event loop between them: never more than one of them is in memory.
 * @param texts each of which costs one small read of the database
 */
export async function* inPieces (texts: Iterable<string>): AsyncGenerator<Buffer> {
  let [held, chars, since] = [[] as string[], 0, performance.now()]
  for (const text of texts) {
    held.push(text)
    chars += text.length
    if (chars >= PIECE_CHARS) {
      yield Buffer.from(held.join(''))
      ;[held, chars] = [[], 0]
    }
    if (performance.now() - since < SLICE_MS) continue
    await turn()
    since = performance.now()
  }
  if (chars > 0) yield Buffer.from(held.join(''))
}

/** The elements of a JSON list, with what stands between them. */
export function* jsonList (values: Iterable<unknown>): Generator<string> {
  let before = '['
  for (const value of values) {
    yield `${before}${JSON.stringify(value)}`
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}
