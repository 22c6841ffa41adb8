import { configOf } from '../banks/config.js'
import type { Core } from '../core.js'
import { GRAPH_OFF } from '../messages.js'
import { PermanentFailure, type Operation } from '../operations/operation.js'
import type { Work } from '../operations/operation-queue.js'
import { operationsOf } from '../operations/operations.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import { findDocument } from '../store/document-table.js'
import { deleteMemories, insertMemory, replacing, type MemoryRow } from '../store/memory-table.js'
import { wireTime } from '../wire/times.js'
import { ask, requireChat } from './ask.js'
import { consolidatesByItself, submitConsolidation } from './consolidation-schedule.js'
import { extractedFacts, extractionMessages, type Fact } from './extraction.js'
import { IS_WHOLE_CHUNK } from './open-facts.js'

const ANSWER_TOKENS = 4096

const extracts = (core: Core): boolean => core.outside.abilities.extracts === true

/**
 * Lays down, with each retain, that the facts of its documents are to be found; off unless the graph is on. What waits or runs
 * when it is switched off is cancelled.
 */
export function startExtraction (core: Core): void {
  const { queue, ending, cancelling } = operationsOf(core)
  const cancelLeft = (): void => {
    if (extracts(core)) return
    try {
      const count = queue.cancelAll('graph_maintenance')
      if (count > 0) core.log('info', 'the graph was switched off, and what was being extracted is cancelled', { operations: count })
    } catch (error) {
      // the work itself looks once more whether the graph is on
      core.log('warn', 'what was being extracted could not be cancelled', { error: (error as Error).message })
    }
  }
  // it may have been switched off while nothing ran
  cancelLeft()
  core.outside.onAbilities(cancelLeft)
  // in the transaction of the end, so that an end of the process does not come between; a text that stays is consolidated, too
  const consolidate = ({ type, bankId }: Operation): void => {
    const bank = type === 'graph_maintenance' ? findBank(core.store, bankId) : undefined
    if (bank !== undefined && consolidatesByItself(core, bank)) submitConsolidation(core, bankId)
  }
  ending.push(consolidate)
  cancelling.push(consolidate)
  core.hooks.retaining.push(({ bankId, documents, memories }) => {
    if (!extracts(core) || core.outside.abilities.chat.model === null || memories.length === 0) return
    for (const document of documents) {
      const { document_id: id } = core.store.get<{ document_id: string }>('SELECT document_id FROM documents WHERE seq = ?', [document])!
      operationsOf(core).submit({ bankId, type: 'graph_maintenance', documentId: id, payload: { document: id } })
    }
  })
}

/**
 * Finds the facts of a document: each of its memories that is a chunk word for word gives way to the facts in it, which keep its
 * chunk. Where a model finds none, the memory stays; an answer that cannot be read fails the operation.
 */
export function extractWork (core: Core): Work {
  return async (operation, run) => {
    const { document: documentId } = operation.payload as { readonly document: string }
    const bank = findBank(core.store, operation.bankId)
    if (bank === undefined) throw new PermanentFailure(`Bank '${operation.bankId}' not found`)
    // one that failed before may be tried again by hand
    if (!extracts(core)) throw new PermanentFailure(GRAPH_OFF)
    requireChat(core, 'the extraction of facts')
    const rows = wholeChunks(core, bank, documentId)
    const found: Array<readonly [MemoryRow, readonly Fact[]]> = []
    for (const row of rows) {
      run.progress('extracting', found.length, rows.length)
      found.push([row, await factsOf(core, bank, row, operation.id, run.signal)])
    }
    run.commit(() => {
      const counts = found.map(([row, facts]) => replace(core, bank, row, facts))
      return { facts_committed: counts.reduce((sum, each) => sum + each, 0), chunks: rows.length }
    })
  }
}

/** Memories of a document that are the text of their chunk. */
function wholeChunks ({ store }: Core, bank: BankRow, documentId: string): readonly MemoryRow[] {
  const document = findDocument(store, bank.seq, documentId)
  if (document === undefined) return []
  return store.all<MemoryRow>(`SELECT m.* FROM memories m JOIN chunks c ON c.seq = m.chunk
    WHERE m.document = ? AND m.state = 'valid' AND ${IS_WHOLE_CHUNK} ORDER BY m.seq`, [document.seq])
}

async function factsOf (
  core: Core, bank: BankRow, row: MemoryRow, traceId: string, signal: AbortSignal
): Promise<readonly Fact[]> {
  const config = configOf(bank)
  const messages = extractionMessages({
    content: row.text, context: row.context ?? '', at: wireTime(row.mentioned_at), mission: config.retain_mission as string | null,
    instructions: config.retain_extraction_mode === 'custom' ? config.retain_custom_instructions as string | null : null
  })
  const answer = await ask(core, { bank: bank.seq, operation: 'retain', scope: 'extraction', traceId }, { messages, maxTokens: ANSWER_TOKENS, json: true }, signal)
  return extractedFacts(answer.text)
}

/** Called in the transaction that ends the work. Returns how many facts took the memory's place. */
function replace ({ store, now }: Core, bank: BankRow, { seq }: MemoryRow, facts: readonly Fact[]): number {
  // its tags may be others by now, for other readers
  const present = store.get<MemoryRow>(`SELECT * FROM memories WHERE seq = ? AND state = 'valid' AND edited_at IS NULL
    AND chunk IS NOT NULL`, [seq])
  // edited, hidden, deleted or no longer said meanwhile
  if (present === undefined || facts.length === 0) return 0
  for (const fact of facts) {
    insertMemory(store, bank.seq, {
      document: present.document, chunk: present.chunk, text: fact.text, context: present.context, factType: fact.type,
      entities: fact.entities.map(name => ({ text: name })), tags: JSON.parse(present.tags) as string[],
      metadata: JSON.parse(present.metadata) as Record<string, string>,
      observationScopes: present.observation_scopes === null ? null : JSON.parse(present.observation_scopes),
      occurredStart: fact.occurredStart === null ? null : Date.parse(fact.occurredStart),
      occurredEnd: fact.occurredEnd === null ? null : Date.parse(fact.occurredEnd), mentionedAt: present.mentioned_at
    }, now())
  }
  replacing(store, 'extraction', () => deleteMemories(store, [present]))
  return facts.length
}
