/**
 * Memory that the bodies of all requests together may take up. One that is alone may always be as large as its route
 * takes, whatever the bound is: to ask again later would not help it.
 */
export class BodyMemory {
  readonly limitBytes: number
  #taken = 0

  constructor (limitBytes: number) {
    this.limitBytes = limitBytes
  }

  /** False when there is not as much left. @param held what the same body has already */
  take (bytes: number, held: number): boolean {
    if (this.#taken + bytes > this.limitBytes && this.#taken > held) return false
    this.#taken += bytes
    return true
  }

  give (bytes: number): void {
    this.#taken -= bytes
  }

  get taken (): number { return this.#taken }
}
