import { createServiceRef } from 'svc-gateway/plugin'
import type { EngineStatus, MemoryEngine } from './engine.js'
import type { MemoryHealth } from './memory.js'
import type { Notes } from './notes/notes.js'

export type { EngineAnswer, EngineRequest, EngineStatus, MemoryEngine } from './engine.js'
export { askEngine, bankPath, committedSignal, engineFailure, engineRows, engineValue, noObject, readReply, rowsIn, shapeFailure, valueOf } from './engine-call.js'
export type { EngineQuestion, EngineReply, Row } from './engine-call.js'
export { memoryError } from './errors.js'
export { checkedIdentity, identityOf } from './identity.js'
export type { MemoryIdentity } from './identity.js'
export type { MemoryHealth } from './memory.js'
export { checkBankOf, datasetName, datasetOf, isForeign, isPrivateBank, readDatasets, writtenDataset } from './namespaces.js'
export type { Dataset } from './namespaces.js'
export type { Note } from './notes/note.js'
export { RAN_ON } from './notes/found-in.js'
export { tagsMatches } from './notes/tags.js'
export { isVisibleRow, visibleOnly } from './notes/visibility.js'
export type { AddedNote, NewNote, NotePage, NoteRecall, NoteSearch, RecalledNotes } from './notes/notes.js'

/** The memory of the gateway. What needs it while it is off throws `memory.unavailable`. */
export interface MemoryService {
  /** As it was when it was last looked at. */
  readonly health: MemoryHealth
  /** By datasets and agents. */
  readonly notes: Notes
  /** The wire of the engine in use. */
  engine (): MemoryEngine
  /**
   * Rejects with `memory.bank_private` where an agent may not enter a bank, by whatever name the engine has for it.
   * @param agent null for the operator
   * @param bank as the engine is asked for it
   */
  enter (agent: string | null, bank: string, signal: AbortSignal): Promise<void>
  /** Looks now; null while it is off. Never throws. */
  status (): Promise<EngineStatus | null>
  /** Called when it is switched on or off, or gets another engine. Returns what unregisters the listener. */
  onChange (listener: () => void): () => void
}

export const memoryRef = createServiceRef<MemoryService>('memory.service')
