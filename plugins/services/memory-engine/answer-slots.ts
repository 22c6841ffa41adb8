/** Of a recall that is told a hundred memories; a larger answer gets a memory of its own. */
const SLOT_BYTES = 256 * 1024
const SLOTS = 4
/** To hand over a memory of its own costs less than that. */
const LEAST_BYTES = 16 * 1024

export interface SharedSlots {
  readonly bytes: SharedArrayBuffer
  /** For each, 1 while an answer lies in it. */
  readonly taken: SharedArrayBuffer
}

/**
 * Memory of both threads in which answers lie until they are sent. One of its own for each would be let go by a collection alone:
 * of a hundred recalls 12 MB, and the pages of each were new.
 */
export class AnswerSlots {
  readonly shared: SharedSlots
  readonly #taken: Int32Array

  constructor (shared: SharedSlots = {
    bytes: new SharedArrayBuffer(SLOTS * SLOT_BYTES), taken: new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT)
  }) {
    this.shared = shared
    this.#taken = new Int32Array(shared.taken)
  }

  /** One that is free, which is taken from now on; null where the answer is small or too large, or all of them are taken. */
  take (size: number): number | null {
    if (size < LEAST_BYTES || size > SLOT_BYTES) return null
    for (let slot = 0; slot < SLOTS; slot++) if (Atomics.compareExchange(this.#taken, slot, 0, 1) === 0) return slot
    return null
  }

  bytes (slot: number, size: number): Buffer {
    return Buffer.from(this.shared.bytes as unknown as ArrayBuffer, slot * SLOT_BYTES, size)
  }

  letGo (slot: number): void {
    Atomics.store(this.#taken, slot, 0)
  }
}
