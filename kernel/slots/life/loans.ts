import type { SlotLease, SvcError } from '../../contract/index.js'

export type LeaseFacts = Omit<SlotLease, 'heard' | 'onRevoked' | 'release'>

/**
 * Leases of a slot's engine whose holders want to hear of its end. A plain list, from which one is removed by putting
 * the last in its place: the outgrown tables of a `Set` point at their successors, and with one lease a request they
 * would hold on to every finished request until the next full collection.
 */
export class Loans {
  #listening: Loan[] = []
  #heard = 0

  /** How often anything came from the engine on behalf of a lease: a number that grows while it works. */
  get heard (): number { return this.#heard }

  lend (facts: LeaseFacts, release: (broken: boolean) => void): SlotLease {
    return new Loan(facts, release, this)
  }

  /** The engine is taken away: each holder is told once. Holders may release while they are told. */
  revoke (error: SvcError): void {
    const told = this.#listening
    this.#listening = []
    for (const loan of told) loan.index = NOWHERE
    for (const loan of told) loan.tell(error)
  }

  /** For the loans themselves. */
  hear (): void { this.#heard++ }

  /** For the loans themselves. */
  enter (loan: Loan): void { loan.index = this.#listening.push(loan) - 1 }

  /** For the loans themselves. */
  leave (loan: Loan): void {
    if (loan.index === NOWHERE) return
    const last = this.#listening.pop()!
    if (last !== loan) {
      this.#listening[loan.index] = last
      last.index = loan.index
    }
    loan.index = NOWHERE
  }
}

const NOWHERE = -1

class Loan implements SlotLease {
  readonly slot: SlotLease['slot']
  readonly provider: SlotLease['provider']
  readonly address: SlotLease['address']
  readonly modelId: SlotLease['modelId']
  readonly generation: number
  /** Its place in the list; the list's own business. */
  index = NOWHERE
  readonly #loans: Loans
  readonly #release: (broken: boolean) => void
  #held = true
  #listener: ((error: SvcError) => void) | null = null

  constructor (facts: LeaseFacts, release: (broken: boolean) => void, loans: Loans) {
    this.slot = facts.slot
    this.provider = facts.provider
    this.address = facts.address
    this.modelId = facts.modelId
    this.generation = facts.generation
    this.#release = release
    this.#loans = loans
  }

  heard (): void { this.#loans.hear() }

  onRevoked (listener: (error: SvcError) => void): void {
    if (!this.#held) return
    this.#listener = listener
    if (this.index === NOWHERE) this.#loans.enter(this)
  }

  tell (error: SvcError): void { if (this.#held) this.#listener?.(error) }

  release (broken = false): void {
    if (!this.#held) return
    this.#held = false
    this.#loans.leave(this)
    this.#release(broken)
  }
}
