import { svcError } from 'svc-gateway/plugin'

/** Longest pieces that are held together, in characters. */
const LONGEST = 32 * 1024 * 1024
/** What a block takes besides its pieces. */
const BLOCK_COST = 256

/** What a block of a message holds: a kind of text, or the number of a call. */
export type BlockKind = 'thinking' | 'text' | number

export interface HeldBlock {
  readonly kind: BlockKind
  /** JSON of the block, empty. */
  readonly block: string
  said: string
}

/** Pieces of blocks whose turn has not come yet: those of a call belong together, texts stay in their order. */
export class HeldBlocks {
  #blocks: HeldBlock[] = []
  #next = 0
  readonly #calls = new Map<number, HeldBlock>()
  #length = 0

  get isEmpty (): boolean { return this.#next === this.#blocks.length }

  /** @param block JSON of one that is new. Throws for pieces without an end. */
  add (kind: BlockKind, piece: string, block: () => string): void {
    const last = this.isEmpty ? undefined : this.#blocks.at(-1)
    let held = typeof kind === 'number' ? this.#calls.get(kind) : last?.kind === kind ? last : undefined
    if (held === undefined) {
      held = { kind, block: block(), said: '' }
      this.#blocks.push(held)
      if (typeof kind === 'number') this.#calls.set(kind, held)
      this.#length += BLOCK_COST
    }
    held.said += piece
    this.#length += piece.length
    if (this.#length > LONGEST) throw svcError('dispatch.upstream_failed', 'the engine sent too much before it finished a tool call')
  }

  /** The first of them, which is held no longer; undefined without any. */
  take (): HeldBlock | undefined {
    const held = this.#blocks[this.#next]
    if (held === undefined) return undefined
    this.#next++
    this.#length -= held.said.length + BLOCK_COST
    if (typeof held.kind === 'number') this.#calls.delete(held.kind)
    if (this.isEmpty) {
      this.#blocks = []
      this.#next = 0
    }
    return held
  }
}
