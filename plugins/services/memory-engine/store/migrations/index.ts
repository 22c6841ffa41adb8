import { memories } from './0001-memories.js'
import { vectorCodes } from './0002-vector-codes.js'
import { operations } from './0020-operations.js'
import { models } from './0021-models.js'
import { modelCalls } from './0022-model-calls.js'
import { extras } from './0023-extras.js'
import { documentEvents } from './0024-document-events.js'
import { transfer } from './0025-transfer.js'
import { consolidations } from './0026-consolidations.js'
import { documentHash } from './0027-document-hash.js'
import { staged } from './0031-staged.js'
import { pages } from './0040-pages.js'
import { hidden } from './0041-hidden.js'
import { lanes } from './0042-lanes.js'
import { cancelledUploads } from './0043-cancelled-uploads.js'
import { clearings } from './0044-clearings.js'
import { clearedDocument } from './0045-cleared-document.js'
import { embedding } from './0046-embedding.js'
import { consolidationMemories } from './0047-consolidation-memories.js'
import { basis } from './0048-basis.js'
import { archives } from './0049-archives.js'
import { lostFacts } from './0050-lost-facts.js'
import { flat } from './0051-flat.js'
import type { MemoryMigration } from './migrate.js'

export const migrations: readonly MemoryMigration[] = [
  memories, vectorCodes, operations, models, modelCalls, extras, documentEvents, transfer, consolidations, documentHash,
  staged, pages, hidden, lanes, cancelledUploads, clearings, clearedDocument, embedding, consolidationMemories, basis,
  archives, lostFacts, flat
]
