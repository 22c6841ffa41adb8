import type { Background, Core } from './core.js'
import { startExtraction } from './llm/extract-work.js'
import { startDocumentEvents } from './documents/events.js'
import { startEmbedder } from './embedding/embedder.js'
import { startSchedules } from './models/schedule.js'
import { settleOpenTexts } from './retain/open-texts.js'
import { startOperations } from './operations/start.js'
import { startAuditLog } from './records/audit.js'
import { startLogFolding } from './store/log-folding.js'
import { startWebhooks } from './webhooks/sender.js'

/** What goes on beside requests. */
const parts: readonly Background[] = [
  settleOpenTexts, startDocumentEvents, startExtraction, startEmbedder, startWebhooks, startAuditLog, startOperations,
  startSchedules, startLogFolding
]

export function startBackground (core: Core): void {
  for (const start of parts) start(core)
}
