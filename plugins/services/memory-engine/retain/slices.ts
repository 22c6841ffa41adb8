import { configOf } from '../banks/config.js'
import type { Core } from '../core.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import { findDocument, settleText } from '../store/document-table.js'
import { turn } from '../store/turn.js'
import { bankNotFound } from '../wire/answer.js'
import { tokensOf } from '../recall/tokens.js'
import { knownAs } from './known.js'
import type { RetainItem } from './request.js'
import { dropReplaced, retain } from './retain.js'
import { isLarge, piecesOf, SLICE_TOKENS } from './sub-batches.js'

/** Of what a document said before, taken away in one go. */
const DROPPED_AT_ONCE = 50

/** An item that was not kept, because what it says is there. */
export interface KnownItem {
  /** Its place in the request. */
  readonly item: number
  readonly document_id: string
  readonly memory_id: string | null
}

/**
 * Keeps the items of a request. What a sub-batch of an asynchronous retain could hold is one transaction; more is kept slice by
 * slice, until its client leaves. Whether an item is known is looked up just before it is kept: an equal one before it counts.
 */
export class Slices {
  readonly known: KnownItem[] = []
  readonly #core: Core
  readonly #bankId: string
  readonly #items: readonly RetainItem[]
  readonly #signal: AbortSignal
  /** Documents that were written by a slice before. */
  readonly #begun = new Set<string>()
  #last: RetainItem | undefined

  constructor (core: Core, bankId: string, items: readonly RetainItem[], signal: AbortSignal) {
    this.#core = core
    this.#bankId = bankId
    this.#items = items
    this.#signal = signal
  }

  async keep (): Promise<void> {
    try {
      if (isLarge(this.#items)) await this.#keepMany()
      else await this.#keepSlice([...this.#items.keys()])
    } catch (error) {
      const { piece, documentId } = this.#last ?? {}
      if (piece?.isLast === false && !this.#core.closing.aborted) settle(this.#core, this.#bankId, documentId!)
      throw error
    }
  }

  async #keepMany (): Promise<void> {
    let [slice, room] = [[] as number[], SLICE_TOKENS]
    for (const [place, item] of this.#items.entries()) {
      const tokens = tokensOf(item.content)
      const isVeryLarge = isLarge([item])
      if (slice.length > 0 && tokens > room) {
        await this.#keepSlice(slice)
        ;[slice, room] = [[], SLICE_TOKENS]
      }
      if (isVeryLarge) {
        await this.#keepPieces(place)
      } else {
        slice.push(place)
        room -= tokens
      }
    }
    if (slice.length > 0) await this.#keepSlice(slice)
  }

  async #keepSlice (places: readonly number[]): Promise<void> {
    const items = places.map(place => {
      const item = this.#items[place]!
      return this.#isBegun(item) ? { ...item, updateMode: 'append' as const, goesOn: true } : item
    })
    const left = new Set<number>()
    await this.#keep(items, i => {
      if (!this.#isKnown(places[i]!)) return false
      left.add(i)
      return true
    })
    for (const [i, { documentId }] of items.entries()) if (documentId !== null && !left.has(i)) this.#begun.add(documentId)
  }

  /** A very large text, slice by slice. */
  async #keepPieces (place: number): Promise<void> {
    await this.#others()
    if (this.#isKnown(place)) return
    const item = this.#items[place]!
    const size = Number(configOf(this.#bank()).retain_chunk_size)
    for (const piece of piecesOf(this.#isBegun(item) ? { ...item, updateMode: 'append' } : item, size)) await this.#keep([piece])
    if (item.documentId !== null) this.#begun.add(item.documentId)
  }

  async #keep (items: readonly RetainItem[], isKnown?: (place: number) => boolean): Promise<void> {
    await this.#others()
    retain(this.#core, this.#bank(), items, isKnown)
    this.#last = items.at(-1)
    const { piece, updateMode, documentId } = this.#last ?? {}
    if (piece?.isLast !== true || updateMode === 'append') return
    while (this.#dropped(documentId!) > 0) await turn()
  }

  /** Other requests are served between two slices. */
  async #others (): Promise<void> {
    if (this.#last !== undefined) await turn()
  }

  #isBegun ({ documentId }: RetainItem): boolean {
    return documentId !== null && this.#begun.has(documentId)
  }

  #isKnown (place: number): boolean {
    const item = this.#items[place]!
    const as = item.unlessKnown === true ? knownAs(this.#core, this.#bank(), item) : null
    if (as !== null) this.known.push({ item: place, document_id: as.documentId, memory_id: as.memoryId })
    return as !== null
  }

  #dropped (documentId: string): number {
    const { store } = this.#core
    const document = findDocument(store, this.#bank().seq, documentId)
    return document === undefined ? 0 : store.transaction(() => dropReplaced(store, document.seq, DROPPED_AT_ONCE))
  }

  #bank (): BankRow {
    this.#signal.throwIfAborted()
    this.#core.closing.throwIfAborted()
    // it may have been deleted meanwhile
    const bank = findBank(this.#core.store, this.#bankId)
    if (bank === undefined) throw bankNotFound(this.#bankId)
    return bank
  }
}

/** The text of a document is what there is of it. */
function settle ({ store, now }: Core, bankId: string, documentId: string): void {
  const bank = findBank(store, bankId)
  const document = bank === undefined ? undefined : findDocument(store, bank.seq, documentId)
  if (document === undefined) return
  store.transaction(() => settleText(store, document.seq, configOf(bank!).store_document_text === true, now()))
}
