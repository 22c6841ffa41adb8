import type { Core } from '../core.js'
import { sweepDeleted } from '../banks/deleted.js'
import { resumeClearings } from '../memories/clear.js'
import { consolidationWork } from '../llm/consolidate.js'
import { extractWork } from '../llm/extract-work.js'
import { embeddingWork } from '../embedding/work.js'
import { refreshWork } from '../models/refresh.js'
import { sweepStages } from '../transfer/stage.js'
import { cloneWork, exportWork, importWork } from '../transfer/works.js'
import type { OperationType } from './operation.js'
import type { Work } from './operation-queue.js'
import { operationsOf } from './operations.js'
import { retainLater, retainWork } from './retain-work.js'

/** What does the work of each type of operation. */
const works: Readonly<Partial<Record<OperationType, (core: Core) => Work>>> = {
  retain: retainWork,
  file_convert_retain: retainWork,
  export_documents: exportWork,
  export_bank: exportWork,
  import_documents: importWork,
  import_bank: importWork,
  clone_bank: cloneWork,
  refresh_mental_model: refreshWork,
  consolidation: consolidationWork,
  graph_maintenance: extractWork,
  embedding: embeddingWork
}

export function startOperations (core: Core): void {
  const { queue } = operationsOf(core)
  const later = (wanted: Parameters<typeof retainLater>[1]): ReturnType<typeof retainLater> => retainLater(core, wanted)
  core.hooks.retainLater = later
  for (const [type, workOf] of Object.entries(works)) queue.handle(type as OperationType, workOf(core))
  queue.start()
  sweepDeleted(core)
  resumeClearings(core)
  sweepStages(core).catch((error: unknown) => core.log('warn', 'what imports left behind could not be removed', { error: (error as Error).message }))
}
