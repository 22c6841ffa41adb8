import type { ServerResponse } from 'node:http'
import { finished } from 'node:stream'
import { jsonAnswer, type JsonAnswer } from 'svc-gateway/plugin'
import type { Json } from '../../over-chat/ref.js'
import { responsesError } from '../errors.js'

/** What is told again at a time, in bytes, for each reader what it reads: the last events repeat all of it. */
const MOST_BYTES = 256 * 1024 * 1024
/** What a connection takes up in any case: as much is told to any reader. */
const SMALL_BYTES = 64 * 1024

export interface WholeResponse {
  readonly response: Json
  /** Of what it says. */
  readonly bytes: number
}

interface Held {
  readonly whole: WholeResponse
  readers: number
  json: Buffer | null
}

export interface HeldResponse {
  readonly response: Json
  /** Made once for all readers. */
  readonly json: () => Buffer
  /** The reader is done with it. */
  readonly release: () => void
}

/** Who is told kept responses just now: each is in memory once, however many read it and however slowly. */
export class Readers {
  readonly #held = new Map<string, Held>()
  #bytes = 0

  /** Throws `responses.busy`. @param bytes of what is to be told, where that is known */
  assertRoom (bytes = Infinity): void {
    if (bytes <= SMALL_BYTES || this.#bytes < MOST_BYTES) return
    throw responsesError('responses.busy', 'the limit of readers of kept responses is reached; try again when one has finished')
  }

  /**
   * Throws `responses.busy`, and what `read` throws.
   * @param key of a response as it stands: what is read under it does not change
   */
  hold (key: string, read: () => WholeResponse): HeldResponse {
    const held = this.#held.get(key) ?? { whole: read(), readers: 0, json: null }
    const { response, bytes } = held.whole
    const giveBack = this.#take(bytes)
    this.#held.set(key, held)
    held.readers++
    let isHeld = true
    const release = (): void => {
      if (!isHeld) return
      isHeld = false
      giveBack()
      if (--held.readers === 0 && this.#held.get(key) === held) this.#held.delete(key)
    }
    return { response, json: () => held.json ??= Buffer.from(JSON.stringify(response)), release }
  }

  /** As `hold`, for an answer whose reader is done once the last of it has left, or the reader has. */
  answer (key: string, read: () => WholeResponse, to: ServerResponse): JsonAnswer {
    const { json, release } = this.hold(key, read)
    finished(to, release)
    return jsonAnswer(json())
  }

  /** As `answer`, for what this reader alone gets. */
  answerOnce (json: string, to: ServerResponse): JsonAnswer {
    const bytes = Buffer.from(json)
    finished(to, this.#take(bytes.length))
    return jsonAnswer(bytes)
  }

  #take (bytes: number): () => void {
    this.assertRoom(bytes)
    this.#bytes += bytes
    return () => { this.#bytes -= bytes }
  }
}
