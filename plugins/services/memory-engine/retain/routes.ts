import type { Core } from '../core.js'
import { ensureBank, findBank, type BankRow } from '../store/bank-table.js'
import { BANK, bankNotFound, json, WireError, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { configOf } from '../banks/config.js'
import { findDocument, settleText } from '../store/document-table.js'
import { knownAs } from './known.js'
import { isLarge, partsOf, SLICE_TOKENS } from './parts.js'
import { readRetain, type RetainItem } from './request.js'
import { dropReplaced, retain } from './retain.js'
import { inTurn } from './turns.js'

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/memories`, handler: retainItems }]

const noTokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0, cached_tokens: 0, thoughts_tokens: 0 }

async function retainItems ({ core, params, body, headers, ignored, signal }: WireCall): Promise<WireAnswer> {
  const request = readRetain(body, headers, ignored, core.now())
  const bank = ensureBank(core.store, params.bank_id!, core.now())
  const { async, items } = request
  const answer = { success: true, bank_id: bank.bank_id, items_count: items.length, async, operation_ids: null }
  if (!async) {
    const known: KnownItem[] = []
    await inTurn(core, bank.bank_id, () => retainNow(core, bank.bank_id, items, known, signal))
    const told = items.some(({ unlessKnown }) => unlessKnown === true) ? { known } : {}
    return json({ ...answer, operation_id: null, usage: noTokens, ...told })
  }
  const { retainLater } = core.hooks
  if (retainLater === null) throw new WireError(501, 'this engine has no queue for an asynchronous retain; send it with async: false')
  return json({ ...answer, operation_id: retainLater({ bank, request, operationId: request.operationId }), usage: null })
}

/** Of what a document said before, taken away in one go. */
const DROPPED_AT_ONCE = 50

/** An item that was not kept, because what it says is there. */
interface KnownItem {
  /** Its place in the request. */
  readonly item: number
  readonly document_id: string
  readonly memory_id: string | null
}

/**
 * What a part of an asynchronous retain could hold is one transaction; more is kept slice by slice, until its client leaves.
 * @param known gets what was there before
 */
async function retainNow (
  core: Core, bankId: string, given: readonly RetainItem[], known: KnownItem[], signal: AbortSignal
): Promise<void> {
  const bankNow = (): BankRow => {
    signal.throwIfAborted()
    core.closing.throwIfAborted()
    // it may have been deleted meanwhile
    const bank = findBank(core.store, bankId)
    if (bank === undefined) throw bankNotFound(bankId)
    return bank
  }
  const others = (): Promise<void> => new Promise(resolve => { setImmediate(resolve) })
  const items = given.filter((each, item) => {
    const as = each.unlessKnown === true ? knownAs(core, bankNow(), each) : null
    if (as !== null) known.push({ item, document_id: as.documentId, memory_id: as.memoryId })
    return as === null
  })
  const slices = isLarge(items) ? partsOf(items, SLICE_TOKENS, Number(configOf(bankNow()).retain_chunk_size)) : [items]
  let last: RetainItem | undefined
  try {
    for (const [i, slice] of slices.entries()) {
      if (i > 0) await others()
      retain(core, bankNow(), slice)
      last = slice.at(-1)
      for (const { documentId, piece, updateMode } of slice) {
        if (piece?.isLast !== true || updateMode === 'append') continue
        while (dropped(core, bankNow(), documentId!) > 0) await others()
      }
    }
  } catch (error) {
    if (last?.piece?.isLast === false && !core.closing.aborted) settle(core, bankId, last.documentId!)
    throw error
  }
}

function dropped (core: Core, bank: BankRow, documentId: string): number {
  const document = findDocument(core.store, bank.seq, documentId)
  return document === undefined ? 0 : core.store.transaction(() => dropReplaced(core.store, document.seq, DROPPED_AT_ONCE))
}

/** The text of a document is what there is of it. */
function settle ({ store, now }: Core, bankId: string, documentId: string): void {
  const bank = findBank(store, bankId)
  const document = bank === undefined ? undefined : findDocument(store, bank.seq, documentId)
  if (document === undefined) return
  store.transaction(() => settleText(store, document.seq, configOf(bank!).store_document_text === true, now()))
}
