import { replicaPlace } from '../schedule/replica-names.js'

/** A model and profile in force in place of those that the slot's file names. */
export interface Swap {
  readonly model: string
  /** Null is the slot's own. */
  readonly profile: string | null
  /** Tokens, where they have to be read from the model's file; null leaves them to the launch. */
  readonly contextSize: number | null
}

/**
 * The swaps in force, by slot; its replicas share one. They are not written to the slots' files: state files carry them
 * over a restart.
 */
export class Swaps {
  readonly #inForce = new Map<string, Swap>()

  of (slot: string): Swap | null {
    return this.#inForce.get(replicaPlace(slot).slot) ?? null
  }

  /** @param swap null is what the file names */
  put (slot: string, swap: Swap | null): void {
    if (swap === null) this.#inForce.delete(slot)
    else this.#inForce.set(slot, swap)
  }

  /** Goes back to what the file names. */
  drop (slot: string): void {
    this.#inForce.delete(slot)
  }

  /** Puts `earlier` back in force, unless something else has replaced `failed` meanwhile: false then. */
  restore (slot: string, failed: Swap | null, earlier: Swap | null): boolean {
    if (this.of(slot) !== failed) return false
    this.put(slot, earlier)
    return true
  }
}
