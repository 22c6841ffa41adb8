import type { Core } from '../core.js'
import type { OperationType } from './operation.js'
import type { Work } from './operation-queue.js'
import { operationsOf } from './operations.js'

/** What does the work of each type of operation. */
const works: Readonly<Partial<Record<OperationType, (core: Core) => Work>>> = {}

export function startOperations (core: Core): void {
  const { queue } = operationsOf(core)
  for (const [type, workOf] of Object.entries(works)) queue.handle(type as OperationType, workOf(core))
  queue.start()
}
