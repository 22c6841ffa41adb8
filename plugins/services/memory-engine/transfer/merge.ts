import { createHash } from 'node:crypto'
import type { Core, Retained } from '../core.js'
import { isFinal, isHeld, PermanentFailure, type Operation } from '../operations/operation.js'
import { operationsOf } from '../operations/operations.js'
import type { Run } from '../operations/operation-queue.js'
import { deleteBank, ensureBank, findBank, type BankRow } from '../store/bank-table.js'
import { clearDocument } from '../memories/clear.js'
import { deleteDocument, findDocument, isLarge, type DocumentRow } from '../store/document-table.js'
import { admitMemory, type MemoryRow } from '../store/memory-table.js'
import { turn } from '../store/turn.js'
import type { TransferDocument } from './archive.js'
import { dropUpload } from './file-table.js'
import { importConfig, importRest, slicesOf, weightOf, writeSlices, type BankParts, type Brought } from './import.js'
import { Importing } from './importing.js'
import { dropStage, findStage, newStage } from './stage.js'

/*
 * An archive comes into a bank that is there in two steps, both slice by slice, so that other requests are served between them.
 * First all of it is written where no path leads: until that is done the bank is as it was, and a cancelled operation or a killed
 * process leaves nothing. Then the operation is held, which is its commit, and document by document moves over: a killed process
 * goes on with that when it is back. Of a large document the memories come first, some at a time; then goes what it replaces, and
 * then it gets its place. What the bank may refuse (a tree that is too deep with its own, settings) comes in the transaction that
 * holds the operation: it is refused with all the rest, and nothing behind the commit can be.
 */

export const conflictModes = ['skip', 'replace', 'new-id'] as const
export type ConflictMode = typeof conflictModes[number]

/** Kept from the first step. */
interface Staged {
  /** Documents that the bank had. */
  readonly skipped: readonly string[]
  /** How many observations were left out. */
  readonly lost: number
  /** What came beside documents; undefined where that is still to come, as in an operation of a release before. */
  readonly rest?: Readonly<Record<string, number>>
}

export interface Merging extends BankParts {
  readonly bankId: string
  /** Whether the bank is made if there is none. */
  readonly makes: boolean
  /** What beside documents is brought. */
  readonly hasRest: boolean
  readonly onConflict: ConflictMode
}

export async function mergeArchive (
  core: Core, operation: Operation, run: Run, archive: Brought, merging: Merging
): Promise<void> {
  try {
    const brought = merging.data ? archive : { ...archive, documents: [], observations: [] }
    const staged = isHeld(operation) ? (operation.payload as { readonly held: Staged }).held
      : await stageAll(core, operation, run, brought, merging)
    await new Move(core, operation, run, brought, merging, staged).run()
  } catch (error) {
    // what is held is tried again, unless it cannot come to an end
    const isOver = isFinal(error) || !isHeld(operationsOf(core).table.get(operation.id) ?? { payload: null })
    if (isOver && !core.closing.aborted) await dropStage(core, operation.id)
    throw error
  }
}

async function stageAll (core: Core, operation: Operation, run: Run, archive: Brought, merging: Merging): Promise<Staged> {
  const { store } = core
  const target = findBank(store, merging.bankId)
  if (target === undefined && !merging.makes) throw new PermanentFailure(`Bank '${merging.bankId}' not found`)
  const stage = await newStage(core, operation.id)
  store.transaction(() => {
    if (target !== undefined) store.run('UPDATE banks SET overrides = ? WHERE seq = ?', [target.overrides, stage.seq])
    if (merging.config) importConfig(core, findBank(store, stage.bank_id)!, archive.rows.banks?.[0])
  })
  const isKnown = ({ id }: TransferDocument): boolean =>
    merging.onConflict === 'skip' && target !== undefined && findDocument(store, target.seq, id) !== undefined
  const skipped = new Set(archive.documents.filter(isKnown).map(({ id }) => id))
  const work = new Importing(core, findBank(store, stage.bank_id)!, true)
  const documents = archive.documents.filter(({ id }) => !skipped.has(id))
  await writeSlices(core, work, { documents, observations: archive.observations }, run)
  return store.transaction(() => {
    if (merging.makes) ensureBank(store, merging.bankId, core.now())
    const staged: Staged = { skipped: [...skipped], lost: work.lost, rest: bringRest(core, archive, merging) }
    run.hold({ ...operation.payload as object, held: staged })
    return staged
  })
}

/** In the caller's transaction. */
function bringRest (core: Core, archive: Brought, { bankId, config, hasRest }: Merging): Readonly<Record<string, number>> {
  if (config) importConfig(core, targetOf(core, bankId), archive.rows.banks?.[0])
  return hasRest ? importRest(core, targetOf(core, bankId), archive, config) : {}
}

function targetOf ({ store }: Core, bankId: string): BankRow {
  const target = findBank(store, bankId)
  if (target === undefined) throw new PermanentFailure(`Bank '${bankId}' not found`)
  return target
}

const ROWS_AT_ONCE = 100

/** The second step. What an earlier try of it has moved is no longer in the stage. */
class Move {
  readonly #core: Core
  readonly #operation: Operation
  readonly #run: Run
  readonly #archive: Brought
  readonly #merging: Merging
  readonly #first: Staged
  readonly #stage: BankRow

  constructor (core: Core, operation: Operation, run: Run, archive: Brought, merging: Merging, staged: Staged) {
    const stage = findStage(core, operation.id)
    if (stage === undefined) throw new PermanentFailure('what was to be imported is gone')
    this.#core = core
    this.#operation = operation
    this.#run = run
    this.#archive = archive
    this.#merging = merging
    this.#first = staged
    this.#stage = stage
  }

  async run (): Promise<void> {
    const slices = slicesOf(this.#archive.documents, weightOf)
    for (const [n, documents] of slices.entries()) {
      this.#run.progress('committing', n, slices.length)
      for (const { id } of documents) await this.#large(id)
      this.#slice(target => documents.map(({ id }) => this.#document(target, id)))
      await turn()
    }
    for (let after = 0; ;) {
      const rows = this.#observations(after)
      if (rows.length === 0) break
      this.#slice(target => [{ document: null, memories: this.#admit(target, rows) }])
      after = rows.at(-1)!.seq
      await turn()
    }
    const left = this.#core.store.all<DocumentRow>('SELECT * FROM documents WHERE bank = ?', [this.#stage.seq])
    this.#run.commit(() => this.#end(left.map(({ document_id: id }) => id)))
    await dropStage(this.#core, this.#operation.id)
  }

  /** One transaction, of whose memories those hear that make vectors. */
  #slice (work: (target: BankRow) => readonly Moved[]): void {
    const { store, hooks } = this.#core
    this.#run.signal.throwIfAborted()
    const { target, moved } = store.transaction(() => {
      const target = this.#target()
      return { target, moved: work(target) }
    })
    const documents = moved.flatMap(({ document }) => document === null ? [] : [document])
    const memories = moved.flatMap(each => each.memories)
    const retained: Retained = { bank: target.seq, bankId: target.bank_id, documents, kinds: new Map(), memories }
    if (retained.memories.length > 0) for (const listener of hooks.retained) listener(retained)
  }

  #target (): BankRow {
    return targetOf(this.#core, this.#merging.bankId)
  }

  /** What of a document is too much for one transaction; the rest is little. */
  async #large (id: string): Promise<void> {
    const { store } = this.#core
    const document = findDocument(store, this.#stage.seq, id)
    const before = findDocument(store, this.#target().seq, id)
    if (document === undefined || (before !== undefined && this.#merging.onConflict === 'skip')) return
    if (isLarge(store, document.seq)) {
      for (let isOver = false; !isOver;) {
        this.#slice(target => {
          const memories = this.#admit(target, this.#staged(document.seq, ROWS_AT_ONCE))
          isOver = memories.length < ROWS_AT_ONCE
          return [{ document: null, memories }]
        })
        await turn()
      }
    }
    const isReplaced = before !== undefined && this.#merging.onConflict === 'replace'
    if (isReplaced && isLarge(store, before.seq)) await clearDocument(this.#core, this.#target(), before.seq)
  }

  /** Memories of a document that have not moved. */
  #staged (document: number, most: number): readonly MemoryRow[] {
    return this.#core.store.all<MemoryRow>('SELECT * FROM memories WHERE document = ? AND bank = ? ORDER BY seq LIMIT ?', [document, this.#stage.seq, most])
  }

  #document (target: BankRow, id: string): Moved {
    const { store } = this.#core
    const { onConflict } = this.#merging
    const document = findDocument(store, this.#stage.seq, id)
    const before = findDocument(store, target.seq, id)
    if (document === undefined || (before !== undefined && onConflict === 'skip')) return { document: null, memories: [] }
    if (before !== undefined && onConflict === 'replace') deleteDocument(store, before)
    const name = before !== undefined && onConflict === 'new-id' ? this.#newId(id) : id
    store.run('UPDATE documents SET bank = ?, document_id = ? WHERE seq = ?', [target.seq, name, document.seq])
    return { document: document.seq, memories: this.#admit(target, this.#staged(document.seq, -1)) }
  }

  #admit (target: BankRow, rows: readonly MemoryRow[]): readonly number[] {
    for (const row of rows) admitMemory(this.#core.store, row, target.seq)
    return rows.map(({ seq }) => seq)
  }

  /** Those whose sources have all moved. */
  #observations (after: number): readonly MemoryRow[] {
    return this.#core.store.all<MemoryRow>(`SELECT * FROM memories AS m WHERE bank = ? AND document IS NULL AND seq > ? AND NOT EXISTS (
      SELECT 1 FROM memory_sources AS s JOIN memories AS source ON source.seq = s.source WHERE s.memory = m.seq AND source.bank = m.bank)
      ORDER BY seq LIMIT ${ROWS_AT_ONCE}`, [this.#stage.seq, after])
  }

  /** With the operation's end. */
  #end (left: readonly string[]): Readonly<Record<string, unknown>> {
    const { store, now } = this.#core
    const { skipped, lost, rest = bringRest(this.#core, this.#archive, this.#merging) } = this.#first
    dropUpload(store, this.#operation.id)
    const target = this.#target()
    store.run('UPDATE banks SET last_write_at = ?, last_document_at = ? WHERE seq = ?', [now(), now(), target.seq])
    const { count } = store.get<{ count: number }>('SELECT count(*) AS count FROM memories WHERE bank = ? AND document IS NULL', [this.#stage.seq])!
    if (left.length === 0 && count === 0) deleteBank(store, this.#stage)
    const isSkipped = new Set([...skipped, ...left])
    const documents = this.#archive.documents.filter(({ id }) => !isSkipped.has(id))
    const renamed = documents.map(({ id }) => [id, this.#newId(id)] as const)
      .filter(([, name]) => this.#merging.onConflict === 'new-id' && findDocument(store, target.seq, name) !== undefined)
    return {
      ...this.#merging.hasRest && { bank_id: target.bank_id },
      documents_imported: documents.length, documents_skipped: isSkipped.size,
      facts_imported: documents.reduce((sum, { facts, invalidated }) => sum + facts.length + invalidated.length, 0),
      observations_imported: this.#archive.observations.length - lost - count, observations_skipped: lost + count,
      skipped_document_ids: [...isSkipped], remapped_document_ids: Object.fromEntries(renamed),
      ...rest
    }
  }

  /** The same one in each try. */
  #newId (id: string): string {
    const hex = createHash('sha256').update(`${this.#operation.id}\n${id}`).digest('hex')
    return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
  }
}

interface Moved {
  /** Null if none moved. */
  readonly document: number | null
  readonly memories: readonly number[]
}
