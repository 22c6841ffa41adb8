import { indexable } from '../recall/words.js'
import type { Store } from './store.js'

/*
 * The full-text index of a bank: an FTS5 table. It has the words a second time, since one without content of its own keeps the
 * words of deleted rows, or is broken by deleting them securely (SQLite 3.45). Every write of a memory's text writes its row
 * here in the same transaction.
 */

/** What is indexed of a memory. */
export interface IndexedText {
  readonly text: string
  readonly context: string | null
  /** Names, each with its blanks. */
  readonly entities: readonly string[]
}

/** The index's table. */
export function textIndexOf (bank: number): string {
  return `text_${Math.trunc(bank)}`
}

export function makeTextIndex (store: Store, bank: number): void {
  const table = textIndexOf(bank)
  store.exec(`CREATE VIRTUAL TABLE ${table} USING fts5(text, context, entities, tokenize = 'porter unicode61 remove_diacritics 2')`)
  // words of a deleted row do not stay behind in the index
  store.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('secure-delete', 1)`)
}

export function dropTextIndex (store: Store, bank: number): void {
  store.exec(`DROP TABLE ${textIndexOf(bank)}`)
}

export function addToTextIndex (store: Store, bank: number, memory: number, words: IndexedText): void {
  store.run(`INSERT INTO ${textIndexOf(bank)} (rowid, text, context, entities) VALUES (?, ?, ?, ?)`, [memory, ...columns(words)])
}

export function removeFromTextIndex (store: Store, bank: number, memory: number): void {
  store.run(`DELETE FROM ${textIndexOf(bank)} WHERE rowid = ?`, [memory])
}

function columns ({ text, context, entities }: IndexedText): string[] {
  return [text, context ?? '', entities.join(' ')].map(indexable)
}
