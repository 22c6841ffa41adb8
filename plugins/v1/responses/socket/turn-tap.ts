import type { AnswerTap, AnswerTapHead, HeldPart } from 'svc-gateway/plugin'
import type { Keeper } from '../kept/keeper.js'

/** Notes whose words an answer is, and keeps it where it is to be kept. */
export class TurnTap implements AnswerTap {
  readonly #keeper: Keeper | null
  #upstream: string | null = null

  constructor (keeper: Keeper | null) {
    this.#keeper = keeper
  }

  /** The upstream whose own words the answer is; null for any other. */
  get upstream (): string | null { return this.#upstream }

  get hasKept (): boolean { return this.#keeper?.hasKept === true }

  head (head: AnswerTapHead): void {
    this.#upstream = head.upstream
    this.#keeper?.head(head)
  }

  data (chunk: Buffer): HeldPart | null {
    return this.#keeper?.data(chunk) ?? null
  }

  end (): void {
    this.#keeper?.end()
  }
}
