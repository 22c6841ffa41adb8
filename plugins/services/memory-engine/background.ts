import type { Background, Core } from './core.js'
import { startDocumentEvents } from './documents/events.js'
import { startOperations } from './operations/start.js'
import { startWebhooks } from './webhooks/sender.js'

/** What goes on beside requests. */
const parts: readonly Background[] = [startDocumentEvents, startWebhooks, startOperations]

export function startBackground (core: Core): void {
  for (const start of parts) start(core)
}
