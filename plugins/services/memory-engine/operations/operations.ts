import type { Core } from '../core.js'
import type { Operation } from './operation.js'
import { OperationQueue, type LastTry } from './operation-queue.js'
import { OperationTable, type NewOperation } from './operation-table.js'

/** The background work of one engine. */
export class Operations {
  readonly table: OperationTable
  readonly queue: OperationQueue
  /** Called in the transaction that completes an operation, fails it, or cancels one that runs; with what it is then. */
  readonly ending: Array<(operation: Operation, lastTry: LastTry) => void> = []
  /** Called in the transaction in which a client cancels an operation, or has it tried again; with what it was before. */
  readonly cancelling: Array<(operation: Operation) => void> = []
  readonly retrying: Array<(operation: Operation) => void> = []
  /** Called after an operation ended. */
  readonly ended: Array<(operation: Operation) => void> = []

  constructor (core: Core) {
    this.table = new OperationTable(core)
    this.queue = new OperationQueue({
      core,
      table: this.table,
      ending: (operation, lastTry) => {
        for (const listener of this.ending) listener(operation, lastTry)
      },
      cancelling: operation => {
        for (const listener of this.cancelling) listener(operation)
      },
      ended: operation => {
        for (const listener of this.ended) listener(operation)
      }
    })
  }

  /** Adds one and has it run soon. In a transaction: soon after it. */
  submit (operation: NewOperation): Operation {
    const added = this.table.add(operation)
    setImmediate(() => this.queue.wake())
    return added
  }
}

const engines = new WeakMap<Core, Operations>()

export function operationsOf (core: Core): Operations {
  let operations = engines.get(core)
  if (operations === undefined) engines.set(core, operations = new Operations(core))
  return operations
}
