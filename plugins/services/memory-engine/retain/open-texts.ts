import type { Core } from '../core.js'
import { configOf } from '../banks/config.js'
import type { BankRow } from '../store/bank-table.js'
import { settleText } from '../store/document-table.js'

/**
 * Texts that came in pieces when the gateway was killed: their documents tell what was kept of them, as after a client that
 * left.
 */
export function settleOpenTexts ({ store, now, log }: Core): void {
  try {
    for (const bank of store.all<BankRow>('SELECT * FROM banks')) {
      const open = store.all<{ seq: number }>('SELECT seq FROM documents WHERE bank = ? AND content_hash IS NULL', [bank.seq])
      const keepsText = configOf(bank).store_document_text === true
      for (const { seq } of open) store.transaction(() => settleText(store, seq, keepsText, now()))
    }
  } catch (error) {
    // where the disk takes nothing, what is remembered can still be recalled
    log('warn', 'texts that a kill cut off could not be settled', { error: (error as Error).message })
  }
}
