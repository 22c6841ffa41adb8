import { HeldBlocks } from './held-bytes.js'

/** Memory that all uploads together may take up while they wait for a reader. What does not fit goes to disk. */
export class UploadMemory {
  readonly #bytes: number
  readonly blocks: HeldBlocks
  #taken = 0

  constructor (bytes: number) {
    this.#bytes = bytes
    this.blocks = new HeldBlocks(bytes)
  }

  /** False when there is not as much left. */
  take (bytes: number): boolean {
    if (this.#taken + bytes > this.#bytes) return false
    this.#taken += bytes
    return true
  }

  give (bytes: number): void {
    this.#taken -= bytes
  }

  get taken (): number { return this.#taken }
}
