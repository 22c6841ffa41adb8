const GIVER = Symbol.for('svc.chunk-giver')

/** Turns the chunks of one answer into those of another. */
export interface ChunkTranslator {
  /**
   * Null for a chunk that completes nothing. Throws for one that cannot be read.
   * @param early hands on what is translated already, before the rest of the chunk is: for the beginning of an answer, which its
   * reader waits for
   */
  chunk (bytes: Buffer, early: (piece: Buffer) => void): Buffer | null
  /** What comes behind the last chunk; null for nothing. Throws where the answer is not complete. */
  end (): Buffer | null
  /** Told once of what ended the answer early. `isTold`: `last` says it, or nothing is missing, and the answer ends there. */
  failed (error: unknown): { readonly last: Buffer | null, readonly isTold: boolean }
}

export interface ChunkReader {
  /** False asks to pause until `resume`. */
  data (chunk: Buffer): boolean
  /** Hands on what `data` took in this turn, before the turn is over. */
  flush? (): void
  end (): void
  fail (error: unknown): void
}

/** Hands chunks on in the turn in which they come: a promise for each costs more than most translations. */
export interface ChunkGiver {
  /** Once, instead of an iteration. */
  give (reader: ChunkReader): void
  resume (): void
  /** The reader wants no more. */
  leave (): void
}

/** How a body can be had without an iteration; null where it cannot. */
export function giverOf (body: AsyncIterable<Buffer>): ChunkGiver | null {
  return (body as { readonly [GIVER]?: ChunkGiver })[GIVER] ?? null
}

/** A body that can be had in either way. */
export function givenBody (giver: ChunkGiver, iterator: () => AsyncIterator<Buffer, undefined>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: iterator, [GIVER]: giver } as AsyncIterable<Buffer>
}

/** A body in other words. Nothing of it is held but what the translator holds; its reader's pace is that of `body`. */
export function translated (body: AsyncIterable<Buffer>, translator: ChunkTranslator): AsyncIterable<Buffer> {
  const iterator = (): AsyncGenerator<Buffer, undefined, undefined> => pulled(body, translator)
  const source = giverOf(body)
  return source === null ? { [Symbol.asyncIterator]: iterator } : givenBody(new TranslatingGiver(source, translator), iterator)
}

async function* pulled (body: AsyncIterable<Buffer>, translator: ChunkTranslator): AsyncGenerator<Buffer, undefined, undefined> {
  let last: Buffer | null
  try {
    for await (const bytes of body) {
      const pieces: Buffer[] = []
      let chunk: Buffer | null
      try {
        chunk = translator.chunk(bytes, piece => pieces.push(piece))
      } finally {
        yield* pieces
      }
      if (chunk !== null) yield chunk
    }
    last = translator.end()
  } catch (error) {
    const failure = translator.failed(error)
    if (failure.last !== null) yield failure.last
    if (!failure.isTold) throw error
    return
  }
  if (last !== null) yield last
}

/** One object for both sides: with one for each, what a stream needs at each chunk is spread over more of the memory. */
class TranslatingGiver implements ChunkGiver, ChunkReader {
  readonly #source: ChunkGiver
  readonly #translator: ChunkTranslator
  #reader: ChunkReader | null = null
  #isOver = false
  /** Whether the reader has taken what was handed on of this chunk. */
  #isTaken = true

  constructor (source: ChunkGiver, translator: ChunkTranslator) {
    this.#source = source
    this.#translator = translator
  }

  give (reader: ChunkReader): void {
    this.#reader = reader
    this.#source.give(this)
  }

  resume (): void {
    if (!this.#isOver) this.#source.resume()
  }

  leave (): void {
    this.#isOver = true
    this.#source.leave()
  }

  data (bytes: Buffer): boolean {
    if (this.#isOver) return true
    let chunk: Buffer | null
    this.#isTaken = true
    try {
      chunk = this.#translator.chunk(bytes, this.#early)
    } catch (error) {
      this.fail(error)
      this.#source.leave()
      return true
    }
    return (chunk === null || this.#reader!.data(chunk)) && this.#isTaken
  }

  readonly #early = (piece: Buffer): void => {
    if (!this.#reader!.data(piece)) this.#isTaken = false
    this.#reader!.flush?.()
  }

  end (): void {
    if (this.#isOver) return
    let last: Buffer | null
    try {
      last = this.#translator.end()
    } catch (error) {
      return this.fail(error)
    }
    this.#isOver = true
    if (last !== null) this.#reader!.data(last)
    this.#reader!.end()
  }

  fail (error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    const { last, isTold } = this.#translator.failed(error)
    if (last !== null) this.#reader!.data(last)
    if (isTold) this.#reader!.end()
    else this.#reader!.fail(error)
  }
}
