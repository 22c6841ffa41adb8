import { indexable } from '../recall/words.js'
import type { Store } from './store.js'

/*
 * The full-text index of a bank: an FTS5 table without content of its own, so that a text stands in the database once. Whoever
 * writes a memory's text writes its row here in the same transaction, with the same words when it goes.
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
  store.exec(`CREATE VIRTUAL TABLE ${table} USING fts5(text, context, entities, content = '', tokenize = 'porter unicode61 remove_diacritics 2')`)
  // words of a deleted row do not stay behind in the index
  store.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('secure-delete', 1)`)
}

export function dropTextIndex (store: Store, bank: number): void {
  store.exec(`DROP TABLE ${textIndexOf(bank)}`)
}

export function addToTextIndex (store: Store, bank: number, memory: number, words: IndexedText): void {
  store.run(`INSERT INTO ${textIndexOf(bank)} (rowid, text, context, entities) VALUES (?, ?, ?, ?)`, [memory, ...columns(words)])
}

/** `words` must be what was added. */
export function removeFromTextIndex (store: Store, bank: number, memory: number, words: IndexedText): void {
  const table = textIndexOf(bank)
  store.run(`INSERT INTO ${table} (${table}, rowid, text, context, entities) VALUES ('delete', ?, ?, ?, ?)`, [memory, ...columns(words)])
}

/** Empties it: faster than row by row, and leaves no page behind that was not overwritten. */
export function clearTextIndex (store: Store, bank: number): void {
  dropTextIndex(store, bank)
  makeTextIndex(store, bank)
}

function columns ({ text, context, entities }: IndexedText): string[] {
  return [text, context ?? '', entities.join(' ')].map(indexable)
}
