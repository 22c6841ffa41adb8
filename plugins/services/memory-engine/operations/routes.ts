import type { Core } from '../core.js'
import { needBank } from '../store/bank-table.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { bool, int, maybe, optional, readQuery, text } from '../wire/shape.js'
import { UUID } from '../wire/uuid.js'
import { isHeld, type Operation } from './operation.js'
import { operationRow, operationStatus } from './operation-view.js'
import { operationsOf } from './operations.js'

const list: Handler = ({ core, params, query, ignored }) => {
  const bankId = params.bank_id!
  const { status, type, limit, offset, exclude_parents: excludeParents } = readQuery(query, ignored, {
    status: maybe(text),
    type: maybe(text),
    limit: optional(int({ min: 1, max: 100 }), 20),
    offset: optional(int({ min: 0 }), 0),
    exclude_parents: optional(bool, false)
  })
  const { total, operations } = operationsOf(core).table.list(bankId, { status, type, excludeParents, limit, offset })
  // an import makes its bank when it is done
  if (total === 0) needBank(core.store, bankId)
  return json({ bank_id: bankId, total, limit, offset, operations: operations.map(operationRow) })
}

const one: Handler = ({ core, params, query, ignored }) => {
  const { include_payload: withPayload } = readQuery(query, ignored, { include_payload: optional(bool, false) })
  const id = operationId(params.operation_id!)
  const { table } = operationsOf(core)
  const operation = table.get(id, params.bank_id!)
  // an import makes its bank when it is done
  if (operation === null) needBank(core.store, params.bank_id!)
  return json(operationStatus(id, operation, operation === null ? [] : table.children(id), withPayload))
}

const cancel: Handler = ({ core, params }) => {
  const operation = known(core, params)
  const { id, status } = operation
  if (isHeld(operation)) throw new WireError(409, `Operation ${id} cannot be cancelled: what it brings is being committed`)
  if (status !== 'pending' && status !== 'processing') {
    throw new WireError(
      409,
      `Operation ${id} cannot be cancelled: status is '${status}', only 'pending' and 'processing' operations can be cancelled`
    )
  }
  operationsOf(core).queue.cancel(id)
  return json({ success: true, message: `Operation ${id} cancelled`, operation_id: id })
}

const retry: Handler = ({ core, params }) => {
  const operation = known(core, params)
  const { id } = operation
  const { table, queue, retrying } = operationsOf(core)
  const failed = operation.type === 'batch_retain' ? table.children(id).filter(({ status }) => status === 'failed') : [operation]
  if (operation.type === 'batch_retain' && failed.length === 0) {
    throw new WireError(409, `Operation ${id} is a batch_retain parent with no incomplete sub-batches to retry (its children have all completed, or it has none). Resubmit the source documents to re-ingest them, then delete this record via DELETE /operations/${id}/delete.`)
  }
  for (const { type, status, nextRetryAt } of failed) {
    // what is left of it is known from the memories themselves
    if (type === 'embedding' && status === 'cancelled') continue
    if (status === 'failed' || (status === 'pending' && nextRetryAt !== null)) continue
    throw new WireError(409, `Operation ${id} cannot be retried: status is '${status}', only 'failed' operations can be retried`)
  }
  core.store.transaction(() => {
    for (const each of failed) {
      table.restart(each.id)
      for (const listener of retrying) listener(each)
    }
    const parentId = operation.type === 'batch_retain' ? id : operation.parentId
    if (parentId !== null) table.settleParent(parentId)
  })
  queue.wake()
  return json({ success: true, message: `Operation ${id} queued for retry`, operation_id: id })
}

const remove: Handler = ({ core, params }) => {
  const { id, status } = known(core, params)
  if (status === 'pending' || status === 'processing') {
    throw new WireError(
      409, `Operation ${id} cannot be deleted: status is '${status}'; cancel it first via DELETE /operations/${id}`
    )
  }
  operationsOf(core).table.delete(id)
  return json({ success: true, message: `Operation ${id} deleted`, operation_id: id })
}

function known (core: Core, { bank_id: bankId, operation_id: given }: Readonly<Record<string, string>>): Operation {
  const id = operationId(given!)
  const operation = operationsOf(core).table.get(id, bankId!)
  if (operation === null) throw new WireError(404, `Operation ${id} not found for bank ${bankId}`)
  return operation
}

function operationId (given: string): string {
  if (!UUID.test(given)) throw new WireError(400, `Invalid operation_id format: ${given.slice(0, 100)}`)
  return given.toLowerCase()
}

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/operations`, handler: list },
  { method: 'GET', path: `${BANK}/operations/{operation_id}`, handler: one },
  { method: 'DELETE', path: `${BANK}/operations/{operation_id}`, handler: cancel },
  { method: 'POST', path: `${BANK}/operations/{operation_id}/retry`, handler: retry },
  { method: 'DELETE', path: `${BANK}/operations/{operation_id}/delete`, handler: remove }
]
