import type { Json } from '../../over-chat/ref.js'
import { responsesError } from '../errors.js'

/** What is told again at a time, in bytes, for each reader what it reads: the last events repeat all of it. */
const MOST_BYTES = 256 * 1024 * 1024

export interface WholeResponse {
  readonly response: Json
  /** Of what it says. */
  readonly bytes: number
}

export interface HeldResponse {
  readonly response: Json
  /** The reader is done with it. */
  readonly release: () => void
}

/** Who is told kept responses just now: each is in memory once, however many read it and however slowly. */
export class Readers {
  readonly #held = new Map<string, { readonly whole: WholeResponse, readers: number }>()
  #bytes = 0

  /** Throws `responses.busy`. */
  assertRoom (): void {
    if (this.#bytes < MOST_BYTES) return
    throw responsesError('responses.busy', 'kept responses are told to as many readers as may be; ask again when one of them is done')
  }

  /** Throws `responses.busy`, and what `read` throws. @param read of a response that does not change any more */
  hold (id: string, read: () => WholeResponse): HeldResponse {
    this.assertRoom()
    const held = this.#held.get(id) ?? { whole: read(), readers: 0 }
    this.#held.set(id, held)
    held.readers++
    const { response, bytes } = held.whole
    this.#bytes += bytes
    let isHeld = true
    const release = (): void => {
      if (!isHeld) return
      isHeld = false
      this.#bytes -= bytes
      if (--held.readers === 0 && this.#held.get(id) === held) this.#held.delete(id)
    }
    return { response, release }
  }
}
