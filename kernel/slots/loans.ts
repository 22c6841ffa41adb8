import type { SlotLease, SvcError } from '../contract/index.js'

/** Leases of a slot's engine that are out, as far as their holders want to hear of its end. */
export class Loans {
  readonly #revoked = new Set<(error: SvcError) => void>()
  #heard = 0

  /** How often anything came from the engine on behalf of a lease: a number that grows while it works. */
  get heard (): number { return this.#heard }

  lend (facts: Omit<SlotLease, 'heard' | 'onRevoked' | 'release'>, release: (broken: boolean) => void): SlotLease {
    let held = true
    let listener: ((error: SvcError) => void) | null = null
    return {
      ...facts,
      heard: () => { this.#heard++ },
      onRevoked: told => {
        if (!held) return
        listener = told
        this.#revoked.add(told)
      },
      release: (broken = false) => {
        if (!held) return
        held = false
        if (listener !== null) this.#revoked.delete(listener)
        release(broken)
      }
    }
  }

  /** The engine is taken away: each holder is told once. Holders may release while they are told. */
  revoke (error: SvcError): void {
    const told = [...this.#revoked]
    this.#revoked.clear()
    for (const tell of told) tell(error)
  }
}
